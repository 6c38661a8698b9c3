from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from simlte_st.errors import DataError
from simlte_st.evaluation import draw_shots, fit_probe, tfidf_few_shot, tfidf_probe
from simlte_st.evaluation.probe import RESAMPLES, FewShotResult, ProbeResult, macro_f1

TEST = np.arange(60) % 3


def probe(right: float, draws: int = 6, test: np.ndarray = TEST, seed: int = 0) -> FewShotResult:
    """Draws that are right with a probability, each about other texts."""
    generator = np.random.default_rng(seed)
    results = []
    for _ in range(draws):
        predicted = np.where(generator.random(len(test)) < right, test, generator.integers(0, 3, len(test)))
        score = float(f1_score(test, predicted, average="macro"))
        results.append(ProbeResult(float((predicted == test).mean()), score, test, predicted))
    return FewShotResult(tuple(results))


def test_macro_f1_is_scikit_learns() -> None:
    predicted = np.array([0, 0, 1, 3, 3])
    test = np.array([0, 1, 1, 2, 0])
    weights = np.array([[1, 1, 1, 1, 1], [2, 0, 3, 0, 0], [0, 0, 0, 4, 1]], dtype=np.float64)
    for row, score in zip(weights.astype(int), macro_f1(weights, test, predicted), strict=True):
        repeated = np.repeat(test, row), np.repeat(predicted, row)
        assert score == pytest.approx(f1_score(*repeated, average="macro", zero_division=0.0))


def test_differences_surround_the_difference() -> None:
    base, model = probe(0.5), probe(0.8, seed=1)
    differences = model.resamples() - base.resamples()
    assert differences.shape == (RESAMPLES,)
    assert differences.mean() == pytest.approx(model.macro_f1 - base.macro_f1, abs=0.02)
    assert model.interval(base=base) == tuple(np.quantile(differences, [0.025, 0.975]))
    assert model.interval(base=base) != model.interval(1, base=base)
    assert base.interval(base=base) == (0.0, 0.0)
    low, high = model.interval()
    assert low < model.macro_f1 < high


def test_probes_of_other_texts_cannot_be_compared() -> None:
    for other in (probe(0.5, draws=5), probe(0.5, test=TEST[::-1].copy()), probe(0.5, test=TEST[:30])):
        with pytest.raises(DataError, match="same test texts"):
            other.interval(base=probe(0.5))


WORDS = [f"word{i}" for i in range(80)]


def labelled(n: int, seed: int) -> tuple[list[str], list[str]]:
    generator = np.random.default_rng(seed)
    labels = [("x", "y", "z")[i % 3] for i in range(n)]
    weights = {label: np.roll(np.r_[np.full(20, 2.0), np.full(60, 1.0)], 25 * i) for i, label in enumerate("xyz")}
    texts = [" ".join(generator.choice(WORDS, 25, p=weights[y] / weights[y].sum())) for y in labels]
    return texts, labels


def test_tfidf_probe_is_scikit_learns_pipeline() -> None:
    (texts, labels), (test_texts, test_labels) = labelled(60, 0), labelled(60, 1)
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(texts)
    model = LogisticRegression(C=100, max_iter=2000).fit(vectorizer.transform(texts), labels)
    predicted = model.predict(vectorizer.transform(test_texts))
    result = tfidf_probe(texts, labels, test_texts, test_labels, inverse_l2=100.0)
    assert result.accuracy == accuracy_score(test_labels, predicted)
    assert result.macro_f1 == f1_score(test_labels, predicted, average="macro")
    assert 0.4 < result.accuracy < 1.0


def test_tfidf_few_shot_uses_the_same_draws() -> None:
    (texts, labels), (test_texts, test_labels) = labelled(60, 0), labelled(60, 1)
    result = tfidf_few_shot(texts, labels, test_texts, test_labels, shots=4, draws=3, seed=2)
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(texts)
    x, tx = vectorizer.transform(texts).toarray(), vectorizer.transform(test_texts).toarray()
    for draw in range(3):
        rows = draw_shots(labels, 4, draw, 2)
        expected = fit_probe(x[rows], [labels[i] for i in rows], tx, test_labels, seed=2 + draw)
        assert result.draws[draw].accuracy == pytest.approx(expected.accuracy, abs=0.02)
