"""The classification probe as an evaluator: with all labels, or with a few a class, repeated over random draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simlte_st.evaluation.evaluator import EmbeddingEvaluator, EvaluatorSettings
from simlte_st.evaluation.few_shot import probe_draws
from simlte_st.evaluation.probe import ProbeResult
from simlte_st.evaluation.splits import (
    Label,
    check_lengths,
    few_shot_rows,
    number_labels,
    plain_labels,
    warn_of_copies,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack


class ClassificationProbeEvaluator(EmbeddingEvaluator):
    """Accuracy and macro-F1 of classifiers trained on the model's frozen embeddings (DocSplit, 2023, appendix A.1).

    Returns ``accuracy`` (primary) and ``macro_f1``; with ``shots`` their means and sample deviations over the draws:
    ``accuracy_mean`` (primary), ``accuracy_deviation``, ``macro_f1_mean`` and ``macro_f1_deviation``. The single draws
    of the latest call are in ``last_draws``. Test texts that duplicate training texts are counted in a warning.

    Args:
        train_texts: Texts that probes are trained on; only those that some draw takes are encoded.
        train_labels: Their classes, strings or integers.
        test_texts: Texts that probes are scored on.
        test_labels: Their classes. A class without training example counts as missed, with a warning.
        shots: Examples per class of each draw; of a class that has fewer, all, with a warning. None trains one probe
            on all training texts.
        draws: Repetitions with ``shots``.
        **settings: Those of every evaluator, see :class:`~simlte_st.evaluation.EvaluatorSettings`. The paper's
            ``max_seq_length`` is 512.

    Raises:
        DataError: Texts and labels differ in number, labels cannot be used, or there are fewer than two classes.
        ConfigurationError: A number of shots or draws below 1.
    """

    def __init__(
        self,
        train_texts: Sequence[str],
        train_labels: Sequence[Label],
        test_texts: Sequence[str],
        test_labels: Sequence[Label],
        *,
        shots: int | None = None,
        draws: int = 10,
        **settings: Unpack[EvaluatorSettings],
    ) -> None:
        super().__init__(
            csv_prefix="classification_probe" if shots is None else "few_shot_probe",
            primary_metric="accuracy" if shots is None else "accuracy_mean",
            **settings,
        )
        check_lengths(train_texts, train_labels, "training")
        check_lengths(test_texts, test_labels, "test")
        number_labels(train_labels, test_labels)  # labels that cannot be used are an error now, not after an epoch
        drawn = [range(len(train_texts))] if shots is None else few_shot_rows(train_labels, shots, draws, self.seed)
        used = sorted({row for rows in drawn for row in rows})
        position = {row: number for number, row in enumerate(used)}
        warn_of_copies(train_texts, test_texts)
        texts = list(train_texts)  # a column of a data frame has keys of its own
        self.train_texts = [texts[row] for row in used]
        labels = plain_labels(train_labels)
        self.train_labels = [labels[row] for row in used]
        self.test_texts = list(test_texts)
        self.test_labels = plain_labels(test_labels)
        self.draws = [[position[row] for row in rows] for rows in drawn]
        self.shots = shots
        self.last_draws: list[ProbeResult] = []

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Encode, train a probe per draw, and score the probes."""
        embeddings = self.embed_inputs(model, self.train_texts + self.test_texts)
        count = len(self.train_texts)
        result = probe_draws(
            embeddings[:count],
            self.train_labels,
            embeddings[count:],
            self.test_labels,
            self.draws,
            seed=self.seed,
        )
        self.last_draws = list(result.draws)
        if self.shots is not None:
            return result.metrics()
        return {"accuracy": result.draws[0].accuracy, "macro_f1": result.draws[0].macro_f1}

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        config = super().get_config_dict()
        return config if self.shots is None else config | {"shots": self.shots, "draws": len(self.draws)}
