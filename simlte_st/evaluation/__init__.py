"""Measuring a model: neighbours without labels, probes on labelled texts, baselines of words, the verdict."""

from __future__ import annotations

from typing import Any

from simlte_st.evaluation.classification_probe import ClassificationProbeEvaluator, FewShotResult, few_shot_probe
from simlte_st.evaluation.comparison import HalvesComparison, ProbeComparison, compare_halves, compare_probes
from simlte_st.evaluation.evaluate import Evaluation, EvaluationDocuments, evaluate_models
from simlte_st.evaluation.evaluator import EmbeddingEvaluator, EvaluatorSettings
from simlte_st.evaluation.lexical import (
    Bm25Scores,
    TfidfScores,
    tfidf_few_shot,
    tfidf_probe,
)
from simlte_st.evaluation.pair_scores import CosineScores, PairScores
from simlte_st.evaluation.probe import ProbeResult, fit_probe
from simlte_st.evaluation.split_half import (
    HalvesEvaluator,
    SplitHalfEvaluator,
    SplitHalfResult,
    split_half_retrieval,
    split_half_views,
)
from simlte_st.evaluation.splits import draw_shots, sample_documents, split_by_label
from simlte_st.evaluation.statistics import alignment, bootstrap_interval, uniformity
from simlte_st.evaluation.structure import StructureEvaluator, StructureResult, structure_agreement
from simlte_st.evaluation.table import comparison_table
from simlte_st.evaluation.verdict import Difference, Verdict, give_verdict

__all__ = [
    "Bm25Scores",
    "ClassificationProbeEvaluator",
    "CosineScores",
    "Difference",
    "EmbeddingEvaluator",
    "Evaluation",
    "EvaluationDocuments",
    "EvaluatorSettings",
    "FewShotResult",
    "HalvesComparison",
    "HalvesEvaluator",
    "PairScores",
    "ProbeComparison",
    "ProbeResult",
    "SplitHalfEvaluator",
    "SplitHalfResult",
    "StructureEvaluator",
    "StructureResult",
    "TfidfScores",
    "Verdict",
    "alignment",
    "bootstrap_interval",
    "compare_halves",
    "compare_probes",
    "comparison_table",
    "draw_shots",
    "evaluate_models",
    "few_shot_probe",
    "fit_probe",
    "give_verdict",
    "sample_documents",
    "split_by_label",
    "split_half_retrieval",
    "split_half_views",
    "structure_agreement",
    "tfidf_few_shot",
    "tfidf_probe",
    "uniformity",
]

_MOVED = {
    "benchmarks.papers.citation_links": ("LinkResult", "citation_link_probe", "citation_link_threshold"),
    "benchmarks.papers.citation_retrieval": ("CitationRetrievalEvaluator", "RetrievalResult", "citation_retrieval"),
    "benchmarks.papers.document_similarity": ("JudgedPairs", "SimilarityResult", "document_similarity", "load_lee"),
    "benchmarks.papers.link_pairs": ("LinkPairs", "link_pairs", "number_links"),
    "benchmarks.papers.linking": ("LinkingEvaluator", "LinkingResult", "linking"),
}


def __getattr__(name: str) -> Any:
    """Raise an error that says where an evaluator of the papers is now."""
    for module, names in _MOVED.items():
        if name in names:
            raise ImportError(
                f"{name} is no longer in simlte_st.evaluation: in a clone of the repository, import {module}."
            )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
