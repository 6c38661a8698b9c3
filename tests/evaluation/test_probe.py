from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from simlte_st.errors import DataError
from simlte_st.evaluation import FewShotResult, ProbeResult, draw_shots, few_shot_probe, fit_probe, tfidf_parts
from simlte_st.evaluation.probe import INVERSE_L2, RESAMPLES, choose_inverse_l2, macro_f1


def clouds(n: int, noise: float, seed: int = 0, classes: int = 3, dim: int = 16) -> tuple[np.ndarray, np.ndarray]:
    centres = np.random.default_rng(99).normal(size=(classes, dim))
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, n)
    return (centres[y] + noise * generator.normal(size=(n, dim))).astype(np.float32), y


def test_logistic_matches_scikit_learn() -> None:
    (x, y), (tx, ty) = clouds(120, 1.5), clouds(200, 1.5, seed=1)
    predicted = LogisticRegression(max_iter=2000).fit(x, y).predict(tx)
    result = fit_probe(x, y.tolist(), tx, ty.tolist(), inverse_l2=1.0)
    assert (result.predicted.tolist(), result.test.tolist()) == (predicted.tolist(), ty.tolist())
    assert result.accuracy == accuracy_score(ty, predicted)
    assert result.macro_f1 == f1_score(ty, predicted, average="macro")
    assert 0.5 < result.accuracy < 1.0


def test_logistic_chooses_its_regularisation() -> None:
    """With short vectors and unbalanced classes, C = 1 always predicts the largest class."""
    (x, y), (tx, ty) = clouds(150, 0.5), clouds(150, 0.5, seed=1)
    short, uneven = 0.05 * x, np.where(y == 0, 0, np.where(np.arange(150) % 4 == 0, y, 0))
    assert choose_inverse_l2(short, y) > 1.0
    arguments = (short, uneven.tolist(), 0.05 * tx, ty.tolist())
    chosen = choose_inverse_l2(short, uneven, seed=3)
    assert fit_probe(*arguments, seed=3) == fit_probe(*arguments, inverse_l2=chosen)
    noise = np.random.default_rng(0).normal(size=(90, 40)).astype(np.float32)
    assert choose_inverse_l2(noise, np.repeat([0, 1], [80, 10])) == INVERSE_L2[0], "the least of equals, or the best"


def test_class_without_training_examples_counts_as_missed() -> None:
    x = np.array([[5.0, 0.0], [0.0, 5.0]] * 10, dtype=np.float32)
    y = ["a", "c"] * 10
    tx = np.array([[5.0, 0.0], [0.0, 5.0], [5.0, 0.0], [0.0, 5.0]], dtype=np.float32)
    ty = ["a", "c", "b", "b"]
    result = fit_probe(x, y, tx, ty)
    assert result.accuracy == 0.5
    assert result.macro_f1 == pytest.approx(f1_score(ty, ["a", "c", "a", "c"], average="macro", zero_division=0))


X, Y = np.eye(4, dtype=np.float32), [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("x", "y", "tx", "ty"),
    [
        (X, Y[:3], X, Y), (X, Y, X, Y[:2]), (X, [1] * 4, X, [1] * 4), (X, [0, None, 0, 1], X, Y),
        (X * np.nan, Y, X, Y), (X[0], Y, X, Y), (X, Y, X[:0], []),
    ],
)  # fmt: skip
def test_unusable_data_is_refused(x: np.ndarray, y: list, tx: np.ndarray, ty: list) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # scikit-learn's, or a DataError
        fit_probe(x, y, tx, ty)


TEST = np.arange(60) % 3


def probe(right: float, draws: int = 6, test: np.ndarray = TEST, seed: int = 0) -> FewShotResult:
    """Draws that are right with a given probability, each on different texts."""
    generator = np.random.default_rng(seed)
    results = []
    for _ in range(draws):
        predicted = np.where(generator.random(len(test)) < right, test, generator.integers(0, 3, len(test)))
        score = float(f1_score(test, predicted, average="macro"))
        results.append(ProbeResult(float((predicted == test).mean()), score, test, predicted))
    return FewShotResult(tuple(results))


def test_macro_f1_matches_scikit_learn() -> None:
    predicted = np.array([0, 0, 1, 3, 3])
    test = np.array([0, 1, 1, 2, 0])
    weights = np.array([[1, 1, 1, 1, 1], [2, 0, 3, 0, 0], [0, 0, 0, 4, 1]], dtype=np.float64)
    for row, score in zip(weights.astype(int), macro_f1(weights, test, predicted), strict=True):
        repeated = np.repeat(test, row), np.repeat(predicted, row)
        assert score == pytest.approx(f1_score(*repeated, average="macro", zero_division=0.0))


def test_resampled_differences_centre_on_the_difference() -> None:
    base, model = probe(0.5), probe(0.8, seed=1)
    differences = model.resamples() - base.resamples()
    assert differences.shape == (RESAMPLES,)
    assert differences.mean() == pytest.approx(model.macro_f1 - base.macro_f1, abs=0.02)
    assert model.interval(base=base) == tuple(np.quantile(differences, [0.025, 0.975]))
    assert model.interval(base=base) != model.interval(1, base=base)
    assert base.interval(base=base) == (0.0, 0.0)
    low, high = model.interval()
    assert low < model.macro_f1 < high


def test_probes_of_different_texts_cannot_be_compared() -> None:
    for other in (probe(0.5, draws=5), probe(0.5, test=TEST[::-1].copy()), probe(0.5, test=TEST[:30])):
        with pytest.raises(DataError, match="same test texts"):
            other.interval(base=probe(0.5))


def test_few_shot_tfidf_matches_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    labels = ["xyz"[number % 3] for number in range(120)]
    texts = [" ".join(f"w{'xyz'.index(kind) + generator.integers(15)}" for _ in range(20)) for kind in labels]
    train, test = tfidf_parts(texts[:60], texts[60:])
    result = few_shot_probe(train, labels[:60], test, labels[60:], shots=4, draws=3, seed=2, inverse_l2=100.0)
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(texts[:60])
    for draw, found in enumerate(result.draws):
        rows = draw_shots(labels[:60], 4, draw, 2)
        model = LogisticRegression(C=100, max_iter=2000)
        model.fit(vectorizer.transform([texts[row] for row in rows]), [labels[row] for row in rows])
        predicted = model.predict(vectorizer.transform(texts[60:]))
        assert found.accuracy == accuracy_score(labels[60:], predicted)
        assert found.macro_f1 == f1_score(labels[60:], predicted, average="macro")
    assert 0.4 < result.draws[0].accuracy < 1.0
    predict, sizes = LogisticRegression.predict, []
    monkeypatch.setattr(LogisticRegression, "predict", lambda self, x: sizes.append(x.shape) or predict(self, x))
    monkeypatch.setattr("simlte_st.models.vectors._SCRATCH_VALUES", 60 * 7)  # 7 rows of the test set
    parts = (train, labels[:60], test, labels[60:])
    full, intervals = fit_probe(*parts, inverse_l2=100.0), result.interval(base=few_shot_probe(*parts, draws=3))
    assert [rows for rows, _ in sizes[:9]] == [7] * 8 + [4], "dense blocks of a large test set"
    monkeypatch.undo()
    assert full == fit_probe(*parts, inverse_l2=100.0)
    assert intervals == result.interval(base=few_shot_probe(*parts, draws=3))
    assert fit_probe(0 * train, labels[:60], 0 * test, labels[60:]).accuracy == labels[60:].count("x") / 60, "no word"
