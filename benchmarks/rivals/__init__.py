"""What DocSplit is compared with: other objectives, trained on the same budget, and encoders that need no training."""

from __future__ import annotations

from benchmarks.rivals.encoders import ENCODERS, ModelEncoder, load_encoder, load_hub_model
from benchmarks.rivals.hub_models import HUB_MODELS, HubModel
from benchmarks.rivals.job import RIVAL_FILE, RivalRecord
from benchmarks.rivals.objectives import RIVALS, Rival
from benchmarks.rivals.train import train_rival

__all__ = [
    "ENCODERS",
    "HUB_MODELS",
    "RIVALS",
    "RIVAL_FILE",
    "HubModel",
    "ModelEncoder",
    "Rival",
    "RivalRecord",
    "load_encoder",
    "load_hub_model",
    "train_rival",
]
