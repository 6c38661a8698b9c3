"""What DocSplit is compared with: other objectives, trained on the same budget, and encoders that need no training."""

from __future__ import annotations

from simlte_st.rivals.encoders import Bm25Encoder, ModelEncoder, TextEncoder, TfidfEncoder
from simlte_st.rivals.hub import HUB_MODELS, HubModel, load_hub_model
from simlte_st.rivals.job import RIVAL_FILE, RivalRecord
from simlte_st.rivals.registry import RIVALS, Rival
from simlte_st.rivals.train import train_rival
from simlte_st.rivals.untrained import ENCODERS, EncoderEntry, load_encoder

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
