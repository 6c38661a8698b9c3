from .classification_probe import ClassificationProbeEvaluator
from .comparison import (
    HalvesComparison,
    ProbeComparison,
    compare_halves,
    compare_probes,
    comparison_table,
)
from .config import CompareConfig, EvaluateConfig
from .evaluate import Evaluation, EvaluationDocuments, evaluate_models
from .evaluator import EmbeddingEvaluator, EvaluatorSettings
from .few_shot import FewShotResult, few_shot_probe, tfidf_few_shot, tfidf_probe
from .probe import ProbeResult, fit_probe
from .scores import CosineScores, PairScores, TfidfScores
from .split_half import SplitHalfResult, split_half_retrieval, split_half_views
from .splits import draw_shots, sample_documents, split_by_label
from .statistics import alignment, bootstrap_interval, uniformity
from .structure import StructureEvaluator, StructureResult, structure_agreement
from .verdict import Difference, Verdict, give_verdict

__all__ = [
    "ClassificationProbeEvaluator",
    "CompareConfig",
    "CosineScores",
    "Difference",
    "EmbeddingEvaluator",
    "EvaluateConfig",
    "Evaluation",
    "EvaluationDocuments",
    "EvaluatorSettings",
    "FewShotResult",
    "HalvesComparison",
    "PairScores",
    "ProbeComparison",
    "ProbeResult",
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
