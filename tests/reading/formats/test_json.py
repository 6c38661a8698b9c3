"""JSON: lines of objects, arrays, and damaged files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from reading_support import texts, write_packed

from simlte_st.errors import DataError
from simlte_st.reading.document import content_id
from simlte_st.reading.documents import read_documents


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".JSONL.GZ"])
def test_json_lines(tmp_path: Path, suffix: str) -> None:
    rows = [{"id": f"d{number}", "text": f"tëxt {number}"} for number in range(300)]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path = tmp_path / f"c{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.lower().endswith("gz") else data)
    if suffix.endswith(".zst"):
        write_packed(path, data)
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
    assert reader.report.skipped == {"malformed JSON": 3, "not an object": 2, "wrong encoding": 1, "missing column": 1}
    assert reader.report.examples["malformed JSON"][0].startswith("line 2: ")
    assert reader.report.examples["not an object"] == ["line 3: a JSON str", "line 4: a JSON list"]


@pytest.mark.parametrize("indent", [None, 1])
def test_array_of_objects_is_a_table(tmp_path: Path, indent: int | None) -> None:
    rows = [{"id": f"d{number}", "body": f"tëxt {number}", "kind": "x"} for number in range(300)]
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=indent))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(rows, ensure_ascii=False, indent=indent).encode()))
    (tmp_path / "c.JSON").write_text("\n" + json.dumps(rows, indent=indent), encoding="utf-16")
    for path in tmp_path.iterdir():
        reader = read_documents(path, label_column="kind")
        assert [(item.id, item.text, item.label) for item in reader] == [(row["id"], row["body"], "x") for row in rows]
        assert reader.report.text_column == "body"


def test_array_of_strings_is_a_list_of_texts(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('["one two",\n "three", 4, null]')
    reader = read_documents(tmp_path / "a.json")
    assert [(item.id, item.text) for item in reader] == [(content_id(text), text) for text in ("one two", "three")]
    assert reader.report.skipped == {"not a string": 2}
    with pytest.raises(DataError, match=r"item 0 of .*a\.json .*bare string"):
        texts(tmp_path / "a.json", text_column="body")


def test_json_lines_in_a_json_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('\n{"text": "a"}\n{cut\n{"text": "b"}')
    reader = read_documents(tmp_path / "a.json")
    assert [item.text for item in reader] == ["a", "b"]
    assert reader.report.skipped == {"malformed JSON": 1}


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_slack_messages_are_read_as_slack_shows_them(tmp_path: Path, suffix: str) -> None:
    shown = {
        "R&amp;D: 3 &lt; 4 &amp;lt; &amp;nbsp; &gt;": "R&D: 3 < 4 &lt; &nbsp; >",
        "see <https://x.org/?a=1&amp;b=2|A &amp; B>, <https://y.org/?a=1&amp;b=2>": "see A & B, https://y.org/?a=1&b=2",
        "<!here> <@U1><@U2|ann> in <#C1|general><#C2|> <!subteam^S1|@x><!subteam^S2>": "@here @ann in #general @x",
        "<!date^1392734382^{date}|Feb 18> <mailto:a@b.org|a@b.org> `a &lt;b&gt;`": "Feb 18 a@b.org `a <b>`",
    }
    rows = [{"type": "message", "ts": "1.2", "text": text} for text in [*shown, None]]
    rows += [{"type": "message", "text": "a &lt; <@b>"}]  # not Slack's
    lines = [json.dumps(row) for row in rows]
    (tmp_path / f"a{suffix}").write_text("\n".join(lines) if suffix == ".jsonl" else f"[{','.join(lines)}]")
    assert texts(tmp_path / f"a{suffix}") == texts(rows) == [*shown.values(), "a &lt; <@b>"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{\n "data": [], "version": 1\n}', r"holds one dict\. Make .* jq -c '\.\[\"data\"\]\[\]'"),
        ('[{"text": "a"},', "valid JSON: "),
        ("[" * 100_000, "valid JSON: "),
        (b'["caf\xe9"]', "wrong encoding"),
        (b'["\0"]', "binary"),
        ("[[1], [2]]", "no usable document.*\n.*not a string"),
        ('{"@context": "x", "value": [{"id": 1, "text": "a"}]}', "holds one dict"),
    ],
)  # fmt: skip
def test_other_json_is_an_error(tmp_path: Path, content: Any, told: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=told):
        texts(path)
