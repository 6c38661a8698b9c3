from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from benchmarks.papers.document_similarity import document_similarity
from simlte_st.evaluation import CosineScores


def judged(n: int, noise: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings, all pairs, and judgements that follow their cosine with noise."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 4))
    pairs = np.column_stack(np.triu_indices(n, k=1))
    return x, pairs, CosineScores(x).pairs(pairs) + noise * generator.normal(size=len(pairs))


def test_correlations_are_scipys() -> None:
    x, pairs, people = judged(30)
    people = np.round(people, 1)  # with ties
    found = document_similarity(CosineScores(x), pairs, people)
    cosine = CosineScores(x).pairs(pairs)
    assert found["pearson"] == pytest.approx(pearsonr(cosine, people).statistic)
    assert found["spearman"] == pytest.approx(spearmanr(cosine, people).statistic)
    for name in ("pearson", "spearman"):
        assert found[f"{name}_low"] < found[name] < found[f"{name}_high"]
    assert found["pairs"] == 30 * 29 // 2
    assert document_similarity(CosineScores(x), pairs, people) == found
    assert document_similarity(CosineScores(x), pairs, people, seed=1)["pearson_low"] != found["pearson_low"]


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
        if len(set(rows)) > 1:
            drawn.append(pearsonr(cosine[rows], people[rows]).statistic)
    found = document_similarity(CosineScores(x), pairs, people, resamples=50, seed=7)
    assert (found["pearson_low"], found["pearson_high"]) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_a_collapsed_model_knows_nothing() -> None:
    _, pairs, people = judged(12)
    for x in (np.zeros((12, 3)), np.tile(np.random.default_rng(0).normal(size=767), (12, 1))):
        found = document_similarity(CosineScores(x), pairs, people)
        assert {value for name, value in found.items() if name != "pairs"} == {0.0}


def test_the_numbers_are_sentence_transformers(
    tiny_model_for_evaluation: Callable[..., SentenceTransformer], labelled_texts: tuple[list[str], list[str]]
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts[0][:20], labelled_texts[1][:20]
    pairs = np.column_stack(np.triu_indices(20, k=1))
    people = np.array([float(labels[a] == labels[b]) for a, b in pairs])
    found = document_similarity(CosineScores(model.encode(texts)), pairs, people)
    theirs = EmbeddingSimilarityEvaluator(
        [texts[a] for a, _ in pairs], [texts[b] for _, b in pairs], people.tolist(), main_similarity="cosine"
    )(model)
    assert found["pearson"] == pytest.approx(theirs["pearson_cosine"], abs=1e-4)
    assert found["spearman"] == pytest.approx(theirs["spearman_cosine"], abs=1e-3)
