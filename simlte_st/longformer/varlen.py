"""Windowed attention on CUDA through PyTorch's FlashAttention kernel for variable lengths. It has not yet run on a GPU.

The kernel has windows but no global keys: those beyond the window are merged into its softmax. Padding between
documents becomes documents of its own. The operators are called directly, because ``varlen_attn`` of
``torch.nn.attention.varlen`` has no dropout and no gradient for its logsumexp.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from simlte_st.errors import ConfigurationError
from simlte_st.longformer.far_keys import FarKeys
from simlte_st.longformer.packing import Packing, to_device

DEVICE, DTYPES, SIZES = "cuda", (torch.float16, torch.bfloat16), range(8, 257, 8)
"""What the kernel accepts."""

_DOCUMENTS = ("cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p", "is_causal")
_OPERATORS = {
    "_flash_attention_forward": ("query", "key", "value", *_DOCUMENTS, "return_debug_mask"),
    "_flash_attention_backward": ("grad_out", "query", "key", "value", "out", "logsumexp", *_DOCUMENTS),
}
_UNKNOWN = "attn_implementation='varlen': PyTorch {} has {}. Use attn_implementation='sdpa'."


def check_operators() -> None:
    """Raise a ConfigurationError if this PyTorch's private operators are not the known ones."""
    for name, first in _OPERATORS.items():
        schema = getattr(getattr(torch.ops.aten, name, None), "default", None)
        names = tuple(argument.name for argument in schema._schema.arguments) if schema else ()
        if names[: len(first)] != first or not {"window_size_left", "window_size_right"} <= {*names}:
            raise ConfigurationError(_UNKNOWN.format(torch.__version__, f"no or another operator {name}"))


def accepts(query: Tensor, packing: Packing) -> bool:
    """Return whether the kernel can compute a batch; it cannot mask tokens inside documents."""
    known = query.device.type == DEVICE and query.dtype in DTYPES and query.shape[2] in SIZES
    return known and not any(span.holes for span in packing.spans)


def varlen_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int, dropout: float
) -> Tensor:
    """Attend within windows and to global tokens."""
    plan = packing.once(("varlen", window), lambda: _plan(packing, window))
    with torch.autocast(query.device.type, enabled=False):  # far scores in 32 bits, as in the backward pass
        attended: Tensor = _VarlenAttention.apply(query, key, value, plan, dropout)  # type: ignore[no-untyped-call]
    return attended.flatten(1)


class _Plan(NamedTuple):
    bounds: Tensor  # int32, first slots of documents and of the padding between them, and the number of slots
    longest: int  # most slots between two bounds
    window: dict[str, int]  # half of it on each side, as the operators' arguments
    rows: int  # slots up to the end of the last document that the window does not cover
    far: Tensor  # int64, slots of the global tokens of these documents
    bias: Tensor  # 0 where one of the rows sees one of them beyond the window, otherwise minus infinity, (rows, far)

    def documents(self, dropout: float) -> tuple[Any, ...]:
        """Return the operators' arguments that :data:`_DOCUMENTS` names."""
        return (self.bounds, self.bounds, self.longest, self.longest, dropout, False)


def _plan(packing: Packing, window: int) -> _Plan:
    bounds, far, rows = {0}, list[int](), 0
    for span in packing.spans:
        last = span.start + span.length - 1
        bounds |= {last + 1, span.start + span.size}
        if any(max(slot - span.start, last - slot) > window // 2 for slot in span.globals):
            far += span.globals
            rows = span.start + span.size
    starts = sorted(bounds)
    longest = max(end - start for start, end in pairwise(starts))
    first, slots = to_device([torch.tensor(starts), torch.tensor(far, dtype=torch.int64)], packing.valid.device)
    distance = (torch.arange(rows, device=slots.device)[:, None] - slots).abs()
    sees = (packing.document[:rows, None] == packing.document[slots]) & (distance > window // 2)
    bias = torch.zeros(sees.shape, device=slots.device).masked_fill(~sees, float("-inf"))
    sides = dict.fromkeys(("window_size_left", "window_size_right"), window // 2)
    return _Plan(first.int(), longest, sides, rows, slots, bias)


class _VarlenAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: _Plan, dropout: float) -> Any:
        out, total, *random = torch.ops.aten._flash_attention_forward(
            query, key, value, *plan.documents(dropout), False, **plan.window
        )[:4]
        ones = plan.bias.new_ones(query.shape[1], *plan.bias.shape)
        factor = functional.dropout(ones, dropout) if dropout else None
        if plan.rows:
            if total.shape != (query.shape[1], len(query)):
                raise ConfigurationError(_UNKNOWN.format(torch.__version__, "a logsumexp of another shape"))
            own = slice(plan.rows)
            merged, total[:, own] = _far(key, value, plan, factor).merge(
                query[own].transpose(0, 1), out[own].transpose(0, 1), total[:, own]
            )
            out[own] = merged.transpose(0, 1).to(out.dtype)
        ctx.save_for_backward(query, key, value, out, total, factor, *random)
        ctx.plan, ctx.dropout = plan, dropout
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, out, total, factor, *random = ctx.saved_tensors
        plan, own, grad = ctx.plan, slice(ctx.plan.rows), grad.contiguous()
        grads = torch.ops.aten._flash_attention_backward(
            grad, query, key, value, out, total, *plan.documents(ctx.dropout), *random, **plan.window
        )
        if plan.rows:
            near, slope, merged = (each[own].transpose(0, 1) for each in (query, grad, out))
            to_rows, *to_far = _far(key, value, plan, factor).gradients(near, slope, merged, total[:, own])
            grads[0][own] += to_rows.transpose(0, 1)
            for total_grad, part in zip(grads[1:], to_far, strict=True):
                total_grad.index_add_(0, plan.far, part.transpose(0, 1))
        return (*grads, None, None)


def _far(key: Tensor, value: Tensor, plan: _Plan, factor: Tensor | None) -> FarKeys:
    return FarKeys(key[plan.far].transpose(0, 1), value[plan.far].transpose(0, 1), plan.bias, factor)
