"""Training: presets, the run, callbacks for the stock Trainer, and what keeps a base's knowledge."""

from simlte_st.training.callbacks import LossMetricsCallback, LossStateCallback
from simlte_st.training.interpolation import InterpolationChoice, choose_interpolation, interpolate
from simlte_st.training.lora import LoraStateCallback, add_lora, merge_lora
from simlte_st.training.presets import PRESETS, Preset, get_preset
from simlte_st.training.result import TrainingResult
from simlte_st.training.train import train

__all__ = [
    "PRESETS",
    "InterpolationChoice",
    "LoraStateCallback",
    "LossMetricsCallback",
    "LossStateCallback",
    "Preset",
    "TrainingResult",
    "add_lora",
    "choose_interpolation",
    "get_preset",
    "interpolate",
    "merge_lora",
    "train",
]
