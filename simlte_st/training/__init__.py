"""Training: presets, the run, and callbacks for the stock Trainer."""

from simlte_st.training.callbacks import LossMetricsCallback, LossStateCallback
from simlte_st.training.presets import PRESETS, Preset, get_preset
from simlte_st.training.result import TrainingResult
from simlte_st.training.train import train

__all__ = [
    "PRESETS",
    "LossMetricsCallback",
    "LossStateCallback",
    "Preset",
    "TrainingResult",
    "get_preset",
    "train",
]
