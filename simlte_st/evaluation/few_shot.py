"""The probe with a handful of labelled texts per class, repeated over random draws of those texts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.labels import Label, check_lengths, plain_labels, sorted_classes
from simlte_st.evaluation.probe import Head, ProbeResult, Rows, fit_probe
from simlte_st.evaluation.probe_evaluator import TextProbeEvaluator
from simlte_st.evaluation.statistics import mean_and_deviation

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FewShotResult:
    """Scores over the draws.

    Attributes:
        draws: The result of each draw, in order. Draw i of one model and draw i of another with the same labels,
            shots and seed used the same texts: compare them in pairs.
    """

    draws: tuple[ProbeResult, ...]

    def metrics(self) -> dict[str, float]:
        """Mean and sample deviation of both scores over the draws; with a single draw the deviations are NaN."""
        accuracy = mean_and_deviation([result.accuracy for result in self.draws])
        macro_f1 = mean_and_deviation([result.macro_f1 for result in self.draws])
        return {
            "accuracy_mean": accuracy[0],
            "accuracy_deviation": accuracy[1],
            "macro_f1_mean": macro_f1[0],
            "macro_f1_deviation": macro_f1[1],
        }


def draw_shots(labels: Sequence[Label], shots: int, draw: int, seed: int) -> list[int]:
    """Draw ``shots`` examples of each class without replacement.

    Args:
        labels: The labels to draw from, strings or integers.
        shots: Examples per class. A class that has fewer gives all it has (:func:`few_shot_indices` logs those).
        draw: Number of the draw, from 0. Draws are independent of each other.
        seed: Seed; (seed, draw, labels) decide the result alone.

    Returns:
        Indices into ``labels``, ascending, none twice.

    Raises:
        DataError: No labels, or labels that cannot be used.
        ConfigurationError: ``shots`` below 1, or a negative ``draw`` or ``seed``.
    """
    if shots < 1 or draw < 0 or seed < 0:
        raise ConfigurationError(
            f"shots must be at least 1, draw and seed at least 0; got shots={shots}, draw={draw}, seed={seed}."
        )
    if len(labels) == 0:
        raise DataError("There are no labels to draw from.")
    plain = plain_labels(labels)
    members: dict[Label, list[int]] = {label: [] for label in sorted_classes(plain)}
    for index, label in enumerate(plain):
        members[label].append(index)
    generator = np.random.default_rng([seed, draw])
    drawn: list[int] = []
    for indices in members.values():
        drawn.extend(generator.choice(indices, min(shots, len(indices)), replace=False).tolist())
    return sorted(drawn)


def few_shot_indices(labels: Sequence[Label], shots: int, draws: int, seed: int) -> list[list[int]]:
    """The indices of all draws, with one warning for the classes that have fewer than ``shots`` examples.

    Raises:
        DataError: No labels, or labels that cannot be used.
        ConfigurationError: ``shots`` or ``draws`` below 1, or a negative ``seed``.
    """
    if draws < 1:
        raise ConfigurationError(f"draws must be at least 1, got {draws}.")
    indices = [draw_shots(labels, shots, draw, seed) for draw in range(draws)]
    plain = plain_labels(labels)
    short = {label: count for label in sorted_classes(plain) if (count := plain.count(label)) < shots}
    if short:
        logger.warning(
            "%d classes have fewer than %d examples and give all they have at every draw: %s",
            len(short),
            shots,
            dict(list(short.items())[:10]),
        )
    return indices


def few_shot_probe(
    train_x: Rows,
    train_y: Sequence[Label],
    test_x: Rows,
    test_y: Sequence[Label],
    *,
    shots: int = 5,
    draws: int = 10,
    head: Head = "mlp",
    seed: int = 0,
    **settings: Any,
) -> FewShotResult:
    """Probe with ``shots`` examples per class, ``draws`` times, always scored on the whole test part.

    DocSplit (2023, Appendix A.1) takes 5 or 10 examples per class and the mean over 10 repetitions.

    Args:
        train_x: Embeddings to draw from, shape ``[n_train, dim]``; also a SciPy sparse matrix with a logistic head.
        train_y: Their labels.
        test_x: Test embeddings, shape ``[n_test, dim]``.
        test_y: Their labels.
        shots: Examples per class.
        draws: Repetitions.
        head: ``"mlp"`` or ``"logistic"``.
        seed: Seed of the draws; the MLP of draw i starts from ``seed + i``.
        **settings: Further settings of :func:`~simlte_st.evaluation.fit_probe`.

    Returns:
        The result of every draw.

    Raises:
        DataError: As :func:`~simlte_st.evaluation.fit_probe`.
        ConfigurationError: As :func:`~simlte_st.evaluation.fit_probe`, or a number of shots or draws below 1.
    """
    check_lengths(range(np.shape(train_x)[0]), train_y, "training")
    indices = few_shot_indices(train_y, shots, draws, seed)
    return probe_draws(train_x, train_y, test_x, test_y, indices, head=head, seed=seed, **settings)


def probe_draws(
    train_x: Rows,
    train_y: Sequence[Label],
    test_x: Rows,
    test_y: Sequence[Label],
    indices: Sequence[Sequence[int]],
    *,
    head: Head,
    seed: int,
    **settings: Any,
) -> FewShotResult:
    """:func:`few_shot_probe` with the draws given as lists of row numbers of ``train_x``."""
    rows = train_x if hasattr(train_x, "tocsr") else np.asarray(train_x)
    return FewShotResult(
        tuple(
            fit_probe(
                rows[list(drawn)],
                [train_y[index] for index in drawn],
                test_x,
                test_y,
                head=head,
                seed=seed + draw,
                **settings,
            )
            for draw, drawn in enumerate(indices)
        )
    )


class FewShotProbeEvaluator(TextProbeEvaluator):
    """Accuracy and macro-F1 of classifiers trained on a few frozen embeddings per class, over random draws.

    Returns ``accuracy_mean`` (primary), ``accuracy_deviation``, ``macro_f1_mean`` and ``macro_f1_deviation``; the
    single draws of the latest call are in ``last_draws``. Only the training texts that some draw took, and the test
    texts, are encoded.

    Args:
        train_texts: Texts the examples are drawn from.
        train_labels: Their classes, strings or integers.
        test_texts: Texts every draw is scored on.
        test_labels: Their classes. A class without training example counts as missed, with a warning.
        head: ``"mlp"``, the paper's, or ``"logistic"``, faster.
        max_seq_length: Tokens read of each text, special tokens included, or as many as the model can read where that
            is less; the model's own setting is put back afterwards. None keeps the model's own setting.
        batch_size: Batch size of the MLP head.
        learning_rate: Learning rate of the MLP head.
        seed: Seed of the draws; the MLP of draw i starts from ``seed + i``.
        encode_batch_size: Texts encoded at once.
        name: Prefix of the metrics.
        show_progress_bar: Whether encoding shows a progress bar.
        write_csv: Whether results are appended to a CSV file.
        truncate_dim: Leading dimensions of the embedding to use; None for the model's own setting.
        shots: Examples per class; a class with fewer gives all it has, with a warning.
        draws: Repetitions.

    Raises:
        DataError: Texts and labels differ in number, labels cannot be used, or there are fewer than two classes.
        ConfigurationError: An unknown head, or a number of shots or draws below 1.
    """

    def __init__(
        self,
        train_texts: Sequence[str],
        train_labels: Sequence[Label],
        test_texts: Sequence[str],
        test_labels: Sequence[Label],
        head: Head = "mlp",
        max_seq_length: int | None = 512,
        batch_size: int = 8,
        learning_rate: float = 3e-4,
        seed: int = 0,
        encode_batch_size: int = 32,
        name: str = "",
        show_progress_bar: bool = False,
        write_csv: bool = True,
        truncate_dim: int | None = None,
        shots: int = 5,
        draws: int = 10,
    ) -> None:
        super().__init__(
            train_texts,
            train_labels,
            test_texts,
            test_labels,
            head=head,
            max_seq_length=max_seq_length,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            encode_batch_size=encode_batch_size,
            name=name,
            show_progress_bar=show_progress_bar,
            write_csv=write_csv,
            truncate_dim=truncate_dim,
            csv_prefix="few_shot_probe",
            primary_metric="accuracy_mean",
        )
        self.shots = shots
        self.draws = draws
        self.indices = few_shot_indices(self.train_labels, shots, draws, seed)
        self.last_draws: list[ProbeResult] = []

    def __call__(  # type: ignore[override]  # a SentenceTransformer, as in every evaluator of sentence-transformers
        self, model: SentenceTransformer, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Encode, train a head per draw, score them. Arguments and result as in :class:`BaseEvaluator`."""
        used = sorted({index for drawn in self.indices for index in drawn})
        row = {index: position for position, index in enumerate(used)}
        embeddings = self.embed(model, [self.train_texts[index] for index in used] + self.test_texts)
        result = probe_draws(
            embeddings[: len(used)],
            [self.train_labels[index] for index in used],
            embeddings[len(used) :],
            self.test_labels,
            [[row[index] for index in drawn] for drawn in self.indices],
            head=self.head,
            seed=self.seed,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
        )
        self.last_draws = list(result.draws)
        return self.report(model, result.metrics(), output_path, epoch, steps)

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return super().get_config_dict() | {"shots": self.shots, "draws": self.draws}
