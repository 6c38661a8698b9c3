"""What DocSplit is compared with: other objectives, trained on the same budget, and encoders that need no training."""

from __future__ import annotations

from benchmarks.rivals.encoders import Bm25Encoder, ModelEncoder, TextEncoder, TfidfEncoder
from benchmarks.rivals.hub import HUB_MODELS, HubModel, load_hub_model
from benchmarks.rivals.job import RIVAL_FILE, RivalRecord
from benchmarks.rivals.registry import RIVALS, Rival
from benchmarks.rivals.train import train_rival
from benchmarks.rivals.untrained import ENCODERS, EncoderEntry, load_encoder

__all__ = [
    "ENCODERS",
    "HUB_MODELS",
    "RIVALS",
    "RIVAL_FILE",
    "Bm25Encoder",
    "EncoderEntry",
    "HubModel",
    "ModelEncoder",
    "Rival",
    "RivalRecord",
    "TextEncoder",
    "TfidfEncoder",
    "load_encoder",
    "load_hub_model",
    "train_rival",
]
