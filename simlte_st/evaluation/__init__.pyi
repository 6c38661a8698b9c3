from .comparison import HalvesComparison, ProbeComparison, compare_halves, compare_probes, comparison_table
from .evaluate import Evaluation, evaluate_models
from .evaluator import StructureEvaluator
from .halves import SplitHalfResult, StructureResult, split_half_retrieval, split_half_views, structure_agreement
from .probe import FewShotResult, ProbeResult, few_shot_probe, fit_probe
from .scores import CosineScores, PairScores, TfidfScores, bootstrap_interval, tfidf_parts
from .splits import draw_shots, sample_documents, split_by_label
from .verdict import Difference, Verdict, give_verdict

__all__ = [
    "CosineScores",
    "Difference",
    "Evaluation",
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
    "tfidf_parts",
]
