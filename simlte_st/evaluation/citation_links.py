"""Citation link classification: does one paper cite the other, told from their two embeddings?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sentence_transformers.sentence_transformer.evaluation import BinaryClassificationEvaluator

from simlte_st.errors import DataError
from simlte_st.evaluation.link_pairs import LinkPairs, check_pairs
from simlte_st.evaluation.pair_scores import CosineScores, PairScores
from simlte_st.evaluation.probe import Head, check_head, fit_probe
from simlte_st.evaluation.reporting import ReportingEvaluator
from simlte_st.evaluation.statistics import bootstrap_interval

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

LRA_HIDDEN = (512, 256)
"""Widths of the head's hidden layers in the Long Range Arena's document retrieval task."""


@dataclass(frozen=True, slots=True)
class LinkResult:
    """Share of test pairs that were told rightly to be linked or not.

    Attributes:
        accuracy: The share.
        low: Lower end of its 95 % bootstrap interval over test pairs.
        high: Upper end.
        pairs: Number of test pairs.
    """

    accuracy: float
    low: float
    high: float
    pairs: int


def citation_link_probe(
    embeddings: ArrayLike,
    train: LinkPairs,
    test: LinkPairs,
    *,
    head: Head = "mlp",
    hidden: int | Sequence[int] | None = LRA_HIDDEN,
    batch_size: int = 8,
    learning_rate: float = 3e-4,
    epochs: int | None = None,
    seed: int = 0,
) -> LinkResult:
    """Train a head on pairs of frozen embeddings and score it on other pairs.

    DocSplit (2023, Section 4.4) predicts "whether two papers have a citation link given only their embeddings" and
    otherwise refers to the Long Range Arena (Tay et al., 2020). Hence the arena's head on what its two towers give,
    ``[a, b, a * b, a - b]``: hidden layers of 512 and 256, ReLU. Hence too frozen embeddings, and learning rate, batch
    size and the rest as in the paper's classification (:func:`~simlte_st.evaluation.fit_probe`).

    All embeddings are first multiplied by one number, such that the mean square of a component is 1 over the training
    papers. Products of components would otherwise be far smaller than the components where embeddings have length 1,
    and the head would hardly see them. The features of all pairs are held at once, 16 * dim bytes a pair.

    Args:
        embeddings: Embedding of each paper, shape ``[papers, dim]``, any float dtype.
        train: Pairs to learn from.
        test: Pairs to score on.
        head: ``"mlp"``, or ``"logistic"``, a linear head on the same features.
        hidden: Width or widths of the MLP's hidden layers; None for one as wide as the features.
        batch_size: Batch size of the MLP.
        learning_rate: Learning rate of the MLP.
        epochs: Passes of the MLP over the training pairs; None as in :func:`~simlte_st.evaluation.fit_probe`.
        seed: Seed of the MLP and of the bootstrap.

    Returns:
        Accuracy on the test pairs.

    Raises:
        DataError: A pair names a paper that is not there, the training pairs are of one kind, or embeddings cannot be
            used.
        ConfigurationError: A setting out of range.
    """
    data = np.asarray(embeddings, dtype=np.float32)
    if data.ndim != 2 or 0 in data.shape:
        raise DataError(f"Embeddings must form a non-empty array [papers, dim], got shape {data.shape}.")
    for part in (train, test):
        check_pairs(part.pairs, len(data))
    scale = np.sqrt(np.square(data[np.unique(train.pairs)], dtype=np.float64).mean())
    if scale > 0:  # a model that maps everything to 0 is left to the head, which then scores at chance
        data = np.divide(data, np.float32(scale))
    result = fit_probe(
        link_features(data, train.pairs),
        train.labels.tolist(),
        link_features(data, test.pairs),
        test.labels.tolist(),
        head=head,
        seed=seed,
        learning_rate=learning_rate,
        batch_size=batch_size,
        hidden=hidden,
        epochs=epochs,
    )
    # The order of the values does not matter to the bootstrap.
    return _result(np.arange(len(test.labels)) < round(result.accuracy * len(test.labels)), seed)


def link_features(embeddings: NDArray[np.float32], pairs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Make the head's input of pairs ``[n, 2]`` of embeddings ``[papers, dim]``: ``[a, b, a * b, a - b]``."""
    a, b = embeddings[pairs[:, 0]], embeddings[pairs[:, 1]]
    return np.concatenate([a, b, a * b, a - b], axis=1)


def citation_link_threshold(scores: PairScores, train: LinkPairs, test: LinkPairs, seed: int = 0) -> LinkResult:
    """Tell links by their score alone: those above a threshold, the best one for the training pairs.

    What a bag of words can do, and what an embedding's cosine says without a head.

    Args:
        scores: Scores of pairs of papers.
        train: Pairs that the threshold is taken from.
        test: Pairs to score on.
        seed: Seed of the bootstrap.

    Returns:
        Accuracy on the test pairs.

    Raises:
        DataError: A pair names a paper that is not there.
    """
    for part in (train, test):
        check_pairs(part.pairs, scores.size)
    _, threshold = BinaryClassificationEvaluator.find_best_acc_and_threshold(
        scores.pairs(train.pairs), train.labels, high_score_more_similar=True
    )
    return _result((scores.pairs(test.pairs) >= threshold) == (test.labels == 1), seed)


def _result(correct: NDArray[np.bool_], seed: int) -> LinkResult:
    low, high = bootstrap_interval(correct, seed=seed)
    return LinkResult(accuracy=float(correct.mean()), low=low, high=high, pairs=len(correct))


class CitationLinkEvaluator(ReportingEvaluator):
    """Citation link classification with a model's frozen embeddings; see :func:`citation_link_probe`.

    Returns ``accuracy`` (primary) with the ends of its 95 % interval, ``accuracy_low`` and ``accuracy_high``, and
    ``cosine_accuracy``, that of a threshold on the cosine similarity (:func:`citation_link_threshold`). Only papers
    that are in a pair are encoded.

    Args:
        texts: The papers.
        train: Pairs of rows of ``texts`` to learn from; :func:`~simlte_st.evaluation.link_pairs` makes both parts of
            links alone.
        test: Pairs to score on.
        head: ``"mlp"``, the arena's, or ``"logistic"``, faster.
        max_seq_length: Tokens read of each text, special tokens included, or as many as the model can read where that
            is less; the model's own setting is put back afterwards. None keeps the model's own setting.
        batch_size: Batch size of the MLP head.
        learning_rate: Learning rate of the MLP head.
        seed: Seed of the MLP head and of the bootstrap.
        encode_batch_size: Texts encoded at once.
        name: Prefix of the metrics.
        show_progress_bar: Whether encoding shows a progress bar.
        write_csv: Whether results are appended to a CSV file.
        truncate_dim: Leading dimensions of the embedding to use; None for the model's own setting.

    Raises:
        DataError: A pair names a paper that is not there.
        ConfigurationError: An unknown head.
    """

    def __init__(
        self,
        texts: Sequence[str],
        train: LinkPairs,
        test: LinkPairs,
        *,
        head: Head = "mlp",
        max_seq_length: int | None = None,
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
            name=name,
            csv_prefix="citation_links",
            primary_metric="accuracy",
            write_csv=write_csv,
            encode_batch_size=encode_batch_size,
            max_seq_length=max_seq_length,
            show_progress_bar=show_progress_bar,
            truncate_dim=truncate_dim,
        )
        check_head(head)
        used = np.unique(np.concatenate([check_pairs(part.pairs, len(texts)) for part in (train, test)]))
        self.texts = [texts[row] for row in used.tolist()]
        self.train, self.test = (
            LinkPairs(np.searchsorted(used, part.pairs).astype(np.int64), part.labels) for part in (train, test)
        )
        self.head: Head = head
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed

    def __call__(  # type: ignore[override]  # a SentenceTransformer, as in every evaluator of sentence-transformers
        self, model: SentenceTransformer, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Encode, train the head, score it. Arguments and result as in :class:`BaseEvaluator`."""
        embeddings = self.embed(model, self.texts)
        result = citation_link_probe(
            embeddings,
            self.train,
            self.test,
            head=self.head,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=self.seed,
        )
        by_cosine = citation_link_threshold(CosineScores(embeddings), self.train, self.test, seed=self.seed)
        metrics = {
            "accuracy": result.accuracy,
            "accuracy_low": result.low,
            "accuracy_high": result.high,
            "cosine_accuracy": by_cosine.accuracy,
        }
        return self.report(model, metrics, output_path, epoch, steps)

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        config: dict[str, Any] = {"head": self.head, **super().get_config_dict(), "seed": self.seed}
        if self.head == "mlp":
            config |= {"batch_size": self.batch_size, "learning_rate": self.learning_rate}
        return config
