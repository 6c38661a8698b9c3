"""Several models on the same texts, beside TF-IDF: what ``simlte evaluate`` and the end of a training run show."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.compat import readable_length, view_budget
from simlte_st.config import configured
from simlte_st.data.documents import list_documents
from simlte_st.data.sentences import Segmenter
from simlte_st.evaluation.config import EvaluateConfig
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.few_shot import FewShotResult, few_shot_probe, tfidf_few_shot, tfidf_probe
from simlte_st.evaluation.probe import ProbeResult, fit_probe
from simlte_st.evaluation.scores import TfidfScores
from simlte_st.evaluation.split_half import (
    SplitHalfResult,
    ranks_of_halves,
    result_from_ranks,
    split_half_retrieval,
    split_half_views,
)
from simlte_st.evaluation.splits import document_labels, warn_of_copies, warned_once
from simlte_st.evaluation.structure import (
    StructureResult,
    agreement_of_scores,
    neighbours_by_words,
    similarity_agreement,
    structure_agreement,
    words_agreement,
)
from simlte_st.evaluation.table import named_table
from simlte_st.models.static import is_static

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

    from simlte_st.overrides import EvaluateOverrides

TFIDF = "TF-IDF"
"""Name of the baseline in results and tables."""

HALF_LENGTH = 62
"""Tokens of half a document, special tokens not counted, on which the verdict was calibrated."""


@dataclass(frozen=True, slots=True)
class HalvesComparison:
    """Measures of one model on the halves of held-out documents, which a verdict is made of.

    Attributes:
        structure: Whether both halves have the same neighbours among the other documents.
        split_half: Whether one half finds the other, which is what contrastive training optimises.
        words: Whether the neighbours of one half are those of the other half by words; None for TF-IDF.
        reads: Tokens that the model reads of a text; None where there is no limit.
        similarities: Whether both halves have the same similarities to other documents; of static models only.
    """

    structure: StructureResult
    split_half: SplitHalfResult
    words: StructureResult | None = None
    reads: int | None = None
    similarities: StructureResult | None = None

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name; those of ``words`` of models only, of ``similarities`` of static ones."""
        parts = {name: getattr(self, name) for name in ("structure", "split_half", "words", "similarities")}
        numbers = {name: part.metrics() for name, part in parts.items() if part is not None}
        return {f"{part}_{name}": value for part, values in numbers.items() for name, value in values.items()}


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
    """Measure structure and split-half retrieval for TF-IDF and each model, on the same halves.

    The numbers compare models that read the same number of tokens: on longer halves all of them grow.

    Args:
        models: The models by name. The halves fit the one that reads least.
        documents: Held-out documents: what :func:`~simlte_st.data.read_documents` takes.
        half_length: Most tokens of a half, special tokens not counted; a verdict needs the default. None for what fits
            the models.
        segmenter: ``"punkt"`` or a callable.
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
    ranks = result_from_ranks(ranks_of_halves(words), seed=seed)
    results = {TFIDF: HalvesComparison(agreement_of_scores(words, seed=seed), ranks)}
    near = neighbours_by_words(anchors, positives)
    for name, model in models.items():
        bar = f"Encoding halves of held-out documents ({os.path.basename(name) or name})"
        options: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": progress, "bar_name": bar}
        first, second = np.split(encode_texts(model, [*anchors, *positives], **options), 2)
        results[name] = HalvesComparison(
            structure_agreement(first, second, seed=seed),
            split_half_retrieval(first, second, seed=seed),
            words_agreement(first, second, near, seed=seed),
            readable_length(model),
            similarity_agreement(first, second, seed=seed) if is_static(model) else None,
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
        few_shot = {f"few_shot_{name}": value for name, value in self.few_shot.metrics().items()}
        return {**few_shot, "full_accuracy": self.full.accuracy, "full_macro_f1": self.full.macro_f1}


@configured(EvaluateConfig)
@warned_once()
def compare_probes(
    models: Mapping[str, SentenceTransformer],
    train: Any,
    test: Any,
    config: EvaluateConfig | None = None,
    **overrides: Unpack[EvaluateOverrides],
) -> dict[str, ProbeComparison]:
    """Fit few-shot and full probes for TF-IDF and each model, on the same texts.

    Args:
        models: The models by name.
        train: Labelled documents to learn from: what :func:`~simlte_st.data.read_documents` takes or returns.
        test: Labelled documents to score on.
        config: The settings; None for the defaults.
        **overrides: Settings in place of the config's.

    Returns:
        Results by name, TF-IDF first.

    Raises:
        DataError: A document has no label.
    """
    made = EvaluateConfig.make(config, overrides)
    parts = [list_documents(documents) for documents in (train, test)]
    texts, labels = [[each.text for each in part] for part in parts], [document_labels(part) for part in parts]
    warn_of_copies(*texts)
    few: dict[str, Any] = {"shots": made.shots, "draws": made.draws, "seed": made.seed}
    given = (texts[0], labels[0], texts[1], labels[1])
    results = {TFIDF: ProbeComparison(tfidf_few_shot(*given, **few), tfidf_probe(*given))}
    for name, model in models.items():
        rows = encode_texts(
            model,
            texts[0] + texts[1],
            max_seq_length=made.max_seq_length,
            batch_size=made.batch_size,
            show_progress_bar=made.progress,
            bar_name=f"Encoding labelled documents ({os.path.basename(name) or name})",
        )
        vectors = (rows[: len(texts[0])], labels[0], rows[len(texts[0]) :], labels[1])
        results[name] = ProbeComparison(few_shot_probe(*vectors, **few), fit_probe(*vectors, seed=made.seed))
    return results


def comparison_table(
    halves: Mapping[str, HalvesComparison],
    probes: Mapping[str, ProbeComparison] | None = None,
    shots: int = 5,
    width: int | None = None,
) -> str:
    """Return Markdown tables, a row a model: one of what documents say without labels, one of the probes with labels.

    Args:
        halves: Results without labels, by model; may be empty.
        probes: Results of the probes, by model.
        shots: Examples a class of the few-shot probe, for its heading.
        width: Most columns of a line: longer names lose their beginning. None shows them whole.

    Returns:
        The tables, with an empty line between them; numbers are percentages, F1 is macro-F1.
    """
    tables = []
    if halves:
        rows = [
            [name, each.structure.in_percent(), f"{100 * each.split_half.top1:.1f}"] for name, each in halves.items()
        ]
        tables.append(named_table(["without labels", "same neighbours [95%]", "split-half top-1"], rows, width))
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
        tables.append(named_table(header, rows, width))
    return "\n\n".join(tables)
