"""Windowed attention on CUDA through PyTorch's FlashAttention kernel for variable lengths.

The kernel has windows but no global keys. A further pass for each global token of a document attends from the slots
beyond its window, and its output is merged through the logsumexp. Given the merged output and logsumexp, the kernel's
own backward pass returns the gradients of its share of the softmax. Padding between documents becomes documents of its
own. The operators are called directly, because ``varlen_attn`` of ``torch.nn.attention.varlen`` has no dropout and no
gradient for its logsumexp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from simlte_st.longformer.packing import Packing, to_device

DEVICE, DTYPES, SIZES = "cuda", (torch.float16, torch.bfloat16), range(8, 129, 8)
"""What the kernel accepts."""

GLOBALS = 8
"""Most global tokens of a document, as each takes a pass."""

_DOCUMENTS = ("cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p", "is_causal")
_OPERATORS = {
    "_flash_attention_forward": ("query", "key", "value", *_DOCUMENTS, "return_debug_mask"),
    "_flash_attention_backward": ("grad_out", "query", "key", "value", "out", "logsumexp", *_DOCUMENTS),
}


def has_operators() -> bool:
    """Return whether this PyTorch has the private operators, with the known arguments; measured with 2.11."""
    for name, first in _OPERATORS.items():
        schema = getattr(getattr(torch.ops.aten, name, None), "default", None)
        names = tuple(argument.name for argument in schema._schema.arguments) if schema else ()
        if names[: len(first)] != first or not {"window_size_left", "window_size_right"} <= {*names}:
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
    known = query.device.type == DEVICE and query.dtype in DTYPES and query.shape[2] in SIZES
    known = known and torch.backends.cuda.flash_sdp_enabled() and has_kernel(query.device)
    return known and not any(span.holes or len(span.globals) > GLOBALS for span in packing.spans)


def varlen_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int, dropout: float
) -> Tensor:
    """Attend within windows and to global tokens."""
    plan = packing.once(("varlen", window), lambda: _plan(packing, window))
    attended: Tensor = _VarlenAttention.apply(query, key, value, plan, dropout)  # type: ignore[no-untyped-call]
    return attended.flatten(1)


class _Far(NamedTuple):
    """One global token of each document."""

    slots: Tensor  # int64, its slot, or any slot for documents without one, (documents,)
    bias: Tensor  # 0 for rows that see it beyond the window, otherwise minus infinity, (rows,)


class _Plan(NamedTuple):
    bounds: tuple[Any, ...]  # of documents and of the padding between them, as the operators' arguments
    window: dict[str, int]  # half of it on each side, as the operators' arguments
    rows: int  # slots up to the end of the last document that the window does not cover
    far_bounds: tuple[Any, ...]  # the documents in these rows, with one key each
    far: list[_Far]


def _plan(packing: Packing, window: int) -> _Plan:
    reach, starts, rows = window // 2, [0], 0
    far: list[dict[int, int]] = []  # global tokens by the first slot of their document
    for span in packing.spans:
        last, end = span.start + span.length - 1, span.start + span.size
        starts += [last + 1, end] if last + 1 < end else [end]
        for number, slot in enumerate(s for s in span.globals if max(s - span.start, last - s) > reach):
            if number == len(far):
                far.append({})
            far[number][span.start], rows = slot, end
    bounds = torch.tensor(starts)
    sizes, count = bounds.diff(), int((bounds < rows).sum())
    tensors = [bounds]
    for slots in far:
        own = torch.tensor([slots.get(start, -1) for start in starts[:count]])
        of_row = own.repeat_interleave(sizes[:count])
        hidden = (of_row < 0) | ((torch.arange(rows) - of_row).abs() <= reach)
        tensors += [own.where(own >= 0, bounds[:count]), hidden]
    whole, *moved = to_device(tensors, packing.valid.device)
    whole, longest = whole.int(), int(sizes.max())
    one_each = torch.arange(count + 1, dtype=torch.int32, device=whole.device)
    biases = (torch.zeros(rows, device=whole.device).masked_fill(each, float("-inf")) for each in moved[1::2])
    return _Plan(
        (whole, whole, longest, longest),
        dict.fromkeys(("window_size_left", "window_size_right"), reach),
        rows,
        (whole[: count + 1], one_each, longest, 1),
        [_Far(*each) for each in zip(moved[::2], biases, strict=True)],
    )


class _VarlenAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: _Plan, dropout: float) -> Any:
        own = slice(plan.rows)
        out, total, *random = _forward(query, key, value, *plan.bounds, dropout, **plan.window)
        for slots, bias in plan.far:
            part, others, *more = _forward(query[own], key[slots], value[slots], *plan.far_bounds, dropout)
            others += bias
            # In float32: a share rounded to 16 bits would shift a whole row and its gradients.
            share = (others - total[:, own]).sigmoid().T[..., None]
            out[own] = torch.lerp(out[own].to(share.dtype), part.to(share.dtype), share)
            total[:, own] = torch.logaddexp(total[:, own], others)
            random += more
        ctx.save_for_backward(query, key, value, out, total, *random)
        ctx.plan, ctx.dropout = plan, dropout
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, out, total, *random = ctx.saved_tensors
        plan, own, grad = ctx.plan, slice(ctx.plan.rows), grad.contiguous()
        to_query, to_key, to_value = _backward(
            grad, query, key, value, out, total, *plan.bounds, ctx.dropout, *random[:2], **plan.window
        )
        for number, (slots, bias) in enumerate(plan.far, 1):
            state = random[2 * number : 2 * number + 2]
            inputs = (grad[own], query[own], key[slots], value[slots], out[own], total[:, own] - bias)
            queries, keys, values = _backward(*inputs, *plan.far_bounds, ctx.dropout, *state)
            to_query[own] += queries
            to_key.index_add_(0, slots, keys)
            to_value.index_add_(0, slots, values)
        return to_query, to_key, to_value, None, None


def _forward(*arguments: Any, **window: int) -> Sequence[Tensor]:
    """Return the output, its logsumexp, ``(heads, slots)``, and the random state, two tensors."""
    found: Sequence[Tensor] = torch.ops.aten._flash_attention_forward(*arguments, False, False, **window)[:4]
    return found


def _backward(*arguments: Any, **window: int) -> Sequence[Tensor]:
    """Return the gradients of queries, keys and values; a row of infinite logsumexp has none."""
    *inputs, dropout, seed, offset = arguments
    found: Sequence[Tensor] = torch.ops.aten._flash_attention_backward(*inputs, dropout, False, seed, offset, **window)
    return found
