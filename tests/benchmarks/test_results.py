"""Records, pages, timing and readers, which all benchmarks share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from benchmarks.pages import RESULTS, records, render, table
from benchmarks.readers import embed_in_pieces, tfidf_rows
from benchmarks.records import difference, mean_deviation
from benchmarks.timing import ratio, ratio_range, side_by_side
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.files import read_json


@pytest.mark.parametrize("path", records(), ids=lambda path: str(path.relative_to(RESULTS)))
def test_pages_match_their_records(path: Path) -> None:
    """If this fails, run python -m benchmarks.pages."""
    assert render(path.stem, read_json(path)) == path.with_suffix(".md").read_text(encoding="utf-8")


def test_tables_drop_empty_rows_and_columns() -> None:
    rows = [{"": "one", "a": "1", "b": ""}, {"": "two", "b": "", "c": "3"}, {"": "none", "a": ""}]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(rows).splitlines()]
    assert [lines[0], *lines[2:]] == [["", "a", "c"], ["one", "1", ""], ["two", "", "3"]]


def test_means_and_differences_are_formatted() -> None:
    assert mean_deviation([0.5, 0.6, 0.7]) == "60.0 ± 10.0"
    assert mean_deviation([0.5], digits=3, factor=1) == "0.500"
    assert mean_deviation(np.array([[1.0, 3.0]]), factor=1) == "2.0 ± 1.4"
    assert difference(np.array([2.0, 2.0, 2.0])) == "+2.0 [+2.0, +2.0]"


def test_jobs_take_turns_after_a_warm_up() -> None:
    calls: list[str] = []
    now = 0.0

    def job(name: str, seconds: list[float]) -> None:
        nonlocal now
        calls.append(name)
        now += seconds[calls.count(name) - 1]

    jobs = {"a": lambda: job("a", [9, 4, 6, 5]), "b": lambda: job("b", [9, 1, 2, 4])}
    seconds = side_by_side(jobs, 3, clock=lambda: now)
    assert calls == ["a", "b"] * 4
    assert seconds == {"a": [4, 6, 5], "b": [1, 2, 4]}
    assert ratio(seconds["a"], seconds["b"]) == 5 / 2
    assert ratio_range(seconds["a"], seconds["b"]) == (5 / 4, 4)


def test_interrupted_embedding_keeps_pieces(model: SentenceTransformer, documents: list[str], tmp_path: Path) -> None:
    calls: list[int] = []

    def part(start: int, stop: int) -> Any:
        calls.append(stop - start)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return model.encode(documents[start:stop])

    with pytest.raises(KeyboardInterrupt):
        embed_in_pieces(tmp_path, part, len(documents), piece=20)
    embeddings = embed_in_pieces(tmp_path, part, len(documents), piece=20)
    assert calls == [20, 20, 8, 8]
    assert embeddings == pytest.approx(model.encode(documents), abs=1e-5)


def test_rotation_of_tfidf_keeps_inner_products(documents: list[str]) -> None:
    plain = fit_tfidf(documents).transform(documents).toarray()
    rows = tfidf_rows(documents)
    assert rows.shape[1] <= len(documents)
    np.testing.assert_allclose(rows @ rows.T, plain @ plain.T, atol=1e-5)
