"""The frozen-embedding classification probe: how much of a class can be read off an embedding."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from torch import nn
from torch.nn import functional

from simlte_st.config import check_choice, check_count, check_number
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.splits import Label, check_lengths, number_labels
from simlte_st.models.vectors import check_embeddings

Head = Literal["mlp", "logistic"]

# Anything NumPy makes a float array [n, dim] of, or a SciPy sparse matrix (which has no type stubs).
Rows: TypeAlias = Any

# The paper gives no number of epochs. A 20-class set with 5 examples each has 13 batches of 8 in an epoch: a fixed
# small number of epochs would leave the head close to its start, and the probe would measure that instead of the
# embeddings. Hence a least number of updates as well as of passes.
_LEAST_UPDATES = 2000
_LEAST_EPOCHS = 10

INVERSE_L2 = (1.0, 10.0, 100.0, 1000.0)
"""Values from which the logistic head chooses its ``C``."""

_CHOOSE_ROWS = 2000
"""Training rows at most on which it chooses: more take minutes, and choose the same."""

_FOLDS = 3


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Scores of a probe on the test part.

    Attributes:
        accuracy: Share of test texts whose class was predicted.
        macro_f1: Unweighted mean of the F1 scores of the classes among test labels and predictions.
        test: Numbers of the classes of the test texts, shape ``[n_test]``, int64.
        predicted: Numbers of the classes that were predicted, likewise.
    """

    accuracy: float
    macro_f1: float
    test: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)
    predicted: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)


def default_epochs(rows: int, batch_size: int) -> int:
    """Return the number of passes that makes at least 10 passes and at least 2,000 updates."""
    return max(_LEAST_EPOCHS, math.ceil(_LEAST_UPDATES / math.ceil(rows / batch_size)))


def fit_probe(
    train_x: Rows,
    train_y: Sequence[Label],
    test_x: Rows,
    test_y: Sequence[Label],
    head: Head = "mlp",
    seed: int = 0,
    learning_rate: float = 3e-4,
    probe_batch_size: int = 8,
    hidden: int | Sequence[int] | None = None,
    epochs: int | None = None,
    weight_decay: float = 0.01,
    inverse_l2: float | None = None,
) -> ProbeResult:
    """Train a classifier on frozen embeddings and score it on held-out ones.

    ``head="mlp"`` is the MLP of DocSplit (2023, appendix A.1): learning rate 3e-4, batch size 8, cross-entropy. What
    the paper leaves open is set here: one hidden layer as wide as the embedding, ReLU, AdamW, a constant learning rate,
    :func:`default_epochs`, and embeddings as they are, neither standardised nor normalised. First weights and order of
    the batches come from the seed alone; the global random state is neither used nor changed.

    ``head="logistic"`` is scikit-learn's ``LogisticRegression``, several times faster. Its ``C`` is chosen by
    cross-validation: with scikit-learn's 1 it learns only the largest class where embeddings have length 1.

    Args:
        train_x: Training embeddings, shape ``[n_train, dim]``, any float dtype; for a logistic head also a SciPy sparse
            matrix.
        train_y: Training labels, strings or integers.
        test_x: Test embeddings, shape ``[n_test, dim]``.
        test_y: Test labels. A class without training example counts as missed, with a warning.
        head: ``"mlp"`` or ``"logistic"``.
        seed: Seed of the MLP, or of the folds.
        learning_rate: Learning rate of the MLP.
        probe_batch_size: Batch size of the MLP.
        hidden: Width or widths of the MLP's hidden layers; None for one as wide as the embedding.
        epochs: Passes of the MLP over the training rows; None for :func:`default_epochs`.
        weight_decay: AdamW's decoupled weight decay.
        inverse_l2: ``C`` of the logistic regression; None to choose it.

    Raises:
        DataError: Shapes and labels do not fit together, a value is not finite, or there are fewer than two classes.
        ConfigurationError: An unknown head, or a setting out of range.
    """
    check_choice("head", head, get_args(Head))
    train, test = _checked(train_x, head), _checked(test_x, head)
    check_lengths(range(train.shape[0]), train_y, "training")
    check_lengths(range(test.shape[0]), test_y, "test")
    if train.shape[1] != test.shape[1]:
        raise DataError(f"Training and test embeddings differ in dimension: {train.shape[1]} and {test.shape[1]}.")
    _, train_index, test_index = number_labels(train_y, test_y)
    if head == "logistic":
        chosen = choose_inverse_l2(train, train_index, seed) if inverse_l2 is None else inverse_l2
        predicted = _logistic(chosen, train, train_index).predict(test)
    else:
        hidden = [train.shape[1]] if hidden is None else [hidden] if isinstance(hidden, int) else list(hidden)
        least = {"probe_batch_size": probe_batch_size, "hidden": min(hidden, default=0), "epochs": epochs}
        for key, value in least.items():
            if value is not None:
                check_count(key, value)
        check_number("learning_rate", learning_rate, above=0)
        # The encoder may have been called under no_grad or inference_mode; the head needs its own gradients.
        with torch.inference_mode(False), torch.enable_grad(), one_thread():
            mlp = _train_mlp(
                torch.from_numpy(train),
                torch.from_numpy(train_index),
                hidden=hidden,
                epochs=default_epochs(len(train), probe_batch_size) if epochs is None else epochs,
                batch_size=probe_batch_size,
                learning_rate=learning_rate,
                weight_decay=weight_decay,
                generator=torch.Generator().manual_seed(seed),
            )
        with torch.no_grad():
            predicted = mlp(torch.from_numpy(test)).argmax(dim=1).numpy()
    return ProbeResult(
        accuracy=float(accuracy_score(test_index, predicted)),
        macro_f1=float(f1_score(test_index, predicted, average="macro", zero_division=0.0)),
        test=test_index,
        predicted=np.asarray(predicted, dtype=np.int64),
    )


def choose_inverse_l2(x: Rows, y: NDArray[np.int64], seed: int = 0) -> float:
    """Return the smallest ``C`` with the best accuracy in three-fold cross-validation."""
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(y))[:_CHOOSE_ROWS]
    # Row i of a class, in that random order, is in fold i modulo the number of folds.
    order = rows[np.argsort(y[rows], kind="stable")]
    starts = np.searchsorted(y[order], y[order])
    folds = (np.arange(len(order)) - starts) % _FOLDS
    right = np.zeros(len(INVERSE_L2), dtype=np.int64)
    for fold in range(_FOLDS):
        train, test = order[folds != fold], order[folds == fold]
        if len(test) and len(np.unique(y[train])) > 1:
            right += [int((_logistic(c, x[train], y[train]).predict(x[test]) == y[test]).sum()) for c in INVERSE_L2]
    return INVERSE_L2[int(right.argmax())] if np.bincount(y).max() > 1 else 10.0


def _logistic(inverse_l2: float, x: Rows, y: NDArray[np.int64]) -> Any:
    with warnings.catch_warnings():  # with one or two examples a class it asks whether classes are numbers to predict
        warnings.filterwarnings("ignore", "The number of unique classes is greater than")
        # 2,000 iterations because unscaled embeddings often need more than scikit-learn's 100.
        return LogisticRegression(C=inverse_l2, max_iter=2000).fit(x, y)


@contextmanager
def one_thread() -> Iterator[None]:
    """Switch PyTorch to one CPU thread.

    A batch of 8 is too small to share: on a busy machine threads that wait for each other made a probe 20 times slower.
    One thread also makes the numbers independent of the machine's.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _train_mlp(
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    hidden: Sequence[int],
    epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
    generator: torch.Generator,
) -> nn.Sequential:
    """Return a trained MLP, with an output for each class that has training examples."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise([x.shape[1], *hidden, int(y.max()) + 1]):
        # nn.Linear's own start, but for the generator: its own draws come from the global random state.
        layer = nn.utils.skip_init(nn.Linear, inputs, outputs, dtype=torch.float32, device="cpu")
        bound = 1.0 / math.sqrt(inputs)
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        layers += [layer, nn.ReLU()]
    mlp = nn.Sequential(*layers[:-1])
    # Fused, because with batches of 8 the optimiser's walk over the weights costs more than the two layers do.
    optimizer = torch.optim.AdamW(mlp.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=generator, device="cpu")
        for rows in order.split(batch_size):
            optimizer.zero_grad(set_to_none=True)
            loss = functional.cross_entropy(mlp(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
    return mlp


def _checked(x: Rows, head: Head) -> Any:
    """Return checked embeddings: float32 for the MLP, of their own dtype for the logistic regression."""
    if issparse(x):
        if head == "mlp":
            raise ConfigurationError("The MLP head takes dense embeddings; use head='logistic' for a sparse matrix.")
        return check_embeddings(x)
    # A copy where PyTorch would complain: arrays that may not be written to, or with another order in memory.
    return np.require(check_embeddings(x, np.float32 if head == "mlp" else None), requirements=["C", "W"])
