"""JSON lines: sound ones and damaged ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from reading_support import packed

from simlte_st.data.documents import read_documents
from simlte_st.data.formats import open_table
from simlte_st.data.rows import RawRow, ReadSettings


def test_columns_of_lines_are_those_of_the_first_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"a": 1}, {"b": 2}, *({"a": n} for n in range(200)), {"c": 3}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = open_table(path, ReadSettings())
    assert table.columns == ["a", "b"]
    assert table.strings == []
    assert [row.values for row in table.rows(["a"], ()) if isinstance(row, RawRow)] == rows


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".JSONL.GZ"])
def test_json_lines(tmp_path: Path, suffix: str) -> None:
    rows = [{"id": f"d{number}", "text": f"tëxt {number}"} for number in range(300)]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path = tmp_path / f"c{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.lower().endswith("gz") else data)
    if suffix.endswith(".zst"):
        packed(path, data)
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [(row["id"], row["text"]) for row in rows]
    assert (reader.report.text_column, reader.report.id_column) == ("text", "id")


def test_bad_json_lines_are_counted_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        b'{"text": "one"}\n'
        b'{"text": "cut\n'
        b'"a bare string"\n'
        b"[1]\n"
        b"\n"
        b'{"text": "caf\xe9"}\n'
        b'{"other": 1}\n' + b"[" * 200_000 + b"\n" + b'{"text": ' + b"9" * 5000 + b"}\n"
        b'{"text": "two"}'
    )
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [("0", "one"), ("9", "two")]
    assert reader.report.skipped == {
        "malformed JSON": 3,
        "not an object": 2,
        "wrong encoding": 1,
        "missing column": 1,
    }
    assert reader.report.ignored == {"blank line": 1}
    assert reader.report.examples["malformed JSON"][0].startswith("line 2: ")
    assert reader.report.examples["not an object"] == ["line 3: a JSON str", "line 4: a JSON list"]


def test_a_line_beyond_all_bounds_is_passed_over_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "' + "x" * 3_000_000 + '"}\n{"text": "ok"}\n')
    reader = read_documents(path, max_characters=10)
    assert [(document.id, document.text) for document in reader] == [("1", "ok")]
    assert reader.report.skipped == {"too long": 1}
