"""Documents in shards: their sources, reading from a row, and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Features, IterableDataset, Value

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.reading.document import content_id
from simlte_st.reading.documents import ShardReader, read_documents

ROWS = 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of 100 rows, in row groups of 30."""
    for number in range(3):
        (tmp_path / "files").mkdir(exist_ok=True)
        names = [f"{number}-{row}" for row in range(ROWS)]
        table = pa.table({"name": names, "text": [f"Text {name}." for name in names], "size": range(ROWS)})
        pq.write_table(table, tmp_path / "files" / f"{number}.parquet", row_group_size=30)
    return tmp_path / "files"


def texts(reading: ShardReader) -> list[str]:
    return [document.text for document in reading]


def test_stream_sources(folder: Path) -> None:
    files = sorted(map(str, folder.iterdir()))
    memory = fsspec.filesystem("memory")
    for number, file in enumerate(files):
        memory.pipe(f"/bucket/{number}.parquet", Path(file).read_bytes())
    for place in (folder, str(folder / "*.parquet"), files, "memory://bucket/*.parquet"):
        shards = read_documents(place, stream=True, id_column="name")
        assert [Path(name).name for name in shards.names] == ["0.parquet", "1.parquet", "2.parquet"]
        assert set(shards.dataset.features) == {"name", "text"}, "no other columns are fetched"
        documents = list(ShardReader(shards, [2, 0]))
        assert [document.id for document in documents[:: ROWS - 1]] == ["2-0", "2-99", "0-98"]
        assert documents[-1].text == "Text 0-99."
    assert [document.text for document in shards.first(2, [1, 0])] == ["Text 1-0.", "Text 1-1."]


def test_reading_resumes_from_a_row(folder: Path) -> None:
    shards = read_documents(folder, stream=True)
    whole = texts(ShardReader(shards, [1, 2, 0]))
    reading = ShardReader(shards, [1, 2, 0])
    for read, _ in enumerate(reading, 1):
        if read in (1, 63, 64, 65, 100, 101, 263, 300):
            assert texts(ShardReader(shards, [1, 2, 0], reading.shard, reading.row)) == whole[read:]


def test_skipped_rows_are_counted_and_duplicate_ids_stay(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"id": ["a", "a", None, "b"], "text": ["One.", "Two.", "Three.", None]}), tmp_path / "a.parquet"
    )
    shards = read_documents(tmp_path, stream=True)
    assert [document.id for document in ShardReader(shards, [0])] == ["a", "a", content_id("Three.")]
    first = shards.first(5, [0])
    assert len(list(first)) == 3
    assert first.report.skipped == {"not a string": 1}
    assert first.report.examples["not a string"] == [f"{tmp_path}/a.parquet, row 3: NoneType"]


def test_broken_shard_is_named_after_earlier_ones_are_read(folder: Path) -> None:
    (folder / "1.parquet").write_bytes((folder / "1.parquet").read_bytes()[:-100])
    shards = read_documents(folder, stream=True)
    read = []
    with pytest.raises(DataError, match=r"1\.parquet is truncated") as raised:
        read.extend(document for document in ShardReader(shards, [0, 1, 2]))
    assert "\n" not in str(raised.value)
    assert len(read) == ROWS
    pq.write_table(pa.table({"body": ["Text."]}), folder / "1.parquet")
    with pytest.raises(DataError, match=r"1\.parquet has columns that differ from the first file's"):
        list(ShardReader(shards, [1]))


def test_text_in_a_struct(tmp_path: Path) -> None:
    rows = [{"article": {"body": f"Text {number}.", "size": number}, "other": "x"} for number in range(70)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    shards = read_documents(tmp_path / "a.parquet", stream=True, text_column="article.body", id_column="article.size")
    assert set(shards.dataset.features) == {"article"}, "no other columns are fetched"
    documents = list(ShardReader(shards, [0], 0, 2))
    assert [(document.id, document.text) for document in documents[:: len(documents) - 1]] == [
        ("2", "Text 2."), ("69", "Text 69.")
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"'article' holds"):
        read_documents(tmp_path / "a.parquet", stream=True, text_column="article")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("{folder}", {"text_column": "body"}, "no column 'body'. Its columns are: name, text, size"),
        ("{folder}/none*.parquet", {}, "There is no parquet file at"),
        ("/nowhere/a.parquet", {}, "There is no file or folder '/nowhere/a.parquet'"),
        ("nosuch://bucket/a.parquet", {}, "cannot be opened (ValueError: Protocol not known"),
        ("hub:owner/name", {}, "hub:owner/name cannot be loaded from the Hub"),
        (["a", 5], {}, "A list cannot be read as a stream. A stream can be parquet files"),
    ],
)
def test_unreadable_stream_sources_are_refused(
    folder: Path, source: Any, options: dict[str, str], message: str
) -> None:
    place = source.format(folder=folder) if isinstance(source, str) else source
    with pytest.raises(DataError, match=re.escape(message)):
        read_documents(place, stream=True, **options)


def test_iterable_dataset_is_read_lazily() -> None:
    made = []

    def rows() -> Iterator[dict[str, str]]:
        for number in range(1_000):
            made.append(number)
            yield {"text": f"Text {number}." if number else " "}

    shards = read_documents(
        IterableDataset.from_generator(rows, features=Features({"text": Value("string")})), stream=True
    )
    assert not made
    for document in ShardReader(shards, [0]):
        assert document.text == "Text 1."
        break
    assert len(made) < 100
    with pytest.raises(DataError, match="has no features"):
        read_documents(IterableDataset.from_generator(rows), stream=True)


def test_streams_take_only_column_options(folder: Path) -> None:
    shards = read_documents(folder, stream=True).with_options(label_column="size", id_column="name")
    assert [(document.id, document.label) for document in shards.first(2, [1])] == [("1-0", "0"), ("1-1", "1")]
    assert read_documents(shards) is shards
    for option in ({"limit": 1}, {"mails": True}, {"html": True}, {"metadata": True}, {"encoding": "latin-1"}):
        with pytest.raises(ConfigurationError, match=f"{next(iter(option))}= does not work with stream=True"):
            read_documents(folder, stream=True, **option)


NAMES = ("minutes [2021]", "[!a]", "a*b", "a?b", "**", "{x,y}", "~", "~root", "100%20", "a\nb", "#", "file:x", "-x")


@pytest.mark.parametrize("name", NAMES)
def test_existing_paths_are_not_patterns(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / name).mkdir()
    (folder / "0.parquet").rename(folder / name / f"{name}.parquet")
    for place in (name, f"{name}/{name}.parquet"):
        shards = read_documents(place, stream=True)
        assert len(texts(ShardReader(shards, range(len(shards.names))))) == ROWS
    (folder / name).rename(folder / "a::b")
    with pytest.raises(DataError, match=r"a::b: a path with '::'"):
        read_documents("a::b", stream=True)
