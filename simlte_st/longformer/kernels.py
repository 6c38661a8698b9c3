"""Windowed attention through direct calls to PyTorch's private kernels, one for the CPU and one for CUDA.

On the CPU, the fused kernel reads overlapping views of keys and values without copying them. Evenly spaced chunks form
one strided view, and so do their keys, although neighbouring chunks share most keys. Autograd is slow through such
views, so the backward pass is explicit. An extra pass attends to the global tokens outside a chunk's stretch.

On CUDA, variable-length FlashAttention supports windows but not global keys. An extra pass for each global token of a
document attends to it from the slots beyond its window. Padding between documents is treated as extra documents.
``torch.nn.attention.varlen.varlen_attn`` is not used, because it has neither dropout nor a gradient for its logsumexp.

Outputs of extra passes are merged through the logsumexp. Given the merged output and logsumexp, a kernel's backward
pass returns the gradients of its share of the softmax.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from simlte_st.longformer.blocked import QueryChunk, chunk_bias, far_columns, grouped_chunks
from simlte_st.longformer.packing import Packing, attention_bias, to_device

DEVICE, DTYPES, SIZES = "cuda", (torch.float16, torch.bfloat16), range(8, 129, 8)
"""Device, dtypes and head sizes that FlashAttention supports."""

GLOBALS = 8
"""Maximum number of global tokens per document; each takes an extra pass."""

_DOCUMENTS = ("cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p", "is_causal")
_OPERATORS = {
    "_flash_attention_forward": ("query", "key", "value", *_DOCUMENTS, "return_debug_mask"),
    "_flash_attention_backward": ("grad_out", "query", "key", "value", "out", "logsumexp", *_DOCUMENTS),
}


class ChunkRun(NamedTuple):
    """Evenly spaced chunks of one shape."""

    first: QueryChunk
    chunks: int  # number of chunks
    step: int  # slots from one chunk to the next
    bias: Tensor  # additive mask of the stretch, (chunks or 1, 1, queries, keys)
    far: Tensor  # slots of the global tokens outside the stretch, (chunks, far), int64
    far_bias: Tensor  # additive mask of these tokens, (chunks or 1, 1, 1, far)


def has_cpu_kernel() -> bool:
    """Return whether this version of PyTorch has the private fused CPU kernel."""
    return hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward")


def cpu_attention(query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int) -> Tensor:
    """Return the output of windowed attention with global keys, ``(slots, hidden)``, without dropout."""
    runs = packing.once(("runs", window, query.dtype), lambda: _runs(packing, window, query.dtype))
    attended: Tensor = _CpuAttention.apply(query.contiguous(), key.contiguous(), value.contiguous(), runs)  # type: ignore[no-untyped-call]
    return attended.flatten(1)


class _CpuAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, runs: list[ChunkRun]) -> Tensor:
        out = torch.empty_like(query)
        run_lses = []
        for run in runs:
            queries, attend = _queries(query, run), torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
            run_out, lse = attend(queries, _keys(key, run), _keys(value, run), attn_mask=run.bias)
            if run.far.shape[1]:
                far_out, far_lse = attend(queries, *_far_keys(key, value, run), attn_mask=run.far_bias)
                run_out, lse = _merge(run_out, lse, far_out, far_lse), torch.logaddexp(lse, far_lse)
            _queries(out, run).copy_(run_out)
            run_lses.append(lse)
        ctx.save_for_backward(query, key, value, out, *run_lses)
        ctx.runs = runs
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value, out, *run_lses = ctx.saved_tensors
        grad = grad.contiguous()
        query_grad, key_grad, value_grad = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value)
        for run, lse in zip(ctx.runs, run_lses, strict=True):
            backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
            queries, outputs = (_queries(grad, run), _queries(query, run)), (_queries(out, run), lse, 0.0, False)
            near = backward(*queries, _keys(key, run), _keys(value, run), *outputs, attn_mask=run.bias)
            _queries(query_grad, run).copy_(near[0])
            _add_overlapping(key_grad, near[1], run)
            _add_overlapping(value_grad, near[2], run)
            if run.far.shape[1]:
                far_query_grad, *far_grads = backward(
                    *queries, *_far_keys(key, value, run), *outputs, attn_mask=run.far_bias
                )
                _queries(query_grad, run).add_(far_query_grad)
                for total, far_grad in zip((key_grad, value_grad), far_grads, strict=True):
                    total.index_add_(0, run.far.flatten(), far_grad.transpose(1, 2).flatten(0, 1))
        return query_grad, key_grad, value_grad, None


def _queries(states: Tensor, run: ChunkRun) -> Tensor:
    """View the query slots of ``(slots, heads, size)`` as ``(chunks, heads, queries, size)``."""
    return _view_chunks(states, run, run.first.query, run.first.queries)


def _keys(states: Tensor, run: ChunkRun) -> Tensor:
    """View the key slots as ``(chunks, heads, keys, size)``, where neighbouring chunks overlap."""
    return _view_chunks(states, run, run.first.key, run.first.keys)


def _view_chunks(states: Tensor, run: ChunkRun, start: int, length: int) -> Tensor:
    _, heads, size = states.shape
    token = heads * size
    strides = (run.step * token, size, token, 1)
    return states.as_strided((run.chunks, heads, length, size), strides, states.storage_offset() + start * token)


def _add_overlapping(total: Tensor, parts: Tensor, run: ChunkRun) -> None:
    """Add ``(chunks, heads, keys, size)`` to the key slots, one step at a time, so that no keys overlap."""
    for start in range(0, run.first.keys, run.step):
        width = min(run.step, run.first.keys - start)
        view = _view_chunks(total, run, run.first.key + start, width)
        view += parts[:, :, start : start + width]


def _far_keys(key: Tensor, value: Tensor, run: ChunkRun) -> list[Tensor]:
    """Return the keys and values outside the stretch, ``(chunks, heads, far, size)``."""
    return [states[run.far].transpose(1, 2) for states in (key, value)]


def _runs(packing: Packing, window: int, dtype: torch.dtype) -> list[ChunkRun]:
    runs: list[ChunkRun] = []
    for group in grouped_chunks(packing, window):
        shared_bias = chunk_bias(packing, group, window, dtype) if group[0].plain else None
        for chunks in _progressions(group):
            step = chunks[1].query - chunks[0].query if len(chunks) > 1 else max(chunks[0].keys, chunks[0].queries)
            bias = chunk_bias(packing, chunks, window, dtype) if shared_bias is None else shared_bias
            far, real = far_columns(chunks, packing.valid.device)
            far_bias = attention_bias(real, dtype)[:, None, None]
            runs.append(ChunkRun(chunks[0], len(chunks), step, bias=bias, far=far, far_bias=far_bias))
    return runs


def _progressions(chunks: list[QueryChunk]) -> list[list[QueryChunk]]:
    """Split chunks wherever their spacing or the offset from queries to keys changes."""
    progressions: list[list[QueryChunk]] = []
    for chunk in chunks:
        last = progressions[-1] if progressions else []
        even = len(last) < 2 or chunk.query - last[-1].query == last[1].query - last[0].query
        if last and even and chunk.key - chunk.query == last[0].key - last[0].query:
            last.append(chunk)
        else:
            progressions.append([chunk])
    return progressions


def _merge(out: Tensor, lse: Tensor, far_out: Tensor, far_lse: Tensor) -> Tensor:
    """Return the output over both sets of keys, ``(.., size)``, from their outputs and logsumexps ``(..)``."""
    # In float32, because rounding the share to 16 bits would shift a whole row and its gradients.
    share = (far_lse - lse).sigmoid()[..., None]
    return torch.lerp(out.to(share.dtype), far_out.to(share.dtype), share)


def has_operators() -> bool:
    """Return whether PyTorch's FlashAttention operators have the expected arguments (tested with 2.11)."""
    for name, expected in _OPERATORS.items():
        schema = getattr(getattr(torch.ops.aten, name, None), "default", None)
        names = tuple(argument.name for argument in schema._schema.arguments) if schema else ()
        if names[: len(expected)] != expected or not {"window_size_left", "window_size_right"} <= {*names}:
            return False
    return bool(torch.__version__ >= "2.11")


@cache
def has_kernel(device: torch.device) -> bool:
    """Return whether a GPU supports FlashAttention, which needs compute capability 8.0."""
    built = torch.version.cuda is not None and torch.backends.cuda.is_flash_attention_available()
    return built and has_operators() and torch.cuda.get_device_capability(device) >= (8, 0)


def accepts(query: Tensor, packing: Packing) -> bool:
    """Return whether FlashAttention can process a batch; it cannot mask tokens inside documents.

    ``torch.backends.cuda.enable_flash_sdp(False)`` disables FlashAttention.
    """
    supported = query.device.type == DEVICE and query.dtype in DTYPES and query.shape[2] in SIZES
    supported = supported and torch.backends.cuda.flash_sdp_enabled() and has_kernel(query.device)
    return supported and not any(span.holes or len(span.globals) > GLOBALS for span in packing.spans)


def varlen_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int, dropout: float
) -> Tensor:
    """Return the output of windowed attention with global keys, ``(slots, hidden)``."""
    plan = packing.once(("varlen", window), lambda: _plan(packing, window))
    attended: Tensor = _VarlenAttention.apply(query, key, value, plan, dropout)  # type: ignore[no-untyped-call]
    return attended.flatten(1)


_Bounds = tuple[Tensor, Tensor, int, int]
"""Document bounds of queries and keys (int32) and their maximum lengths, as the operators expect them."""


class _Far(NamedTuple):
    """One global token of each document."""

    slots: Tensor  # int64, slot of the token, (documents,); arbitrary for documents without one
    bias: Tensor  # 0 where the token is global and beyond the window, otherwise minus infinity, (rows,)


class _Plan(NamedTuple):
    bounds: _Bounds  # bounds of the documents and of the padding between them
    window: dict[str, int]  # half the window on each side, as keywords of the operators
    rows: int  # slots up to the end of the last document with a global token beyond a window
    far_bounds: _Bounds  # bounds of the documents in these rows, with one key each
    far: list[_Far]


def _plan(packing: Packing, window: int) -> _Plan:
    reach, starts, rows = window // 2, [0], 0
    passes: defaultdict[int, dict[int, int]] = defaultdict(dict)  # global slots by their document's first slot
    for span in packing.spans:
        last, end = span.start + span.length - 1, span.start + span.size
        starts += [last + 1, end] if last + 1 < end else [end]
        for number, slot in enumerate(slot for slot in span.globals if max(slot - span.start, last - slot) > reach):
            passes[number][span.start], rows = slot, end
    bounds = torch.tensor(starts)
    sizes, count = bounds.diff(), int((bounds < rows).sum())
    tensors = [bounds]
    for slots in passes.values():
        keys = torch.tensor([slots.get(start, -1) for start in starts[:count]])
        row_keys = keys.repeat_interleave(sizes[:count])
        visible = (row_keys >= 0) & ((torch.arange(rows) - row_keys).abs() > reach)
        tensors += [keys.where(keys >= 0, bounds[:count]), visible]
    bounds, *tensors = to_device(tensors, packing.valid.device)
    bounds, longest = bounds.int(), int(sizes.max())
    single_keys = torch.arange(count + 1, dtype=torch.int32, device=bounds.device)
    biases = (attention_bias(visible, torch.float32) for visible in tensors[1::2])
    return _Plan(
        bounds=(bounds, bounds, longest, longest),
        window=dict.fromkeys(("window_size_left", "window_size_right"), reach),
        rows=rows,
        far_bounds=(bounds[: count + 1], single_keys, longest, 1),
        far=[_Far(slots, bias) for slots, bias in zip(tensors[::2], biases, strict=True)],
    )


class _VarlenAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: _Plan, dropout: float) -> Tensor:
        rows = slice(plan.rows)
        out, lse, *states = _forward(query, key, value, *plan.bounds, dropout, **plan.window)
        for number, (slots, bias) in enumerate(plan.far, 1):
            far_out, far_lse, *far_states = _forward(query[rows], key[slots], value[slots], *plan.far_bounds, dropout)
            far_lse += bias
            out[rows] = _merge(out[rows], lse.T[rows], far_out, far_lse.T)
            if number < len(plan.far) or any(ctx.needs_input_grad):
                lse.T[rows] = torch.logaddexp(lse.T[rows], far_lse.T)
            states += far_states
        ctx.save_for_backward(query, key, value, out, lse, *states)
        ctx.plan, ctx.dropout = plan, dropout
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, out, lse, *states = ctx.saved_tensors
        plan, rows, grad = ctx.plan, slice(ctx.plan.rows), grad.contiguous()
        inputs = (grad, query, key, value, out, lse)
        query_grad, key_grad, value_grad = _backward(*inputs, *plan.bounds, ctx.dropout, *states[:2], **plan.window)
        for number, (slots, bias) in enumerate(plan.far, 1):
            state = states[2 * number : 2 * number + 2]
            inputs = (grad[rows], query[rows], key[slots], value[slots], out[rows], lse[:, rows] - bias)
            far_query_grad, far_key_grad, far_value_grad = _backward(*inputs, *plan.far_bounds, ctx.dropout, *state)
            query_grad[rows] += far_query_grad
            key_grad.index_add_(0, slots, far_key_grad)
            value_grad.index_add_(0, slots, far_value_grad)
        return query_grad, key_grad, value_grad, None, None


def _forward(*arguments: Tensor | float, **window: int) -> Sequence[Tensor]:
    """Return the output, its logsumexp (shape ``(heads, slots)``) and the random state (two tensors)."""
    outputs: Sequence[Tensor] = torch.ops.aten._flash_attention_forward(*arguments, False, False, **window)[:4]
    return outputs


def _backward(*arguments: Tensor | float, **window: int) -> Sequence[Tensor]:
    """Return the gradients of queries, keys and values; they are zero in rows with an infinite logsumexp."""
    *inputs, dropout, seed, offset = arguments
    grads: Sequence[Tensor] = torch.ops.aten._flash_attention_backward(*inputs, dropout, False, seed, offset, **window)
    return grads
