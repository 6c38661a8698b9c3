"""Windowed attention on CUDA through PyTorch's FlashAttention kernel for variable lengths.

The kernel has windows but no global keys. An extra pass per global token of a document attends to it from the slots
beyond its window, and its output is merged through the logsumexp. Given the merged output and logsumexp, the kernel's
backward pass returns the gradients of its share of the softmax. Padding between documents counts as further documents.
The operators are called directly, because ``varlen_attn`` of ``torch.nn.attention.varlen`` has neither dropout nor a
gradient for its logsumexp.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from simlte_st.longformer.packing import Packing, attention_bias, to_device

DEVICE, DTYPES, SIZES = "cuda", (torch.float16, torch.bfloat16), range(8, 129, 8)
"""Device, dtypes and head sizes that the kernel supports."""

GLOBALS = 8
"""Maximum number of global tokens of a document; each takes a pass."""

_DOCUMENTS = ("cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p", "is_causal")
_OPERATORS = {
    "_flash_attention_forward": ("query", "key", "value", *_DOCUMENTS, "return_debug_mask"),
    "_flash_attention_backward": ("grad_out", "query", "key", "value", "out", "logsumexp", *_DOCUMENTS),
}


def has_operators() -> bool:
    """Return whether this PyTorch has the private operators, with the expected arguments; tested with 2.11."""
    for name, expected in _OPERATORS.items():
        schema = getattr(getattr(torch.ops.aten, name, None), "default", None)
        names = tuple(argument.name for argument in schema._schema.arguments) if schema else ()
        if names[: len(expected)] != expected or not {"window_size_left", "window_size_right"} <= {*names}:
            return False
    return bool(torch.__version__ >= "2.11")


@cache
def has_kernel(device: torch.device) -> bool:
    """Return whether a GPU has the kernel, which needs NVIDIA's compute capability 8.0."""
    built = torch.version.cuda is not None and torch.backends.cuda.is_flash_attention_available()
    return built and has_operators() and torch.cuda.get_device_capability(device) >= (8, 0)


def accepts(query: Tensor, packing: Packing) -> bool:
    """Return whether the kernel can compute a batch; it cannot mask tokens inside documents.

    ``torch.backends.cuda.enable_flash_sdp(False)`` disables it.
    """
    supported = query.device.type == DEVICE and query.dtype in DTYPES and query.shape[2] in SIZES
    supported = supported and torch.backends.cuda.flash_sdp_enabled() and has_kernel(query.device)
    return supported and not any(span.holes or len(span.globals) > GLOBALS for span in packing.spans)


def varlen_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int, dropout: float
) -> Tensor:
    """Return the output within windows and to global tokens, ``(slots, hidden)``."""
    plan = packing.once(("varlen", window), lambda: _plan(packing, window))
    attended: Tensor = _VarlenAttention.apply(query, key, value, plan, dropout)  # type: ignore[no-untyped-call]
    return attended.flatten(1)


_Bounds = tuple[Tensor, Tensor, int, int]
"""Bounds of queries and of keys, int32, and their maximum lengths, as arguments of the operators."""


class _Far(NamedTuple):
    """One global token of each document."""

    slots: Tensor  # int64, its slot; arbitrary for documents without one, (documents,)
    bias: Tensor  # 0 for rows that see it beyond the window, minus infinity for others, (rows,)


class _Plan(NamedTuple):
    bounds: _Bounds  # of documents and of the padding between them
    window: dict[str, int]  # half on each side, as keywords of the operators
    rows: int  # slots up to the end of the last document that the window does not cover
    far_bounds: _Bounds  # of the documents in these rows, with one key each
    far: list[_Far]


def _plan(packing: Packing, window: int) -> _Plan:
    reach, starts, rows = window // 2, [0], 0
    passes: defaultdict[int, dict[int, int]] = defaultdict(dict)  # global slots by the first slot of their document
    for span in packing.spans:
        last, end = span.start + span.length - 1, span.start + span.size
        starts += [last + 1, end] if last + 1 < end else [end]
        far = (slot for slot in span.globals if max(slot - span.start, last - slot) > reach)
        for number, slot in enumerate(far):
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
        for slots, bias in plan.far:
            far_out, far_lse, *far_states = _forward(query[rows], key[slots], value[slots], *plan.far_bounds, dropout)
            far_lse += bias
            # In float32: a share rounded to 16 bits would shift a whole row and its gradients.
            share = (far_lse - lse[:, rows]).sigmoid().T[..., None]
            out[rows] = torch.lerp(out[rows].to(share.dtype), far_out.to(share.dtype), share)
            lse[:, rows] = torch.logaddexp(lse[:, rows], far_lse)
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
    """Return the output, its logsumexp, ``(heads, slots)``, and the random state, two tensors."""
    outputs: Sequence[Tensor] = torch.ops.aten._flash_attention_forward(*arguments, False, False, **window)[:4]
    return outputs


def _backward(*arguments: Tensor | float, **window: int) -> Sequence[Tensor]:
    """Return the gradients of queries, keys and values, zero for rows with infinite logsumexp."""
    *inputs, dropout, seed, offset = arguments
    grads: Sequence[Tensor] = torch.ops.aten._flash_attention_backward(*inputs, dropout, False, seed, offset, **window)
    return grads
