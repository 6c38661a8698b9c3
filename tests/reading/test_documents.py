"""The reader: documents and their ids, counts of everything else, and constant memory."""

from __future__ import annotations

import json
import tracemalloc
from operator import length_hint
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import write_jsonl

from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError
from simlte_st.reading.document import Document, content_id
from simlte_st.reading.documents import DocumentReader, read_documents


def pairs(reader: DocumentReader) -> list[tuple[str, str]]:
    return [(document.id, document.text) for document in reader]


def test_each_iteration_starts_a_fresh_report(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "c.jsonl", [{"text": "a", "id": "i"}, {"text": ""}, {"text": "b", "id": "i"}])
    reader = read_documents(path)
    first = list(reader)
    report = reader.report
    assert list(reader) == first == [Document("i", "a"), Document("i#2", "b")]
    assert reader.report is not report
    assert reader.report == report


def test_exhausted_iterator_is_an_error() -> None:
    reader = read_documents(iter(["a"]))
    assert len(list(reader)) == 1
    with pytest.raises(DataError, match="only be read once"):
        iter(reader)
    with pytest.raises(DataError, match="only be read once"):
        reader.with_options(limit=1)


def test_with_options_replaces_options(tmp_path: Path) -> None:
    rows = [{"text": "a", "class": 1}, {"text": "b", "class": 2}]
    for source in (rows, iter(rows), write_jsonl(tmp_path / "c.jsonl", rows)):
        reader = read_documents(source, limit=1).with_options(label_column="class", metadata=True)
        assert [(document.label, document.metadata) for document in reader] == [("1", {"class": 1})]
    with pytest.raises(ConfigurationError, match="limit=0"):
        read_documents(rows).with_options(limit=0)


def test_invalid_characters_are_replaced_and_counted(tmp_path: Path) -> None:
    rows = '{"text": "a\\ud800b"}\n{"text": "\\ud83d\\ude00"}\n{"text": "c", "id": "\\udfff"}\n{"text": "d\\u0000"}\n'
    (tmp_path / "c.jsonl").write_text(rows)
    reader = read_documents(tmp_path / "c.jsonl")
    documents = list(reader)
    assert [document.text for document in documents] == ["a\ufffdb", "\U0001f600", "c", "d"]
    assert documents[2].id == "\ufffd"
    assert reader.report.repaired["invalid characters removed or replaced"] == 2


@pytest.mark.parametrize(
    ("value", "reason"),
    [("", "empty"), (" \n\t\u00a0", "empty"), ("\0\0", "empty"), (None, "not a string"), (3, "not a string"),
     (["a"], "not a string"), ("x" * 21, "too long")],
)  # fmt: skip
def test_unusable_texts_are_skipped_with_an_example(value: object, reason: str) -> None:
    reader = read_documents([{"text": "good"}, {"text": value}], max_characters=20)
    assert [document.text for document in reader] == ["good"]
    assert reader.report.skipped == {reason: 1}
    assert reader.report.examples[reason][0].startswith("item 1")


def test_duplicate_ids_are_made_unique() -> None:
    rows = [{"text": str(number), "id": name} for number, name in enumerate(["a", "a#2", "a", "a", "a#2"])]
    reader = read_documents(rows)
    assert [document.id for document in reader] == ["a", "a#2", "a#3", "a#4", "a#2#2"]
    assert reader.report.repaired == {"duplicate id": 3}


def test_missing_ids_are_made_and_counted() -> None:
    rows = [{"text": "a", "id": "x"}, {"text": "b", "id": " "}, {"text": "c"}, {"text": "d", "id": float("nan")},
            {"text": "e", "id": ["x"]}]  # fmt: skip
    reader = read_documents(rows)
    assert [document.id for document in reader] == ["x", "1", "2", "3", "4"]
    assert reader.report.repaired == {"missing id": 4}


def test_labels_are_opt_in_strings() -> None:
    rows = [{"text": "a", "class": 1}, {"text": "b", "class": None}, {"text": "c"}, {"text": "d", "class": "x"},
            {"text": "e", "class": True}, {"text": "f", "class": 0.5}, {"text": "g", "class": ["y"]}]  # fmt: skip
    reader = read_documents(rows, label_column="class")
    assert [document.label for document in reader] == ["1", None, None, "x", "True", "0.5", None]
    assert reader.report.repaired == {"label not usable": 1}
    assert reader.report.label_column == "class"
    assert {document.label for document in read_documents(rows)} == {None}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"body": "no", "text": "yes"}, "text"),
        ({"message": "no", "content": "yes"}, "content"),
        ({"id": "i", "Text": "yes"}, "Text"),
        ({"content": 3, "body": "yes"}, "body"),
        ({"id": "i", "review": "yes", "stars": 3}, "review"),
    ],
)
def test_text_column_is_detected(row: dict[str, object], expected: str) -> None:
    reader = read_documents([row])
    assert [document.text for document in reader] == ["yes"]
    assert reader.report.text_column == expected


@pytest.mark.parametrize("source", ["nowhere/at-all.jsonl", "A document given as itself. " * 400, "nul\0", ""])
def test_missing_source_is_an_error(source: str) -> None:
    with pytest.raises(DataError, match=r"(?s)no file or folder.*hub:NAME"):
        read_documents(source)


@pytest.mark.parametrize("source", [{"text": "a"}, b"bytes", 3, datasets.DatasetDict(), "/bin/sh"])
def test_invalid_sources_are_refused(source: Any) -> None:
    with pytest.raises(DataError, match=r"not a source|unknown format"):
        read_documents(source)


def test_documents_and_readers_are_sources(tmp_path: Path) -> None:
    given = [Document("x", "a", "good", "test"), Document("y", "b")]
    assert list(read_documents(given)) == list(read_documents(iter(given))) == given
    ids = [document.id for document in read_documents([*given, "c", {"text": "d"}])]
    assert ids == ["x", "y", content_id("c"), "3"]
    assert [document.id for document in read_documents([given[0], given[0]])] == ["x", "x#2"]
    reader = read_documents(given)
    assert read_documents(reader) is reader
    for setting in ({"limit": 1}, {"text_column": "body"}):
        with pytest.raises(ConfigurationError, match="already a reader"):
            read_documents(reader, **setting)  # type: ignore[arg-type]


def test_large_file_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    line = json.dumps({"text": "word " * 2000}) + "\n"
    path.write_text(line * 3000)
    assert path.stat().st_size > 30e6
    reader = read_documents(path)
    tracemalloc.start()
    try:
        assert sum(1 for _ in reader) == 3000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10e6
    assert reader.report.characters == 30_000_000


@settings(max_examples=40)
@given(st.lists(st.one_of(st.text(max_size=20), st.none(), st.integers(), st.text("\ud800\udfff\0 a", max_size=5))))
def test_every_row_is_a_document_or_counted(texts: list[Any]) -> None:
    reader = read_documents([{"text": text} for text in texts], max_characters=15)
    documents: list[Document] = []
    try:
        documents.extend(reader)
    except EmptyCorpusError:
        assert not documents
    report = reader.report
    assert report.documents == len(documents)
    assert report.documents + sum(report.skipped.values()) == len(texts)
    assert len({document.id for document in documents}) == len(documents)
    for document in documents:
        assert document.text.encode("utf-8")
        assert document.text.strip()
        assert "\0" not in document.text


def test_metadata_keeps_all_other_columns(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "x y", "year": 3, "kind": ["b"]}, {"id": "c", "text": "z", "more": None}]
    wanted = [{"year": 3, "kind": ["b"]}, {"more": None}]
    jsonl = write_jsonl(tmp_path / "rows.jsonl", rows)
    for source in (rows, jsonl):
        read = list(read_documents(source, metadata=True))
        assert [document.metadata for document in read] == wanted
        assert [document.metadata for document in read_documents(source)] == [None, None]
    assert list(read_documents(read)) == read, "documents keep theirs"
    assert len({*read}) == 2

    columns = {"body": ["x y", "z"], "id": ["a", "c"], "kind": [0, 1], "year": [1.5, None]}
    features = {"body": "string", "id": "string", "year": "float64"}
    kinds = datasets.ClassLabel(names=["news", "sport"])
    dataset = datasets.Dataset.from_dict(
        columns, datasets.Features({"kind": kinds, **{name: datasets.Value(kind) for name, kind in features.items()}})
    )
    dataset.to_parquet(tmp_path / "rows.parquet")
    wanted = [{"kind": "news", "year": 1.5}, {"kind": "sport", "year": None}]
    for source in (dataset, dataset.to_iterable_dataset(), tmp_path / "rows.parquet"):
        assert [document.metadata for document in read_documents(source, metadata=True)] == wanted
    frame = dataset.to_pandas()
    assert [document.metadata["kind"] for document in read_documents(frame, metadata=True)] == [0, 1]  # type: ignore
    labelled = next(iter(read_documents(jsonl, label_column="year", metadata=True)))
    assert (labelled.label, labelled.metadata) == ("3", {"year": 3, "kind": ["b"]})


def test_length_hint_is_the_number_of_rows(tmp_path: Path) -> None:
    for name in ("a.txt", "b.md", "c.png"):
        (tmp_path / name).write_text("Words.")
    pq.write_table(pa.table({"text": ["One.", "", "Three."]}), tmp_path / "table.parquet")
    (tmp_path / "lines.jsonl").write_text('{"text": "One."}\n{"text": "Two."}\n')

    def hint(source: Any, **options: Any) -> int:
        return length_hint(read_documents(source, **options), -1)

    assert hint(["One.", "Two."]) == 2
    assert hint(tmp_path) == -1
    assert hint(["One.", "Two."], limit=1) == 1
    assert hint(tmp_path / "table.parquet") == 3
    assert hint(tmp_path / "lines.jsonl", limit=5) == 5
    assert hint(tmp_path / "lines.jsonl") == hint(text for text in ["One."]) == -1
    reader = read_documents(tmp_path / "table.parquet")
    assert len(list(reader)) == length_hint(reader) == 2, "what was read is known"
