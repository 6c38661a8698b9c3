"""Compare models with TF-IDF on the same documents: halves without labels, probes with labels."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simlte_st.arguments import Count, Seed, check_arguments
from simlte_st.compat import readable_length, view_budget
from simlte_st.evaluation import halves as measures
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.probe import FewShotResult, ProbeResult, Rows, few_shot_probe, fit_probe, fitted_rows
from simlte_st.evaluation.scores import TfidfScores, tfidf_parts
from simlte_st.evaluation.splits import document_labels, warn_of_classes, warn_of_copies
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.static import is_static
from simlte_st.progress import progress_bar
from simlte_st.reading.document import Document
from simlte_st.words.sentences import Segmenter

TFIDF = "TF-IDF"
"""Name of the baseline."""

HALF_LENGTH = 62
"""Length of a half in tokens, without special tokens, for which the verdict is calibrated."""


@dataclass(frozen=True, slots=True)
class HalvesComparison:
    """Measures of one model on the halves of held-out documents, the basis of a verdict.

    Attributes:
        structure: Do both halves have the same neighbours among the other documents?
        split_half: Does one half find the other? Contrastive training optimises this.
        words: Do the neighbours of one half share most words with the other half? None for TF-IDF.
        reads: Maximum number of tokens that the model reads from a text; None for no limit.
        similarities: Do both halves have the same similarities to other documents? For static models only.
    """

    structure: measures.StructureResult
    split_half: measures.SplitHalfResult
    words: measures.StructureResult | None = None
    reads: int | None = None
    similarities: measures.StructureResult | None = None

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name."""
        parts = {name: getattr(self, name) for name in ("structure", "split_half", "words", "similarities")}
        numbers = {name: part.metrics() for name, part in parts.items() if part is not None}
        return {f"{part}_{name}": value for part, values in numbers.items() for name, value in values.items()}


@check_arguments
def compare_halves(
    models: Mapping[str, Any],
    documents: Any,
    *,
    half_length: Count | None = HALF_LENGTH,
    segmenter: str | Segmenter = "punkt",
    batch_size: Count = 32,
    seed: Seed = 0,
    progress: bool = True,
) -> dict[str, HalvesComparison]:
    """Measure TF-IDF and models on the same halves of documents, without labels.

    Compare only models that read the same number of tokens: all measures grow with the length of the halves.

    Args:
        models: Models by name. The halves fit the model with the lowest limit.
        documents: Held-out documents: anything that ``read_documents`` takes or returns.
        half_length: Maximum length of a half in tokens, without special tokens; a verdict needs the default. None for
            the limit of the models.
        segmenter: How to split texts into sentences: ``"punkt"`` or a callable.
        batch_size: Batch size for encoding.
        seed: Random seed of the split and of the intervals.
        progress: Show progress bars.

    Returns:
        Results by name, TF-IDF first.

    Raises:
        DataError: Fewer than three documents can be split.

    Example:
        ::

            models = {"base": SentenceTransformer("simlte-static"), "mine": SentenceTransformer("my-model")}
            halves = compare_halves(models, "held_out.jsonl")
            print(give_verdict(halves["base"], halves["mine"]).summary())
    """
    budgets = [budget for budget in (half_length, *map(view_budget, models.values())) if budget is not None]
    anchors, positives = measures.split_half_views(
        documents, segmenter=segmenter, budget=min(budgets, default=None), seed=seed
    )
    words = TfidfScores([*anchors, *positives])
    ranks = measures.result_from_ranks(measures.ranks_of_halves(words), seed)
    results = {TFIDF: HalvesComparison(measures.agreement_of_scores(words, seed=seed), ranks)}
    near = measures.neighbours_by_words(anchors, positives)
    for name, model in models.items():
        bar = f"Encoding halves of documents ({os.path.basename(name) or name})"
        options: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": progress, "bar_name": bar}
        vectors = encode_texts(model, [*anchors, *positives], documents=len(anchors), **options)
        first, second = np.split(vectors, 2)
        results[name] = HalvesComparison(
            measures.structure_agreement(first, second, seed=seed),
            measures.split_half_retrieval(first, second, seed=seed),
            measures.words_agreement(first, second, near, seed=seed),
            readable_length(model),
            measures.similarity_agreement(first, second, seed=seed) if is_static(model) else None,
        )
    return results


@dataclass(frozen=True, slots=True)
class ProbeComparison:
    """Scores of probes on the embeddings of one model.

    Attributes:
        few_shot: Probes with a few examples per class, over several draws that are the same for every model.
        full: The probe with all training texts.
    """

    few_shot: FewShotResult
    full: ProbeResult

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name."""
        few_shot = {f"few_shot_{name}": value for name, value in self.few_shot.metrics().items()}
        return {**few_shot, "full_accuracy": self.full.accuracy, "full_macro_f1": self.full.macro_f1}


@check_arguments
def compare_probes(
    models: Mapping[str, Any],
    train: Sequence[Document],
    test: Sequence[Document],
    *,
    shots: Count = 5,
    draws: Count = 10,
    max_seq_length: Count | None = None,
    batch_size: Count = 32,
    seed: Seed = 0,
    progress: bool = True,
) -> dict[str, ProbeComparison]:
    """Fit few-shot and full probes for TF-IDF and models, on the same texts.

    Args:
        models: Models by name.
        train: Labelled documents to learn from.
        test: Labelled documents to score on.
        shots: Number of labelled documents of each class for a few-shot probe.
        draws: Number of few-shot probes, each with other documents.
        max_seq_length: Maximum number of tokens to read from a text; None for each model's own limit.
        batch_size: Batch size for encoding.
        seed: Random seed of the draws and of the probes.
        progress: Show progress bars.

    Returns:
        Results by name, TF-IDF first.

    Raises:
        DataError: A document has no label.
    """
    texts = [[document.text for document in part] for part in (train, test)]
    labels = [document_labels(part) for part in (train, test)]
    warn_of_copies(*texts)
    warn_of_classes(labels[0], labels[1], shots)
    options: Any = {"max_seq_length": max_seq_length, "batch_size": batch_size, "show_progress_bar": progress}
    results = {}
    for name in (TFIDF, *models):
        shown = os.path.basename(name) or name
        if name == TFIDF:
            train_x, test_x = tfidf_parts(*texts)
        else:
            rows = encode_texts(
                models[name], texts[0] + texts[1], bar_name=f"Encoding labelled documents ({shown})", **options
            )
            train_x, test_x = rows[: len(train)], rows[len(train) :]
        given = (train_x, labels[0], test_x, labels[1])
        results[name] = fit_probes(*given, name=shown, shots=shots, draws=draws, seed=seed, progress=progress)
    return results


def fit_probes(
    train_x: Rows, train_y: Sequence[str], test_x: Rows, test_y: Sequence[str], *, name: str, shots: int, draws: int,
    seed: int, progress: bool,
) -> ProbeComparison:  # fmt: skip
    """Fit few-shot and full probes on embeddings; a bar named after the model appears after a second."""
    few = sum(min(shots, count) for count in Counter(train_y).values())
    total = draws * fitted_rows(few) + fitted_rows(len(train_y))
    given = (train_x, train_y, test_x, test_y)
    with progress_bar(f"Fitting probes ({name})", total, unit="row", show=progress, delay=1) as bar:
        few_shot = few_shot_probe(*given, shots=shots, draws=draws, seed=seed, bar=bar)
        return ProbeComparison(few_shot, fit_probe(*given, seed=seed, bar=bar))


@check_arguments
def comparison_table(
    halves: Mapping[str, HalvesComparison], probes: Mapping[str, ProbeComparison] | None = None, shots: int = 5
) -> str:
    """Return Markdown tables with a row for each model: one without labels, one with labels.

    Args:
        halves: Results without labels, by model; may be empty.
        probes: Results of the probes, by model.
        shots: Number of examples per class of the few-shot probes, for the heading.

    Returns:
        The tables, separated by an empty line, in percent; F1 is macro-F1.
    """
    tables = []
    if halves:
        rows = []
        for name, each in halves.items():
            same, low, high = (
                100 * value for value in (each.structure.agreement, each.structure.low, each.structure.high)
            )
            rows.append([name, f"{same:.1f} [{low:.1f}, {high:.1f}]", f"{100 * each.split_half.top1:.1f}"])
        tables.append(markdown_table(["without labels", "same neighbours [95%]", "split-half top-1"], rows))
    if probes:
        rows = []
        for name, probe in probes.items():
            values = {key: 100 * value for key, value in probe.metrics().items()}
            few = [
                f"{values[f'few_shot_{metric}_mean']:.1f} ± {values[f'few_shot_{metric}_deviation']:.1f}"
                for metric in ("accuracy", "macro_f1")
            ]
            rows.append([name, *few, f"{values['full_accuracy']:.1f}", f"{values['full_macro_f1']:.1f}"])
        header = ["with labels", f"{shots}-shot acc.", f"{shots}-shot F1", "full acc.", "full F1"]
        tables.append(markdown_table(header, rows))
    return "\n\n".join(tables)
