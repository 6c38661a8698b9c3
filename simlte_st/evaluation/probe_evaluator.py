"""The classification probe as an evaluator of sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simlte_st.evaluation.labels import Label, check_lengths, number_labels, plain_labels
from simlte_st.evaluation.probe import Head, ProbeResult, check_head, fit_probe
from simlte_st.evaluation.reporting import ReportingEvaluator

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class TextProbeEvaluator(ReportingEvaluator):
    """What the two probe evaluators share: labelled texts, checked once, and the settings of head and encoder."""

    def __init__(
        self,
        train_texts: Sequence[str],
        train_labels: Sequence[Label],
        test_texts: Sequence[str],
        test_labels: Sequence[Label],
        *,
        head: Head,
        max_seq_length: int | None,
        batch_size: int,
        learning_rate: float,
        seed: int,
        encode_batch_size: int,
        name: str,
        show_progress_bar: bool,
        write_csv: bool,
        truncate_dim: int | None,
        csv_prefix: str,
        primary_metric: str,
    ) -> None:
        super().__init__(
            name=name,
            csv_prefix=csv_prefix,
            primary_metric=primary_metric,
            write_csv=write_csv,
            encode_batch_size=encode_batch_size,
            max_seq_length=max_seq_length,
            show_progress_bar=show_progress_bar,
            truncate_dim=truncate_dim,
        )
        check_head(head)
        check_lengths(train_texts, train_labels, "training")
        check_lengths(test_texts, test_labels, "test")
        number_labels(train_labels, test_labels)  # labels that cannot be used are an error now, not after an epoch
        self.train_texts = list(train_texts)
        self.train_labels = plain_labels(train_labels)
        self.test_texts = list(test_texts)
        self.test_labels = plain_labels(test_labels)
        self.head: Head = head
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        config: dict[str, Any] = {"head": self.head, **super().get_config_dict(), "seed": self.seed}
        if self.head == "mlp":
            config |= {"batch_size": self.batch_size, "learning_rate": self.learning_rate}
        return config


class ClassificationProbeEvaluator(TextProbeEvaluator):
    """Accuracy and macro-F1 of a classifier trained on the model's frozen embeddings.

    The protocol is that of DocSplit (2023, Appendix A.1); see :func:`~simlte_st.evaluation.fit_probe`
    for what the paper leaves open. Returns ``accuracy`` (primary) and ``macro_f1``.

    Args:
        train_texts: Texts the head is trained on.
        train_labels: Their classes, strings or integers.
        test_texts: Texts the head is scored on.
        test_labels: Their classes. A class without training example counts as missed, with a warning.
        head: ``"mlp"``, the paper's, or ``"logistic"``, faster.
        max_seq_length: Tokens read of each text, special tokens included, or as many as the model can read where that
            is less; the model's own setting is put back afterwards. None keeps the model's own setting.
        batch_size: Batch size of the MLP head.
        learning_rate: Learning rate of the MLP head.
        seed: Seed of the MLP head.
        encode_batch_size: Texts encoded at once.
        name: Prefix of the metrics.
        show_progress_bar: Whether encoding shows a progress bar.
        write_csv: Whether results are appended to a CSV file.
        truncate_dim: Leading dimensions of the embedding to use; None for the model's own setting.

    Raises:
        DataError: Texts and labels differ in number, labels cannot be used, or there are fewer than two classes.
        ConfigurationError: An unknown head.
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
            csv_prefix="classification_probe",
            primary_metric="accuracy",
        )

    def __call__(  # type: ignore[override]  # a SentenceTransformer, as in every evaluator of sentence-transformers
        self, model: SentenceTransformer, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Encode, train the head, score it. Arguments and result as in :class:`BaseEvaluator`."""
        embeddings = self.embed(model, self.train_texts + self.test_texts)
        result: ProbeResult = fit_probe(
            embeddings[: len(self.train_texts)],
            self.train_labels,
            embeddings[len(self.train_texts) :],
            self.test_labels,
            head=self.head,
            seed=self.seed,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
        )
        metrics = {"accuracy": result.accuracy, "macro_f1": result.macro_f1}
        return self.report(model, metrics, output_path, epoch, steps)
