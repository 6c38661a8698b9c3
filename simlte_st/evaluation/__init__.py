"""Measuring a model: probes on labelled texts, citations, judged similarities, retrieval without labels, baselines."""

from __future__ import annotations

from simlte_st.evaluation.baselines import bm25_split_half, tfidf_few_shot, tfidf_probe, tfidf_split_half
from simlte_st.evaluation.citation_links import (
    CitationLinkEvaluator,
    LinkResult,
    citation_link_probe,
    citation_link_threshold,
)
from simlte_st.evaluation.citation_retrieval import CitationRetrievalEvaluator, RetrievalResult, citation_retrieval
from simlte_st.evaluation.document_similarity import (
    DocumentSimilarityEvaluator,
    JudgedPairs,
    SimilarityResult,
    document_similarity,
    load_lee,
)
from simlte_st.evaluation.few_shot import FewShotProbeEvaluator, FewShotResult, draw_shots, few_shot_probe
from simlte_st.evaluation.link_pairs import LinkPairs, link_pairs, number_links
from simlte_st.evaluation.pair_scores import Bm25Scores, CosineScores, PairScores, TfidfScores
from simlte_st.evaluation.probe import ProbeResult, fit_probe
from simlte_st.evaluation.probe_evaluator import ClassificationProbeEvaluator
from simlte_st.evaluation.split_half import SplitHalfEvaluator, SplitHalfResult, split_half_retrieval
from simlte_st.evaluation.statistics import alignment, bootstrap_interval, mean_and_deviation, uniformity

__all__ = [
    "Bm25Scores",
    "CitationLinkEvaluator",
    "CitationRetrievalEvaluator",
    "ClassificationProbeEvaluator",
    "CosineScores",
    "DocumentSimilarityEvaluator",
    "FewShotProbeEvaluator",
    "FewShotResult",
    "JudgedPairs",
    "LinkPairs",
    "LinkResult",
    "PairScores",
    "ProbeResult",
    "RetrievalResult",
    "SimilarityResult",
    "SplitHalfEvaluator",
    "SplitHalfResult",
    "TfidfScores",
    "alignment",
    "bm25_split_half",
    "bootstrap_interval",
    "citation_link_probe",
    "citation_link_threshold",
    "citation_retrieval",
    "document_similarity",
    "draw_shots",
    "few_shot_probe",
    "fit_probe",
    "link_pairs",
    "load_lee",
    "mean_and_deviation",
    "number_links",
    "split_half_retrieval",
    "tfidf_few_shot",
    "tfidf_probe",
    "tfidf_split_half",
    "uniformity",
]
