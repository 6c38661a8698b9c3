"""The Longformer as one graph, for export: the same weights and results, without decisions that depend on documents.

All documents of a batch are padded to one length on the right; queries stand in blocks, and each block has the blocks
around it as keys. ``[CLS]`` is a column of its own for all of them, and its own row is computed separately.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.longformer.chunks import hidden_bias
from simlte_st.longformer.modeling import SimlteLongformerModel
from simlte_st.longformer.packing import BLOCK


class PaddedLongformer(nn.Module):
    """A Longformer whose forward pass can be traced."""

    def __init__(self, model: SimlteLongformerModel) -> None:
        super().__init__()
        self.model = model
        self.heads = model.config.num_attention_heads
        self.cls = model.config.global_tokens == "cls"

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Encode a batch that is padded on the right."""
        pad = self.model.embeddings.padding_idx
        real = (input_ids != pad).long()
        hidden: Tensor = self.model.embeddings(
            self.model.embeddings.word_embeddings(input_ids), real.cumsum(1) * real + pad, None
        )
        for module, window in zip(self.model.encoder.layer, self.model.config.layer_windows(), strict=True):
            layer: Any = module
            attended = layer.attention.output(
                self._attend(layer.attention.self, hidden, attention_mask, window), hidden
            )
            hidden = layer.output(layer.intermediate(attended), attended)
        return hidden

    def _attend(self, projections: Any, hidden: Tensor, mask: Tensor, window: int) -> Tensor:
        batch, length, size = hidden.shape
        around = -(-window // 2 // BLOCK)  # blocks of keys on each side
        heads = (self.heads, size // self.heads)
        queries, keys, values = (
            projection(hidden).view(batch, -1, BLOCK, *heads)
            for projection in (projections.query, projections.key, projections.value)
        )
        place = torch.arange(length, device=hidden.device)
        seen = (mask > 0) & (place > 0) if self.cls else mask > 0  # [CLS] has its own column
        seen = _with_neighbours(seen.view(batch, -1, BLOCK), around)
        row = torch.arange(BLOCK, device=hidden.device)[:, None]
        column = torch.arange((2 * around + 1) * BLOCK, device=hidden.device) - around * BLOCK
        sees = ((row - column).abs() <= window // 2) & seen[:, :, None]
        hide = hidden_bias(hidden.dtype)
        bias = torch.where(sees, 0.0, hide)
        near_keys, near_values = (_with_neighbours(each, around) for each in (keys, values))
        if self.cls:
            first_key, first_value = (
                each[:, :1, :1].expand(-1, near_keys.shape[1], -1, -1, -1) for each in (keys, values)
            )
            near_keys, near_values = torch.cat([near_keys, first_key], 2), torch.cat([near_values, first_value], 2)
            bias = torch.cat([bias, torch.zeros_like(bias[..., :1])], -1)
        queries, near_keys, near_values = (
            each.flatten(0, 1).transpose(1, 2) for each in (queries, near_keys, near_values)
        )
        attended = functional.scaled_dot_product_attention(
            queries, near_keys, near_values, attn_mask=bias.flatten(0, 1)[:, None]
        )
        local = attended.transpose(1, 2).reshape(batch, -1, size)
        if not self.cls:
            return local
        query = projections.query_global(hidden[:, :1]).view(batch, 1, *heads).transpose(1, 2)
        all_keys, all_values = (
            projection(hidden).view(batch, -1, *heads).transpose(1, 2)
            for projection in (projections.key_global, projections.value_global)
        )
        whole = functional.scaled_dot_product_attention(
            query, all_keys, all_values, attn_mask=torch.where(mask[:, None, None] > 0, 0.0, hide)
        )
        return torch.cat([whole.transpose(1, 2).reshape(batch, 1, size), local[:, 1:]], 1)


def _with_neighbours(blocks: Tensor, around: int) -> Tensor:
    """Return each block with the blocks before and after it, zeros where there are none."""
    beyond = torch.zeros_like(blocks[:, :1])
    padded = torch.cat([*[beyond] * around, blocks, *[beyond] * around], 1)
    return torch.cat([padded[:, start : start - 2 * around or None] for start in range(2 * around + 1)], 2)
