"""Parquet files: the columns that are read, and errors that name broken files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_support import texts, texts_and_skipped

from simlte_st.errors import DataError
from simlte_st.reading.documents import read_documents


def test_parquet_reads_only_needed_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.parquet"
    number = 1000
    table = pa.table({"doc_id": list(range(number)), "text": [f"t{n}" for n in range(number)], "big": ["x"] * number})
    pq.write_table(table, path, row_group_size=300)
    asked: list[list[str]] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: Any, *args: Any, **settings: Any) -> Any:
        asked.append(settings["columns"])
        return original(self, *args, **settings)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [(str(n), f"t{n}") for n in range(number)]
    assert asked == [["text", "doc_id"]]
    assert reader.report.id_column == "doc_id"


def test_parquet_rows_without_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a", None]}), tmp_path / "c.parquet")
    assert texts_and_skipped(tmp_path / "c.parquet") == (["a"], {"not a string": 1})


def test_parquet_columns_and_labels(tmp_path: Path) -> None:
    path, review = tmp_path / "c.parquet", pa.array(["good"]).dictionary_encode()
    pq.write_table(pa.table({"review": review, **{f"n{number}": [number] for number in range(10_000)}}), path)
    assert texts(path) == ["good"]
    with pytest.raises(DataError, match=r"no column 'body'.*review, n0, n1, .*, n28 and 9,971 more\."):
        texts(path, text_column="body")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features).to_parquet(str(path))
    assert [document.label for document in read_documents(path, label_column="label")] == ["yes", "no"]


def test_parquet_broken_in_a_later_row_group(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    values = [os.urandom(50).hex() for _ in range(1000)]
    pq.write_table(pa.table({"text": values}), path, row_group_size=500, compression="snappy", use_dictionary=False)
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    reader = read_documents(path)
    read: list[str] = []
    with pytest.raises(DataError, match=r", after (384|500) documents had"):
        read.extend(document.text for document in reader)
