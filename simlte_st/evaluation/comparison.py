"""Several models on the same texts, beside TF-IDF: what ``simlte evaluate`` and the end of a training run show."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.compat import view_budget
from simlte_st.data.documents import list_documents
from simlte_st.data.segmenters import Segmenter
from simlte_st.evaluation.classification_probe import FewShotResult, few_shot_probe
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.labels import warned_once
from simlte_st.evaluation.lexical import TfidfScores, tfidf_few_shot, tfidf_probe
from simlte_st.evaluation.probe import Head, ProbeResult, fit_probe
from simlte_st.evaluation.split_half import (
    SplitHalfResult,
    split_half_of_scores,
    split_half_retrieval,
    split_half_views,
)
from simlte_st.evaluation.splits import document_labels, warn_of_copies
from simlte_st.evaluation.structure import (
    StructureResult,
    agreement_of_scores,
    neighbours_by_words,
    structure_agreement,
    words_agreement,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TFIDF = "TF-IDF"
"""Name of the baseline in results and tables."""

HALF_LENGTH = 62
"""Tokens of half a document, special tokens left out, on which the verdict was calibrated."""


@dataclass(frozen=True, slots=True)
class HalvesComparison:
    """Measures of one model on the halves of held-out documents, of which a verdict is made.

    Attributes:
        structure: Do both halves have the same neighbours among the other documents?
        split_half: Does one half find the other? That is what contrastive training trains.
        words: Are the neighbours of one half those of the other half by words? None for TF-IDF.
        reads: Tokens that the model reads of a text; None where there is no limit.
    """

    structure: StructureResult
    split_half: SplitHalfResult
    words: StructureResult | None = None
    reads: int | None = None

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name; those of ``words`` of models only."""
        parts: dict[str, StructureResult | SplitHalfResult | None] = {
            "structure": self.structure, "split_half": self.split_half, "words": self.words
        }  # fmt: skip
        return {
            f"{part}_{name}": value
            for part, result in parts.items()
            if result is not None
            for name, value in result.metrics().items()
        }


def compare_halves(
    models: Mapping[str, SentenceTransformer],
    documents: Any,
    *,
    half_length: int | None = HALF_LENGTH,
    segmenter: str | Segmenter = "punkt",
    batch_size: int = 32,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, HalvesComparison]:
    """Structure and split-half retrieval for TF-IDF and each model, on the same halves.

    The numbers compare models that read equally many tokens: on longer halves all of them grow.

    Args:
        models: The models by name. The halves fit the one that reads least.
        documents: Held-out documents: what :func:`~simlte_st.data.read_documents` takes.
        half_length: Tokens of a half at most, special tokens left out; a verdict wants the default. None for what fits
            the models.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        batch_size: Texts encoded at once.
        seed: Decides the split and the intervals.
        progress: Show progress bars.

    Returns:
        Results by name, TF-IDF first.

    Raises:
        DataError: Fewer than three documents can be split.
    """
    read = list_documents(documents)
    budgets = [budget for budget in (half_length, *map(view_budget, models.values())) if budget is not None]
    anchors, positives = split_half_views(read, segmenter=segmenter, budget=min(budgets, default=None), seed=seed)
    words = TfidfScores([*anchors, *positives])
    results = {TFIDF: HalvesComparison(agreement_of_scores(words, seed=seed), split_half_of_scores(words, seed=seed))}
    near = neighbours_by_words(anchors, positives)
    for name, model in models.items():
        embeddings = encode_texts(
            model,
            [*anchors, *positives],
            batch_size=batch_size,
            show_progress_bar=progress,
            bar_name=f"Encoding halves of held-out documents ({os.path.basename(name) or name})",
        )
        first, second = np.split(embeddings, 2)
        results[name] = HalvesComparison(
            structure_agreement(first, second, seed=seed),
            split_half_retrieval(first, second, seed=seed),
            words_agreement(first, second, near, seed=seed),
            model.max_seq_length,
        )
    return results


@dataclass(frozen=True, slots=True)
class ProbeComparison:
    """How well probes on one model's embeddings classify labelled texts.

    Attributes:
        few_shot: Few examples a class, several draws; the same draws for every model.
        full: All training texts.
    """

    few_shot: FewShotResult
    full: ProbeResult

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {
            **{f"few_shot_{name}": value for name, value in self.few_shot.metrics().items()},
            "full_accuracy": self.full.accuracy,
            "full_macro_f1": self.full.macro_f1,
        }


@warned_once()
def compare_probes(
    models: Mapping[str, SentenceTransformer],
    train: Any,
    test: Any,
    *,
    shots: int = 5,
    draws: int = 10,
    head: Head = "mlp",
    max_seq_length: int | None = None,
    batch_size: int = 32,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, ProbeComparison]:
    """Few-shot and full probes for TF-IDF and each model, on the same texts; each text is encoded once a model.

    Args:
        models: The models by name.
        train: Labelled documents to learn from: what :func:`~simlte_st.data.read_documents` takes, or what it gives
            for a source whose column of labels has to be named.
        test: Labelled documents to score on.
        shots: Examples a class of the few-shot probe.
        draws: Its repetitions.
        head: ``"mlp"`` (the papers') or ``"logistic"``.
        max_seq_length: Tokens read of a text, special tokens included, or as many as the model has positions for; None
            for what each model reads. The papers read 512.
        batch_size: Texts encoded at once.
        seed: Decides draws and initial weights.
        progress: Show progress bars.

    Returns:
        Results by name, TF-IDF first.

    Raises:
        DataError: A document has no label.
    """
    train_texts, train_labels = _texts_and_labels(train)
    test_texts, test_labels = _texts_and_labels(test)
    warn_of_copies(train_texts, test_texts)
    results = {
        TFIDF: ProbeComparison(
            tfidf_few_shot(train_texts, train_labels, test_texts, test_labels, shots=shots, draws=draws, seed=seed),
            tfidf_probe(train_texts, train_labels, test_texts, test_labels),
        )
    }
    for name, model in models.items():
        rows = encode_texts(
            model,
            train_texts + test_texts,
            max_seq_length=max_seq_length,
            batch_size=batch_size,
            show_progress_bar=progress,
            bar_name=f"Encoding labelled documents ({os.path.basename(name) or name})",
        )
        train_x, test_x = rows[: len(train_texts)], rows[len(train_texts) :]
        results[name] = ProbeComparison(
            few_shot_probe(train_x, train_labels, test_x, test_labels, shots=shots, draws=draws, head=head, seed=seed),
            fit_probe(train_x, train_labels, test_x, test_labels, head=head, seed=seed),
        )
    return results


def _texts_and_labels(documents: Any) -> tuple[list[str], list[str]]:
    read = list_documents(documents)
    return [document.text for document in read], document_labels(read)
