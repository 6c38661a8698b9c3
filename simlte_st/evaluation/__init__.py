"""Measuring a model: probes on labelled texts, citations, judged similarities, retrieval without labels, baselines."""

from __future__ import annotations

from simlte_st.evaluation.citation_links import (
    LinkResult,
    citation_link_probe,
    citation_link_threshold,
)
from simlte_st.evaluation.citation_retrieval import CitationRetrievalEvaluator, RetrievalResult, citation_retrieval
from simlte_st.evaluation.classification_probe import ClassificationProbeEvaluator, FewShotResult, few_shot_probe
from simlte_st.evaluation.comparison import HalvesComparison, ProbeComparison, compare_halves, compare_probes
from simlte_st.evaluation.document_similarity import (
    JudgedPairs,
    SimilarityResult,
    document_similarity,
    load_lee,
)
from simlte_st.evaluation.evaluate import Evaluation, EvaluationDocuments, evaluate_models
from simlte_st.evaluation.evaluator import EmbeddingEvaluator, EvaluatorSettings
from simlte_st.evaluation.lexical import (
    Bm25Scores,
    TfidfScores,
    tfidf_few_shot,
    tfidf_probe,
)
from simlte_st.evaluation.link_pairs import LinkPairs, link_pairs, number_links
from simlte_st.evaluation.linking import LinkingEvaluator, LinkingResult, linking
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
    "CitationRetrievalEvaluator",
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
    "JudgedPairs",
    "LinkPairs",
    "LinkResult",
    "LinkingEvaluator",
    "LinkingResult",
    "PairScores",
    "ProbeComparison",
    "ProbeResult",
    "RetrievalResult",
    "SimilarityResult",
    "SplitHalfEvaluator",
    "SplitHalfResult",
    "StructureEvaluator",
    "StructureResult",
    "TfidfScores",
    "Verdict",
    "alignment",
    "bootstrap_interval",
    "citation_link_probe",
    "citation_link_threshold",
    "citation_retrieval",
    "compare_halves",
    "compare_probes",
    "comparison_table",
    "document_similarity",
    "draw_shots",
    "evaluate_models",
    "few_shot_probe",
    "fit_probe",
    "give_verdict",
    "link_pairs",
    "linking",
    "load_lee",
    "number_links",
    "sample_documents",
    "split_by_label",
    "split_half_retrieval",
    "split_half_views",
    "structure_agreement",
    "tfidf_few_shot",
    "tfidf_probe",
    "uniformity",
]
