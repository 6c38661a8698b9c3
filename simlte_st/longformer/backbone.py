"""The Longformer as a backbone: what it is, and the settings of a conversion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from simlte_st.backbones.base import Backbone
from simlte_st.config import setting

Positions = Literal["tile", "interpolate"]
GlobalTokens = Literal["cls", "none"]

MAX_LENGTH = 4096
"""Number of tokens that a converted model reads by default: the papers'."""


@dataclass(frozen=True, kw_only=True)
class Longformer(Backbone):
    """An encoder with absolute positions becomes a Longformer, with the MLM head where it has one.

    A stock Longformer keeps its positions, windows and weights.
    """

    model_type: ClassVar[str] = "simlte_longformer"
    replaces: ClassVar[tuple[str, ...]] = ("longformer",)
    reading: ClassVar[str] = "a Longformer of {:,} tokens"

    attention_window: int | list[int] = setting(
        512,
        "tokens that a token sees on both sides together; an even number",
        default_help="512",
    )
    positions: Positions = setting(
        "tile",
        "where the positions beyond the encoder's come from: tile repeats them, as the paper does; interpolate "
        "stretches them",
        default_help="tile",
    )
    global_tokens: GlobalTokens | None = setting(
        None,
        "tokens that see, and are seen by, the whole document: cls, the first one, or none",
        default_help="none for a stock Longformer that is a sentence encoder, as it was tuned; else cls",
    )
