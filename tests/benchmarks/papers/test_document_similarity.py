from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from benchmarks.bm25 import Bm25Scores
from benchmarks.papers.document_similarity import document_similarity, load_lee
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import CosineScores, TfidfScores

Build = Callable[..., SentenceTransformer]


def judged(n: int, dim: int = 4, noise: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings, all pairs, and judgements that follow their cosine with noise."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, dim))
    pairs = np.column_stack(np.triu_indices(n, k=1))
    return x, pairs, CosineScores(x).pairs(pairs) + noise * generator.normal(size=len(pairs))


def test_correlations_are_scipys() -> None:
    x, pairs, people = judged(30)
    people = np.round(people, 1)  # with ties
    result = document_similarity(CosineScores(x), pairs, people)
    cosine = CosineScores(x).pairs(pairs)
    assert result.pearson == pytest.approx(pearsonr(cosine, people).statistic)
    assert result.spearman == pytest.approx(spearmanr(cosine, people).statistic)
    assert result.pearson_low < result.pearson < result.pearson_high
    assert result.spearman_low < result.spearman < result.spearman_high
    assert result.pairs == 30 * 29 // 2
    assert list(result.metrics()) == [
        *("pearson", "pearson_low", "pearson_high", "spearman", "spearman_low", "spearman_high", "pairs")
    ]


def test_intervals_are_over_documents() -> None:
    """They cover what other documents would have given, which intervals over pairs would not."""
    x, pairs, people = judged(20, noise=0.0)
    people = people + 0.8 * np.random.default_rng(5).normal(size=20)[pairs].sum(axis=1)  # some are found alike to all
    result = document_similarity(CosineScores(x), pairs, people)
    cosine = CosineScores(x).pairs(pairs)
    generator = np.random.default_rng(0)
    naive = []
    for _ in range(500):
        rows = generator.integers(0, len(pairs), len(pairs))
        naive.append(pearsonr(cosine[rows], people[rows]).statistic)
    width = np.quantile(naive, 0.975) - np.quantile(naive, 0.025)
    assert result.pearson_high - result.pearson_low > 1.2 * width


def test_a_resample_takes_a_pair_as_often_as_both_its_documents() -> None:
    x, pairs, people = judged(6, noise=0.5, seed=3)
    cosine = CosineScores(x).pairs(pairs)
    generator = np.random.default_rng(7)
    drawn = []
    for _ in range(50):
        documents = generator.integers(0, 6, 6).tolist()
        rows = [
            row for row, (a, b) in enumerate(pairs.tolist()) for _ in range(documents.count(a) * documents.count(b))
        ]
        if len(rows) > 0 and len(set(rows)) > 1:
            drawn.append(pearsonr(cosine[rows], people[rows]).statistic)
    result = document_similarity(CosineScores(x), pairs, people, resamples=50, seed=7)
    assert (result.pearson_low, result.pearson_high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_seed_decides() -> None:
    x, pairs, people = judged(15)
    state = np.random.get_state()[1].copy()
    first = document_similarity(CosineScores(x), pairs, people, resamples=100)
    assert np.array_equal(state, np.random.get_state()[1])
    assert document_similarity(CosineScores(x), pairs, people, resamples=100) == first
    other = document_similarity(CosineScores(x), pairs, people, resamples=100, seed=1)
    assert other.pearson == first.pearson
    assert other.pearson_low != first.pearson_low


def test_a_collapsed_model_knows_nothing() -> None:
    _, pairs, people = judged(12)
    point = np.random.default_rng(0).normal(size=767)
    for x in (np.zeros((12, 3)), np.tile(point, (12, 1))):
        result = document_similarity(CosineScores(x), pairs, people)
        assert (result.pearson, result.spearman, result.spearman_high) == (0.0, 0.0, 0.0)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 12))
def test_correlations_lie_between_minus_1_and_1(seed: int, n: int) -> None:
    x, pairs, people = judged(n, noise=1.0, seed=seed)
    result = document_similarity(CosineScores(x), pairs, people, resamples=30)
    for name, value in result.metrics().items():
        assert name == "pairs" or -1.0 - 1e-9 <= value <= 1.0 + 1e-9


def test_bags_of_words_and_the_order_of_two_texts() -> None:
    texts = ["cats and dogs play", "cats and dogs sleep all day", "stocks fell on monday", "stocks rose"]
    pairs = np.column_stack(np.triu_indices(4, k=1))
    people = [0.9, 0.1, 0.1, 0.1, 0.1, 0.8]
    for scores in (TfidfScores(texts), Bm25Scores(texts)):
        result = document_similarity(scores, pairs, people)
        assert result.pearson > 0.8
        assert document_similarity(scores, pairs[:, ::-1], people).pearson == pytest.approx(result.pearson)


def test_refusals() -> None:
    scores = CosineScores(np.eye(4))
    for pairs, people in (
        ([(0, 1), (1, 2)], [0.5]),
        ([(0, 1), (1, 2)], [0.5, np.nan]),
        ([(0, 1), (1, 2)], [0.5, 0.5]),
        ([(0, 1), (1, 4)], [0.5, 0.6]),
        ([], []),
    ):
        with pytest.raises(DataError):
            document_similarity(scores, pairs, people)
    with pytest.raises(ConfigurationError):
        document_similarity(scores, [(0, 1), (1, 2)], [0.5, 0.6], resamples=0)


def test_the_numbers_are_sentence_transformers(
    tiny_model_for_evaluation: Build, labelled_texts: tuple[list[str], list[str]]
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts[0][:20], labelled_texts[1][:20]
    pairs = np.column_stack(np.triu_indices(20, k=1))
    people = np.array([float(labels[a] == labels[b]) for a, b in pairs])
    result = document_similarity(CosineScores(model.encode(texts)), pairs, people)
    theirs = EmbeddingSimilarityEvaluator(
        [texts[a] for a, _ in pairs], [texts[b] for _, b in pairs], people.tolist(), main_similarity="cosine"
    )(model)
    assert result.pearson == pytest.approx(theirs["pearson_cosine"], abs=1e-4)
    assert result.spearman == pytest.approx(theirs["spearman_cosine"], abs=1e-3)
    assert result.pearson > 0.2  # random weights still tell words apart


def write_lee(folder: Path, texts: list[str], matrix: list[list[float]]) -> None:
    pq.write_table(pa.table({"id": list(range(len(texts))), "text": texts}), folder / "lee_documents.parquet")
    (folder / "lee_similarities_50x50.json").write_text(json.dumps(matrix), encoding="utf-8")


def test_load_lee_reads_the_upper_triangle(tmp_path: Path) -> None:
    write_lee(tmp_path, ["a", "b", "c"], [[1.0, 0.3, 0.2], [0.0, 1.0, 0.9], [0.0, 0.0, 1.0]])
    lee = load_lee(tmp_path)
    assert lee.texts == ["a", "b", "c"]
    assert lee.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert lee.scores.tolist() == [0.3, 0.2, 0.9]


def test_load_lee_refuses_what_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"lee_documents\.parquet is not"):
        load_lee(tmp_path)
    write_lee(tmp_path, ["a", "b", "c"], [[1.0, 0.3], [0.0, 1.0]])
    with pytest.raises(DataError, match=r"\(2, 2\), .* 3"):
        load_lee(tmp_path)
