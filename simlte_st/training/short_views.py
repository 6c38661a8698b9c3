"""Attention over short views, trained in bfloat16 on a CPU.

PyTorch's fused attention is the faster one everywhere else. There its backward pass takes as long for 64 tokens as for
512: with four small operations in its place a layer's attention is 4.8 times as fast at 64 tokens, and 4.1 at 112
(forward and backward, 4,096 tokens, one thread, torch 2.13). At 256 it is slower.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from sentence_transformers import SentenceTransformer

from simlte_st.backbones.base import Backbone
from simlte_st.backbones.registry import backbone_of
from simlte_st.compat import eager_attention, encoder_of, is_fused
from simlte_st.errors import ModelError

MOST_TOKENS = 96
"""Tokens of a view up to which the weights may be held for the backward pass: they grow with their square."""


def faster_attention(model: SentenceTransformer, dtype: torch.dtype) -> AbstractContextManager[None]:
    """Return what lets a model that is trained compute attention in the faster way: a context."""
    length = model.max_seq_length
    if model.device.type != "cpu" or dtype is not torch.bfloat16 or length is None or length > MOST_TOKENS:
        return nullcontext()
    try:
        encoder = encoder_of(model)
    except ModelError:  # another kind of model, without attention
        return nullcontext()
    slow = is_fused(encoder) and backbone_of(encoder) is Backbone
    return eager_attention(encoder) if slow else nullcontext()
