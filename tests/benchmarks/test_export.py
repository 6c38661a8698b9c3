from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import make_document

from benchmarks import export
from simlte_st.files import read_json


def test_small_run(encoder_path: Path, tmp_path: Path) -> None:
    pairs = [
        {
            "sentence1": make_document(row, 1),
            "sentence2": make_document(row + 20, 1),
            "score": float(row),
            "split": "test",
        }
        for row in range(6)
    ]
    papers = [{"id": str(row), "text": make_document(row)} for row in range(5)]
    links = [{"citing": "0", "cited": "1"}, {"citing": "2", "cited": "1"}, {"citing": "3", "cited": "gone"}]
    for file, rows in zip(export.FILES, (pairs, papers, links), strict=True):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / file)
    export.main(["--shared", str(tmp_path), "--models", str(encoder_path), "--output", str(tmp_path / "out")])
    rows = read_json(tmp_path / "out" / "export.json")["rows"]
    assert [row["form"] for row in rows] == ["torch", "onnx", "onnx int8"]
    assert rows[1]["sts"] == pytest.approx(rows[0]["sts"])
    assert rows[0]["cosine"] == pytest.approx(1)
    assert rows[2]["cosine"] < rows[1]["cosine"]
    assert "2 links of AAN" in (tmp_path / "out" / "export.md").read_text(encoding="utf-8")


def test_reciprocal_rank() -> None:
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
    assert export.reciprocal_rank(vectors, [(0, 1), (0, 2), (0, 3)]) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert export.reciprocal_rank(vectors, [(1, 2), (2, 1)]) == 1, "a paper is not ranked for itself"
