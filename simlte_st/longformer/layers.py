"""The Longformer's modules, named as the stock ones are, over packed hidden states ``(slots, hidden)``."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.longformer.modeling_longformer import (
    LongformerIntermediate,
    LongformerOutput,
    LongformerSelfOutput,
)

from simlte_st.longformer.attention import LongformerSelfAttention
from simlte_st.longformer.configuration import SimlteLongformerConfig
from simlte_st.longformer.packing import Packing

SLOTS = 2048
"""Slots that pass the feed-forward together on the CPU where no gradients are wanted: what they need fits the cache."""


class LongformerEmbeddings(nn.Module):
    """Words, positions and segments, summed and normalised."""

    def __init__(self, config: SimlteLongformerConfig) -> None:
        super().__init__()
        assert config.pad_token_id is not None  # the configuration has checked it
        # Beside a table of positions it tells that positions are numbered from padding_idx + 1 (simlte_st.compat).
        self.padding_idx: int = config.pad_token_id
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=self.padding_idx)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(
            config.max_position_embeddings, config.hidden_size, padding_idx=self.padding_idx
        )
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, words: Tensor, positions: Tensor, segments: Tensor | None) -> Tensor:
        """Embed packed tokens."""
        embedded = self.word_embeddings(words) if words.dim() == 1 else words
        of_segment = self.token_type_embeddings.weight[0] if segments is None else self.token_type_embeddings(segments)
        embedded = embedded + self.position_embeddings(positions) + of_segment
        normed: Tensor = self.dropout(self.LayerNorm(embedded))
        return normed


class LongformerAttention(nn.Module):
    """Self-attention and its output projection."""

    def __init__(self, config: SimlteLongformerConfig, window: int) -> None:
        super().__init__()
        self.self = LongformerSelfAttention(
            config.hidden_size, config.num_attention_heads, window, config.attention_probs_dropout_prob
        )
        self.output = LongformerSelfOutput(config)

    def forward(self, hidden: Tensor, packing: Packing, backend: str) -> Tensor:
        """Map ``(slots, hidden)`` to the same shape."""
        attended: Tensor = self.output(self.self(hidden, packing, backend), hidden)
        return attended


class LongformerLayer(GradientCheckpointingLayer):
    """Attention and feed-forward; recomputed in the backward pass under gradient checkpointing."""

    def __init__(self, config: SimlteLongformerConfig, window: int) -> None:
        super().__init__()
        self.attention = LongformerAttention(config, window)
        self.intermediate = LongformerIntermediate(config)
        self.output = LongformerOutput(config)
        self.chunk_size: int = config.chunk_size_feed_forward

    def forward(self, hidden: Tensor, packing: Packing, backend: str) -> Tensor:
        """Map ``(slots, hidden)`` to the same shape."""
        attended = self.attention(hidden, packing, backend)
        on_cpu = attended.device.type == "cpu" and not torch.is_grad_enabled()
        size = self.chunk_size or (SLOTS if on_cpu else len(attended))
        outputs = [self.output(self.intermediate(part), part) for part in attended.split(size)]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


class LongformerEncoder(nn.Module):
    """All layers."""

    def __init__(self, config: SimlteLongformerConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(LongformerLayer(config, window) for window in config.layer_windows())

    def forward(self, hidden: Tensor, packing: Packing, backend: str, keep_all: bool) -> tuple[Tensor, list[Tensor]]:
        """Run the layers."""
        states = [hidden]
        for layer in self.layer:
            hidden = layer(hidden, packing, backend)
            if keep_all:
                states.append(hidden)
        return hidden, states if keep_all else []
