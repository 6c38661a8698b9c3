from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import make_document

import benchmarks.records
import benchmarks.similarity
from benchmarks.similarity import main
from simlte_st.evaluation import TfidfScores, document_similarity
from simlte_st.files import read_json


def test_a_run(encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [make_document(number % 5, sentences=3) + " " + make_document(number, sentences=3) for number in range(15)]
    rows = np.arange(15)
    people = (rows[:, None] % 5 == rows % 5) + np.random.default_rng(0).normal(scale=0.1, size=(15, 15))
    pq.write_table(pa.table({"text": texts}), tmp_path / "lee_documents.parquet")
    pq.write_table(pa.table({"text": texts[:3]}), tmp_path / "lee_background.parquet")
    (tmp_path / "lee_similarities_50x50.json").write_text(json.dumps(np.triu(people).tolist()), encoding="utf-8")
    monkeypatch.setattr(benchmarks.records, "RESULTS", tmp_path / "results")
    measure = partial(document_similarity, resamples=100)
    monkeypatch.setattr(benchmarks.similarity, "document_similarity", measure)
    options = ["--data", str(tmp_path), "--base", str(encoder_path), "--work", str(tmp_path / "work")]
    main(options)
    record = read_json(tmp_path / "results" / "similarity.json")
    names = ["TF-IDF", "TF-IDF, frequencies of the background too", "BM25"]
    assert list(record["readers"]) == [*names, "tiny-encoder, truncated", "tiny-encoder, chunk-mean"]
    pairs = np.column_stack(np.triu_indices(15, k=1))
    expected = measure(TfidfScores(texts), pairs, people[pairs[:, 0], pairs[:, 1]])
    assert record["readers"]["TF-IDF"]["metrics"] == expected.metrics()
    page = (tmp_path / "results" / "similarity.md").read_text(encoding="utf-8")
    assert f"{expected.pearson:.3f} [{expected.pearson_low:.3f}" in page
    assert str(tmp_path) not in page
    main(options)
    assert read_json(tmp_path / "results" / "similarity.json") == record


def test_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    main(["--data", str(tmp_path)])
    assert "lee_documents.parquet is not there" in capsys.readouterr().out
