"""Windowed attention on the CPU without copies: PyTorch's fused kernel on overlapping views of keys and values.

Evenly spaced chunks form one strided view, and so do their keys, although neighbours share most of them. Automatic
differentiation is slow through such views, so the backward pass is explicit. Global tokens outside a chunk's stretch
are merged into the softmax afterwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from simlte_st.longformer.blocked import QueryChunk, chunk_bias, far_columns, grouped_chunks
from simlte_st.longformer.packing import Packing


class ChunkRun(NamedTuple):
    """Evenly spaced chunks of one shape."""

    first: QueryChunk
    chunks: int  # number of chunks
    step: int  # slots from one chunk to the next
    bias: Tensor  # mask of the stretch, (chunks or 1, 1, queries, keys)
    far: Tensor  # slots of the global tokens outside the stretch, (chunks, far), int64
    far_bias: Tensor  # 0 for real ones, minus infinity for padding, (chunks or 1, 1, 1, far)


class FarKeys(NamedTuple):
    """Keys and values beyond the stretch, ``(chunks, heads, far, size)``, merged through the logsumexp.

    Given the merged output and logsumexp, the fused kernel's backward pass returns the gradients of its share.
    """

    key: Tensor
    value: Tensor
    bias: Tensor  # as in the run, at least float32

    def scores(self, query: Tensor) -> Tensor:
        """Return scores in the bias' dtype, ``(chunks, heads, queries, far)``."""
        wide = self.bias.dtype
        return query.to(wide) @ self.key.to(wide).transpose(-2, -1) / math.sqrt(query.shape[-1]) + self.bias

    def merge(self, query: Tensor, attended: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and logsumexp, ``(chunks, heads, queries)``, of all keys."""
        scores = self.scores(query)
        merged = torch.logaddexp(total, scores.logsumexp(-1))
        weights = (scores - merged[..., None]).exp()
        # In float32: a factor rounded to 16 bits would shift a whole row and its gradients.
        kept = attended * (total - merged).exp()[..., None]
        kept += weights @ self.value.to(weights.dtype)
        return kept, merged

    def gradients(self, query: Tensor, grad: Tensor, out: Tensor, total: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of queries, keys and values; ``out`` and ``total`` are the merged ones."""
        weights = (self.scores(query) - total[..., None]).exp()
        wide = weights.dtype
        gains = grad.to(wide) @ self.value.to(wide).transpose(-2, -1)
        # The softmax's gradient: each weight times the gain of its value over the output.
        gains -= (grad.to(wide) * out).sum(-1, keepdim=True)
        to_scores = (weights * gains / math.sqrt(query.shape[-1])).to(grad.dtype)
        to_key = to_scores.transpose(-2, -1) @ query
        return to_scores @ self.key, to_key, weights.to(grad.dtype).transpose(-2, -1) @ grad


def has_cpu_kernel() -> bool:
    """Return whether this PyTorch has the private fused kernel."""
    return hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward")


def cpu_attention(query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int) -> Tensor:
    """Attend within windows and to global tokens, without dropout."""
    runs = packing.once(("runs", window, query.dtype), lambda: _runs(packing, window, query.dtype))
    with torch.autocast("cpu", enabled=False):  # far scores in 32 bits, as in the backward pass
        attended: Tensor = _CpuAttention.apply(query.contiguous(), key.contiguous(), value.contiguous(), runs)  # type: ignore[no-untyped-call]
    return attended.flatten(1)


class _CpuAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, runs: list[ChunkRun]) -> Tensor:
        out = torch.empty_like(query)
        sums = []
        for run in runs:
            attended, total = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                _queries(query, run), _keys(key, run), _keys(value, run), attn_mask=run.bias
            )
            if run.far.shape[1]:
                attended, total = _far(key, value, run).merge(_queries(query, run), attended, total)
            _queries(out, run).copy_(attended)
            sums.append(total)
        ctx.save_for_backward(query, key, value, out, *sums)
        ctx.runs = runs
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value, out, *sums = ctx.saved_tensors
        grad = grad.contiguous()
        to_query, to_key, to_value = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value)
        for run, total in zip(ctx.runs, sums, strict=True):
            grad_run, out_run = _queries(grad, run), _queries(out, run)
            grads = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                grad_run,
                _queries(query, run),
                _keys(key, run),
                _keys(value, run),
                out_run,
                total,
                0.0,
                False,
                attn_mask=run.bias,
            )
            _queries(to_query, run).copy_(grads[0])
            _add_overlapping(to_key, grads[1], run)
            _add_overlapping(to_value, grads[2], run)
            if run.far.shape[1]:
                far, slots = _far(key, value, run), run.far.flatten()
                to_queries, *to_far = far.gradients(_queries(query, run), grad_run, out_run, total)
                _queries(to_query, run).add_(to_queries)
                for total_grad, part in zip((to_key, to_value), to_far, strict=True):
                    total_grad.index_add_(0, slots, part.transpose(1, 2).reshape(len(slots), *key.shape[1:]))
        return to_query, to_key, to_value, None


def _queries(x: Tensor, run: ChunkRun) -> Tensor:
    """View the queries' slots of ``(slots, heads, size)`` as ``(chunks, heads, queries, size)``."""
    return _view(x, run, run.first.query, run.first.queries)


def _keys(x: Tensor, run: ChunkRun) -> Tensor:
    """View the keys' slots as ``(chunks, heads, keys, size)``; neighbours overlap."""
    return _view(x, run, run.first.key, run.first.keys)


def _view(x: Tensor, run: ChunkRun, start: int, length: int) -> Tensor:
    _, heads, size = x.shape
    token = heads * size
    strides = (run.step * token, size, token, 1)
    return x.as_strided((run.chunks, heads, length, size), strides, x.storage_offset() + start * token)


def _add_overlapping(total: Tensor, parts: Tensor, run: ChunkRun) -> None:
    """Add ``(chunks, heads, keys, size)`` to the keys' slots, one step at a time: within a step no keys overlap."""
    for start in range(0, run.first.keys, run.step):
        width = min(run.step, run.first.keys - start)
        view = _view(total, run, run.first.key + start, width)
        view += parts[:, :, start : start + width]


def _far(key: Tensor, value: Tensor, run: ChunkRun) -> FarKeys:
    """Return a run's far keys, ``(chunks, heads, far, size)``."""
    return FarKeys(key[run.far].transpose(1, 2), value[run.far].transpose(1, 2), run.far_bias)


def _runs(packing: Packing, window: int, dtype: torch.dtype) -> list[ChunkRun]:
    runs: list[ChunkRun] = []
    wide = torch.promote_types(dtype, torch.float32)
    for group in grouped_chunks(packing, window):
        shared = chunk_bias(packing, group, window, dtype) if group[0].plain else None
        for chunks in _progressions(group):
            step = chunks[1].query - chunks[0].query if len(chunks) > 1 else max(chunks[0].keys, chunks[0].queries)
            bias = chunk_bias(packing, chunks, window, dtype) if shared is None else shared
            far, real = far_columns(chunks, packing.valid.device)
            far_bias = torch.zeros(real.shape, dtype=wide).masked_fill(~real, float("-inf"))[:, None, None]
            runs.append(ChunkRun(chunks[0], len(chunks), step, bias, far, far_bias))
    return runs


def _progressions(chunks: list[QueryChunk]) -> list[list[QueryChunk]]:
    """Split chunks where their spacing, or the offset from queries to keys, changes."""
    parts: list[list[QueryChunk]] = []
    for chunk in chunks:
        part = parts[-1] if parts else []
        even = len(part) < 2 or chunk.query - part[-1].query == part[1].query - part[0].query
        if part and even and chunk.key - chunk.query == part[0].key - part[0].query:
            part.append(chunk)
        else:
            parts.append([chunk])
    return parts
