from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.neural_network import MLPClassifier

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import fit_probe, probe
from simlte_st.evaluation.probe import INVERSE_L2, choose_inverse_l2, default_epochs


def clouds(n: int, noise: float, seed: int = 0, classes: int = 3, dim: int = 16) -> tuple[np.ndarray, np.ndarray]:
    centres = np.random.default_rng(99).normal(size=(classes, dim))
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, n)
    return (centres[y] + noise * generator.normal(size=(n, dim))).astype(np.float32), y


def test_logistic_is_scikit_learns_own() -> None:
    (x, y), (tx, ty) = clouds(120, 1.5), clouds(200, 1.5, seed=1)
    predicted = LogisticRegression(max_iter=2000).fit(x, y).predict(tx)
    result = fit_probe(x, y.tolist(), tx, ty.tolist(), head="logistic", inverse_l2=1.0)
    assert (result.predicted.tolist(), result.test.tolist()) == (predicted.tolist(), ty.tolist())
    assert result.accuracy == accuracy_score(ty, predicted)
    assert result.macro_f1 == f1_score(ty, predicted, average="macro")
    assert 0.5 < result.accuracy < 1.0


def test_logistic_chooses_how_much_it_is_held_back() -> None:
    """On short vectors and uneven classes C = 1 answers with the largest class."""
    (x, y), (tx, ty) = clouds(150, 0.5), clouds(150, 0.5, seed=1)
    short, uneven = 0.05 * x, np.where(y == 0, 0, np.where(np.arange(150) % 4 == 0, y, 0))
    assert choose_inverse_l2(short, y) > 1.0
    arguments = (short, uneven.tolist(), 0.05 * tx, ty.tolist())
    chosen = choose_inverse_l2(short, uneven, seed=3)
    assert fit_probe(*arguments, head="logistic", seed=3) == fit_probe(*arguments, head="logistic", inverse_l2=chosen)
    noise = np.random.default_rng(0).normal(size=(90, 40)).astype(np.float32)
    assert choose_inverse_l2(noise, np.repeat([0, 1], [80, 10])) == INVERSE_L2[0], "the least of equals, or the best"


def test_logistic_chooses_where_it_can() -> None:
    eye = np.eye(4, dtype=np.float32)
    assert choose_inverse_l2(eye, np.arange(4)) == 10.0, "none can be left out"
    assert choose_inverse_l2(csr_matrix(eye), np.array([0, 0, 0, 1])) in INVERSE_L2, "a class is in one fold only"
    (x, y), many = clouds(120, 1.0), clouds(9000, 1.0)
    assert choose_inverse_l2(x, y, seed=5) == choose_inverse_l2(x, y, seed=5)
    assert choose_inverse_l2(*many) in INVERSE_L2


def test_mlp_agrees_with_scikit_learns() -> None:
    (x, y), (tx, ty) = clouds(200, 1.5), clouds(600, 1.5, seed=1)
    result = fit_probe(x, y.tolist(), tx, ty.tolist())
    other = MLPClassifier((16,), batch_size=8, learning_rate_init=3e-4, max_iter=80, random_state=0, tol=0.0)
    with pytest.warns(Warning, match="Maximum iterations"):
        predicted = other.fit(x, y).predict(tx)
    assert default_epochs(200, 8) == 80
    assert result.accuracy == pytest.approx(accuracy_score(ty, predicted), abs=0.03)
    assert result.macro_f1 == pytest.approx(f1_score(ty, predicted, average="macro"), abs=0.03)
    assert 0.6 < result.accuracy < 0.99


def test_mlp_learns_what_no_linear_head_can() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, size=(400, 2)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int).tolist()
    mlp = fit_probe(x[:300], y[:300], x[300:], y[300:], hidden=32, learning_rate=3e-3)
    linear = fit_probe(x[:300], y[:300], x[300:], y[300:], head="logistic")
    assert mlp.accuracy > 0.9 > 0.7 > linear.accuracy


def test_several_hidden_layers_agree_with_scikit_learns() -> None:
    (x, y), (tx, ty) = clouds(200, 1.5), clouds(600, 1.5, seed=1)
    other = MLPClassifier((32, 16), batch_size=8, learning_rate_init=3e-4, max_iter=80, random_state=0, tol=0.0)
    with pytest.warns(Warning, match="Maximum iterations"):
        predicted = other.fit(x, y).predict(tx)
    result = fit_probe(x, y.tolist(), tx, ty.tolist(), hidden=(32, 16))
    assert result.accuracy == pytest.approx(accuracy_score(ty, predicted), abs=0.03)
    arguments = (x, y.tolist(), tx, ty.tolist())
    assert fit_probe(*arguments, hidden=[16], epochs=5) == fit_probe(*arguments, hidden=16, epochs=5)


@pytest.mark.parametrize(("rows", "batch", "epochs"), [(10, 8, 1000), (100, 8, 154), (1600, 8, 10), (9999, 8, 10)])
def test_epoch_rule(rows: int, batch: int, epochs: int) -> None:
    assert default_epochs(rows, batch) == epochs
    assert epochs >= 10
    assert epochs * -(-rows // batch) >= 2000


def test_mlp_is_determined_by_its_seed_and_leaves_the_global_state_alone() -> None:
    (x, y), (tx, ty) = clouds(40, 3.0), clouds(300, 3.0, seed=1)
    arguments = (x, y.tolist(), tx, ty.tolist())
    torch.manual_seed(1)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    numpy_state = np.random.get_state()[1].copy()
    first = fit_probe(*arguments, epochs=20)
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads
    assert np.array_equal(numpy_state, np.random.get_state()[1])
    torch.manual_seed(2)
    assert first == fit_probe(*arguments, epochs=20)
    assert len({fit_probe(*arguments, epochs=20, seed=seed).macro_f1 for seed in range(5)}) > 1


def test_mlp_works_without_gradients_around_it() -> None:
    (x, y), (tx, ty) = clouds(40, 1.0), clouds(40, 1.0, seed=1)
    arguments = (x, y.tolist(), tx, ty.tolist())
    outside = fit_probe(*arguments, epochs=20)
    with torch.no_grad():
        assert fit_probe(*arguments, epochs=20) == outside
    with torch.inference_mode():
        assert fit_probe(*arguments, epochs=20) == outside


@pytest.mark.parametrize("head", ["mlp", "logistic"])
def test_class_only_in_the_test_part_counts_as_missed(head: str, caplog: pytest.LogCaptureFixture) -> None:
    x = np.array([[5.0, 0.0], [0.0, 5.0]] * 10, dtype=np.float32)
    y = ["a", "c"] * 10
    tx = np.array([[5.0, 0.0], [0.0, 5.0], [5.0, 0.0], [0.0, 5.0]], dtype=np.float32)
    ty = ["a", "c", "b", "b"]
    result = fit_probe(x, y, tx, ty, head=head)  # type: ignore[arg-type]
    assert "no training example" in caplog.text
    assert "count as missed: b" in caplog.text
    assert result.accuracy == 0.5
    assert result.macro_f1 == pytest.approx(f1_score(ty, ["a", "c", "a", "c"], average="macro", zero_division=0))


def test_strings_and_integers_score_alike() -> None:
    (x, y), (tx, ty) = clouds(60, 1.5), clouds(60, 1.5, seed=1)
    names = np.array(["red", "green", "blue"])
    by_number = fit_probe(x, y.tolist(), tx, ty.tolist(), head="logistic")
    assert fit_probe(x, y, tx, ty, head="logistic") == by_number
    assert fit_probe(x, names[y], tx, names[ty], head="logistic").accuracy == by_number.accuracy


X = np.eye(4, dtype=np.float32)


@pytest.mark.parametrize(
    ("x", "y", "tx", "ty"),
    [
        (X, [0, 1, 0], X, [0, 1, 0, 1]),
        (X, [0, 1, 0, 1], X, [0, 1]),
        (X, [1, 1, 1, 1], X, [1, 1, 1, 1]),
        (X, [0, 1, 0, 1], X[:, :3], [0, 1, 0, 1]),
        (X, [0, 1, 0, 1], X, ["0", "1", "0", "1"]),
        (X, [0, "1", 0, "1"], X, [0, 1, 0, 1]),
        (X, [0, None, 0, 1], X, [0, 1, 0, 1]),
        (X * np.nan, [0, 1, 0, 1], X, [0, 1, 0, 1]),
        (X[0], [0, 1, 0, 1], X, [0, 1, 0, 1]),
        (X, [0, 1, 0, 1], X[:0], []),
    ],
)
@pytest.mark.parametrize("head", ["mlp", "logistic"])
def test_unusable_data_is_refused(head: str, x: np.ndarray, y: list, tx: np.ndarray, ty: list) -> None:
    with pytest.raises(DataError):
        fit_probe(x, y, tx, ty, head=head)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"head": "svm"},
        {"probe_batch_size": 0},
        {"epochs": 0},
        {"hidden": 0},
        {"hidden": (8, 0)},
        {"hidden": ()},
        {"learning_rate": 0.0},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict) -> None:
    with pytest.raises(ConfigurationError):
        fit_probe(X, [0, 1, 0, 1], X, [0, 1, 0, 1], **settings)


def test_the_head_is_rectified_and_sees_its_rows_in_another_order_each_pass() -> None:
    x, y = clouds(24, 1.0)
    data, labels = torch.from_numpy(x), torch.from_numpy(y)
    settings = {"batch_size": 8, "learning_rate": 1e-2, "weight_decay": 0.01}
    made = probe._train_mlp(
        data, labels, hidden=[5], epochs=3, generator=torch.Generator().manual_seed(1), **settings
    )  # fmt: skip
    first, last = made[0], made[-1]
    expected = (data @ first.weight.T + first.bias).clamp(min=0) @ last.weight.T + last.bias
    torch.testing.assert_close(made(data), expected)

    generator = torch.Generator().manual_seed(1)
    start = [torch.empty(size) for size in ((5, 16), (5,), (3, 5), (3,))]
    for weight, inputs in zip(start, (16, 16, 5, 5), strict=True):
        weight.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator).requires_grad_()
    optimizer = torch.optim.AdamW(start, lr=1e-2, weight_decay=0.01, fused=True)
    orders = [torch.randperm(24, generator=generator) for _ in range(3)]
    assert not torch.equal(orders[0], orders[1])
    for rows in torch.cat(orders).split(8):
        hidden = (data[rows] @ start[0].T + start[1]).clamp(min=0)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(hidden @ start[2].T + start[3], labels[rows]).backward()
        optimizer.step()
    for found, wanted in zip(made.parameters(), start, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
