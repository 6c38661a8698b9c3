from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support import make_document

from simlte_st.data import Document, dedupe, read_documents
from simlte_st.errors import ConfigurationError, DataError

TEXTS = [make_document(number) for number in range(6)]
NEAR = f"{TEXTS[1]} One more."


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def test_the_first_of_each_group_is_kept_under_the_names_of_the_source(tmp_path: Path) -> None:
    source, output = tmp_path / "pile.jsonl", tmp_path / "kept.jsonl"
    texts = [*TEXTS, NEAR, TEXTS[0].upper(), "\u2028 été"]
    rows = [{"doc_id": f"d{number}", "body": text, "year": 2000 + number} for number, text in enumerate(texts)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    report = dedupe(source, output)
    assert lines(output) == [*rows[:6], rows[8]]
    assert lines(tmp_path / "kept.removed.jsonl") == [{"id": "d6", "copy_of": "d1"}, {"id": "d7", "copy_of": "d0"}]
    assert (report.kept, report.copies.exact, report.copies.near) == (7, 1, 1)
    assert (
        "2 of 9 documents are copies of others (1 exact, 1 near), in 2 groups. 7 documents are in" in report.summary()
    )
    assert [each.text for each in read_documents(output)] == [*TEXTS, texts[8]]

    with pytest.raises(ConfigurationError, match="exists already"):
        dedupe(source, output)
    assert dedupe(source, output, near=False, overwrite=True).kept == 8
    assert dedupe(source, output, similarity=1.0, overwrite=True).kept == 8


def test_values_of_other_kinds_and_columns_named_as_ours(tmp_path: Path) -> None:
    output = tmp_path / "kept.jsonl"
    metadata = {"id": "other", "text": "other", "day": date(2020, 1, 2), "none": None}
    dedupe([Document("a", TEXTS[0], metadata=metadata), Document("b", TEXTS[0])], output)
    assert lines(output) == [{"id": "a", "text": TEXTS[0], "day": "2020-01-02", "none": None}]
    assert lines(tmp_path / "kept.removed.jsonl") == [{"id": "b", "copy_of": "a"}]


def test_what_cannot_be_written_is_said_first(tmp_path: Path) -> None:
    source = tmp_path / "kept.jsonl"
    source.write_text('{"text": "a b c"}\n')
    with pytest.raises(ConfigurationError, match="holds the documents"):
        dedupe(source, source, overwrite=True)
    with pytest.raises(ConfigurationError, match="no file of JSON lines"):
        dedupe(source, tmp_path / "kept.csv")
    (tmp_path / "other.removed.jsonl").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"other\.removed\.jsonl exists already"):
        dedupe(source, tmp_path / "other.jsonl")


class Growing(list[str]):
    """Texts that are one more each time they are read."""

    def __iter__(self) -> Any:
        self.append(f"{len(self)} more")
        return super().__iter__()


def test_a_source_that_changes_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="changed while it was read"):
        dedupe(Growing(TEXTS), tmp_path / "kept.jsonl")
    with pytest.raises(DataError, match="only once"):
        dedupe(iter(TEXTS), tmp_path / "kept.jsonl")
    assert list(tmp_path.iterdir()) == []
