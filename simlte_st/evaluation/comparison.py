"""Compare models with each other and with TF-IDF on the same documents, by document halves or by probes."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sentence_transformers import SentenceTransformer

from simlte_st.arguments import Count, Seed, check_arguments
from simlte_st.compat import readable_length, view_budget
from simlte_st.evaluation import halves as measures
from simlte_st.evaluation import splits
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.probe import FewShotResult, ProbeResult, Rows, count_fitted_rows, few_shot_probe, fit_probe
from simlte_st.evaluation.scores import TfidfScores, tfidf_parts
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.static import is_static
from simlte_st.progress import progress_bar
from simlte_st.reading.document import Document, DocumentSource
from simlte_st.words.sentences import Segmenter

logger = logging.getLogger(__name__)

TFIDF = "TF-IDF"
"""Name of the baseline in results and tables."""

HALF_LENGTH = 62
"""Maximum length of a half in tokens, excluding special tokens; the verdict is calibrated for this length."""


@dataclass(frozen=True, slots=True)
class HalvesComparison:
    """Scores of one model on the halves of held-out documents, the basis of a verdict.

    Attributes:
        structure: Whether both halves of a document have the same neighbours among the other documents.
        split_half: Whether the first half retrieves the second, which is what contrastive training optimises.
        words: Whether the neighbours of one half are those that share most words with the other half; None for TF-IDF.
        reads: Maximum number of tokens that the model reads per text; None for no limit.
        similarities: Whether both halves have the same similarities to the other documents; None unless the model is
            static.
    """

    structure: measures.StructureResult
    split_half: measures.SplitHalfResult
    words: measures.StructureResult | None = None
    reads: int | None = None
    similarities: measures.StructureResult | None = None

    def metrics(self) -> dict[str, float]:
        """Return the scores by metric name."""
        names = ("structure", "split_half", "words", "similarities")
        metrics = {name: getattr(self, name).metrics() for name in names if getattr(self, name) is not None}
        return {f"{part}_{name}": number for part, numbers in metrics.items() for name, number in numbers.items()}


@check_arguments
def compare_halves(
    models: Mapping[str, SentenceTransformer],
    documents: DocumentSource,
    *,
    half_length: Count | None = HALF_LENGTH,
    segmenter: str | Segmenter = "punkt",
    batch_size: Count = 32,
    seed: Seed = 0,
    progress: bool = True,
) -> dict[str, HalvesComparison]:
    """Score TF-IDF and models on the same halves of documents, without labels.

    Compare only models that read the same number of tokens, because all scores rise with the length of the halves.

    Args:
        models: Models by name. The halves are short enough for the model with the lowest limit.
        documents: Held-out documents: anything that ``read_documents`` takes or returns.
        half_length: Maximum length of a half in tokens, excluding special tokens; a verdict needs the default. None to
            use only the limits of the models.
        segmenter: Sentence splitter: ``"punkt"`` or a callable.
        batch_size: Batch size for encoding.
        seed: Random seed of the splits and the intervals.
        progress: Show progress bars.

    Returns:
        The results by model name, TF-IDF first.

    Raises:
        DataError: Fewer than three documents can be split.

    Example:
        ::

            models = {"base": SentenceTransformer("simlte-static"), "mine": SentenceTransformer("my-model")}
            halves = compare_halves(models, "held_out.jsonl")
            print(give_verdict(halves["base"], halves["mine"]).summary())
    """
    budgets = [budget for budget in (half_length, *map(view_budget, models.values())) if budget is not None]
    budget = min(budgets, default=None)
    anchors, positives = measures.split_half_views(documents, segmenter=segmenter, budget=budget, seed=seed)
    words = TfidfScores([*anchors, *positives])
    ranks = measures.result_from_ranks(measures.ranks_of_halves(words), seed)
    results = {TFIDF: HalvesComparison(measures.agreement_of_scores(words, seed=seed), ranks)}
    neighbours = measures.neighbours_by_words(anchors, positives)
    for name, model in models.items():
        vectors = encode_texts(
            model, [*anchors, *positives], documents=len(anchors), batch_size=batch_size, show_progress_bar=progress,
            bar_name=f"Encoding halves of documents ({os.path.basename(name) or name})",
        )  # fmt: skip
        first, second = np.split(vectors, 2)
        results[name] = HalvesComparison(
            measures.structure_agreement(first, second, seed=seed),
            measures.split_half_retrieval(first, second, seed=seed),
            measures.words_agreement(first, second, neighbours, seed=seed),
            readable_length(model),
            measures.similarity_agreement(first, second, seed=seed) if is_static(model) else None,
        )
    return results


@dataclass(frozen=True, slots=True)
class ProbeComparison:
    """Scores of probes on one model's embeddings.

    Attributes:
        few_shot: Probes trained on a few examples per class, in several draws, which are the same for every model.
        full: The probe trained on all training texts.
    """

    few_shot: FewShotResult
    full: ProbeResult

    def metrics(self) -> dict[str, float]:
        """Return the scores by metric name."""
        few_shot = {f"few_shot_{name}": value for name, value in self.few_shot.metrics().items()}
        return {**few_shot, "full_accuracy": self.full.accuracy, "full_macro_f1": self.full.macro_f1}


@check_arguments
def compare_probes(
    models: Mapping[str, SentenceTransformer],
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
    """Fit few-shot and full probes for TF-IDF and each model on the same texts.

    Args:
        models: Models by name.
        train: Labelled documents to train the probes on.
        test: Labelled documents to score the probes on.
        shots: Number of labelled documents per class in a few-shot probe.
        draws: Number of few-shot probes, each trained on a different random draw of documents.
        max_seq_length: Maximum number of tokens to read per text; None for each model's own limit.
        batch_size: Batch size for encoding.
        seed: Random seed of the draws and the probes.
        progress: Show progress bars.

    Returns:
        The results by model name, TF-IDF first.

    Raises:
        DataError: A document has no label.
    """
    texts = [[document.text for document in part] for part in (train, test)]
    train_y, test_y = splits.document_labels(train), splits.document_labels(test)
    splits.warn_of_duplicates(*texts)
    splits.warn_of_classes(train_y, test_y, shots)
    results = {}
    for name in (TFIDF, *models):
        short_name = os.path.basename(name) or name
        if name == TFIDF:
            train_x, test_x = tfidf_parts(*texts)
        else:
            vectors = encode_texts(
                models[name], texts[0] + texts[1], max_seq_length=max_seq_length, batch_size=batch_size,
                show_progress_bar=progress, bar_name=f"Encoding labelled documents ({short_name})",
            )  # fmt: skip
            train_x, test_x = np.split(vectors, [len(train)])
        results[name] = fit_probes(
            train_x, train_y, test_x, test_y, name=short_name, shots=shots, draws=draws, seed=seed, progress=progress
        )
    return results


def fit_probes(
    train_x: Rows, train_y: Sequence[str], test_x: Rows, test_y: Sequence[str], *, name: str, shots: int, draws: int,
    seed: int, progress: bool,
) -> ProbeComparison:  # fmt: skip
    """Fit few-shot and full probes on a model's embeddings, with a progress bar if this takes over a second."""
    draw_size = sum(min(shots, count) for count in Counter(train_y).values())
    total = draws * count_fitted_rows(draw_size) + count_fitted_rows(len(train_y))
    with progress_bar(f"Fitting probes ({name})", total, unit="row", show=progress, delay=1) as bar:
        few_shot = few_shot_probe(train_x, train_y, test_x, test_y, shots=shots, draws=draws, seed=seed, bar=bar)
        return ProbeComparison(few_shot, fit_probe(train_x, train_y, test_x, test_y, seed=seed, bar=bar))


@check_arguments
def comparison_table(
    halves: Mapping[str, HalvesComparison], probes: Mapping[str, ProbeComparison] | None = None, shots: int = 5
) -> str:
    """Return Markdown tables with a row per model: one for results without labels, one for results with labels.

    Args:
        halves: Results without labels, by model name; may be empty.
        probes: Results of the probes, by model name.
        shots: Number of examples per class in the few-shot probes, shown in the header.

    Returns:
        The tables, separated by an empty line. Scores are percentages; F1 is macro-F1.
    """
    tables = []
    if halves:
        rows = []
        for name, half in halves.items():
            structure, top1 = half.structure, f"{100 * half.split_half.top1:.1f}"
            interval = f"[{100 * structure.low:.1f}, {100 * structure.high:.1f}]"
            rows.append([name, f"{100 * structure.agreement:.1f} {interval}", top1])
        tables.append(markdown_table(["without labels", "same neighbours [95%]", "split-half top-1"], rows))
    if probes:
        rows = []
        for name, probe in probes.items():
            percent = {metric: f"{100 * number:.1f}" for metric, number in probe.metrics().items()}
            few_shot = [f"few_shot_{metric}" for metric in ("accuracy", "macro_f1")]
            cells = [f"{percent[f'{metric}_mean']} ± {percent[f'{metric}_deviation']}" for metric in few_shot]
            rows.append([name, *cells, percent["full_accuracy"], percent["full_macro_f1"]])
        header = ["with labels", f"{shots}-shot acc.", f"{shots}-shot F1", "full acc.", "full F1"]
        tables.append(markdown_table(header, rows))
    return "\n\n".join(tables)
