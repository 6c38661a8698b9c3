"""Measuring a model: probes on labelled texts, split-half retrieval without labels, and the baselines beside them."""

from __future__ import annotations

from simlte_st.evaluation.baselines import bm25_split_half, tfidf_few_shot, tfidf_probe, tfidf_split_half
from simlte_st.evaluation.few_shot import FewShotProbeEvaluator, FewShotResult, draw_shots, few_shot_probe
from simlte_st.evaluation.probe import ProbeResult, fit_probe
from simlte_st.evaluation.probe_evaluator import ClassificationProbeEvaluator
from simlte_st.evaluation.split_half import SplitHalfEvaluator, SplitHalfResult, split_half_retrieval
from simlte_st.evaluation.statistics import alignment, bootstrap_interval, mean_and_deviation, uniformity

__all__ = [
    "ClassificationProbeEvaluator",
    "FewShotProbeEvaluator",
    "FewShotResult",
    "ProbeResult",
    "SplitHalfEvaluator",
    "SplitHalfResult",
    "alignment",
    "bm25_split_half",
    "bootstrap_interval",
    "draw_shots",
    "few_shot_probe",
    "fit_probe",
    "mean_and_deviation",
    "split_half_retrieval",
    "tfidf_few_shot",
    "tfidf_probe",
    "tfidf_split_half",
    "uniformity",
]
