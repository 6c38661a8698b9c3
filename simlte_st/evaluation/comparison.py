"""Several models on the same texts, beside TF-IDF: what ``simlte evaluate`` and the end of a training run show."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simlte_st.compat import view_budget
from simlte_st.data.document import Document
from simlte_st.data.segmenters import Segmenter, make_segmenter
from simlte_st.data.sentences import segment_documents
from simlte_st.data.views import DocSplit, View, draw_views
from simlte_st.errors import DataError
from simlte_st.evaluation.baselines import tfidf_few_shot, tfidf_probe, tfidf_split_half
from simlte_st.evaluation.encoding import encode_texts
from simlte_st.evaluation.few_shot import FewShotResult, few_shot_probe
from simlte_st.evaluation.probe import Head, ProbeResult, fit_probe
from simlte_st.evaluation.split_half import SplitHalfResult, split_half_retrieval

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

TFIDF = "TF-IDF"
"""Name of the baseline in results and tables."""

EVALUATION_EPOCH = -1
"""Epoch of evaluation views: one that no training run has."""


def split_half_views(
    documents: Sequence[Document],
    *,
    view: View | None = None,
    segmenter: str | Segmenter = "punkt",
    budget: int | None = None,
    seed: int = 0,
) -> tuple[list[str], list[str]]:
    """Draw the two halves of each document, for split-half retrieval.

    Args:
        documents: The documents, none of which a compared model should have been trained on.
        view: How to split; the papers' DocSplit where not given.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        budget: Tokens a half may hold, estimated from words so that the texts are the same for every tokenizer.
        seed: Decides the split.

    Returns:
        ``(anchors, positives)``; documents that cannot be split are left out, and the log says how many.

    Raises:
        DataError: Fewer than two documents can be split.
    """
    cut = make_segmenter(segmenter, lambda: (document.text for document in documents))
    chosen = DocSplit() if view is None else view
    pairs = [
        draw_views(document, chosen, seed=seed, epoch=EVALUATION_EPOCH, budget=budget)
        for document in segment_documents(documents, cut)
    ]
    usable = [pair for pair in pairs if pair is not None]
    if len(usable) < len(pairs):
        logger.warning("%d of %d documents are too short to be split.", len(pairs) - len(usable), len(pairs))
    if len(usable) < 2:
        raise DataError(f"Split-half retrieval needs at least 2 documents that can be split; there are {len(usable)}.")
    return [pair.anchor for pair in usable], [pair.positive for pair in usable]


def compare_split_half(
    models: Mapping[str, SentenceTransformer],
    documents: Sequence[Document],
    *,
    segmenter: str | Segmenter = "punkt",
    batch_size: int = 32,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, SplitHalfResult]:
    """Split-half retrieval for TF-IDF and each model, on the same halves.

    Args:
        models: The models by name. The halves fit the one that reads least.
        documents: Held-out documents.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        batch_size: Texts encoded at once.
        seed: Decides the split and the intervals.
        progress: Show progress bars.

    Returns:
        Results by name, TF-IDF first.
    """
    budgets = [budget for budget in map(view_budget, models.values()) if budget is not None]
    anchors, positives = split_half_views(documents, segmenter=segmenter, budget=min(budgets, default=None), seed=seed)
    results = {TFIDF: tfidf_split_half(anchors, positives, seed=seed)}
    for name, model in models.items():
        embeddings = _encode(model, anchors + positives, batch_size, progress)
        results[name] = split_half_retrieval(embeddings[: len(anchors)], embeddings[len(anchors) :], seed=seed)
    return results


@dataclass(frozen=True, slots=True)
class ProbeComparison:
    """What labelled texts say of one model.

    Attributes:
        few_shot: Few examples a class, several draws; the same draws for every model.
        full: All training texts.
    """

    few_shot: FewShotResult
    full: ProbeResult

    def metrics(self) -> dict[str, float]:
        """Give the numbers by name."""
        return {
            **{f"few_shot_{name}": value for name, value in self.few_shot.metrics().items()},
            "full_accuracy": self.full.accuracy,
            "full_macro_f1": self.full.macro_f1,
        }


def compare_probes(
    models: Mapping[str, SentenceTransformer],
    train: Sequence[Document],
    test: Sequence[Document],
    *,
    shots: int = 5,
    draws: int = 10,
    head: Head = "mlp",
    max_seq_length: int | None = 512,
    batch_size: int = 32,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, ProbeComparison]:
    """Few-shot and full probes for TF-IDF and each model, on the same texts; each text is encoded once a model.

    Args:
        models: The models by name.
        train: Labelled documents to learn from.
        test: Labelled documents to score on.
        shots: Examples a class of the few-shot probe.
        draws: Its repetitions.
        head: ``"mlp"`` (the papers') or ``"logistic"``.
        max_seq_length: Tokens read of a text, special tokens included, or as many as the model has positions for.
        batch_size: Texts encoded at once.
        seed: Decides draws and initial weights.
        progress: Show progress bars.

    Returns:
        Results by name, TF-IDF first.
    """
    train_texts, train_labels = _labelled(train)
    test_texts, test_labels = _labelled(test)
    results = {
        TFIDF: ProbeComparison(
            tfidf_few_shot(train_texts, train_labels, test_texts, test_labels, shots=shots, draws=draws, seed=seed),
            tfidf_probe(train_texts, train_labels, test_texts, test_labels),
        )
    }
    for name, model in models.items():
        rows = _encode(model, train_texts + test_texts, batch_size, progress, max_seq_length)
        train_x, test_x = rows[: len(train_texts)], rows[len(train_texts) :]
        results[name] = ProbeComparison(
            few_shot_probe(train_x, train_labels, test_x, test_labels, shots=shots, draws=draws, head=head, seed=seed),
            fit_probe(train_x, train_labels, test_x, test_labels, head=head, seed=seed),
        )
    return results


def _encode(
    model: SentenceTransformer, texts: list[str], batch_size: int, progress: bool, length: int | None = None
) -> Any:
    return encode_texts(
        model,
        texts,
        batch_size=batch_size,
        max_seq_length=length,
        show_progress_bar=progress,
        truncate_dim=None,
    )


def _labelled(documents: Sequence[Document]) -> tuple[list[str], list[str]]:
    labels = [document.label for document in documents if document.label is not None]
    if len(labels) < len(documents):
        raise DataError(f"{len(documents) - len(labels)} of {len(documents)} documents have no label.")
    return [document.text for document in documents], labels
