"""Windowed attention through FlexAttention: one row of slots, a mask that knows documents, and a map of its blocks.

Packing makes this simple: a distance between slots of one document is a distance of tokens. The map is built from the
documents' places; the library's own builder would look at every pair of slots.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from simlte_st.longformer.packing import Packing

FLEX_BLOCK = 128
"""Slots in a block of the mask: the smallest that FlexAttention's kernels take everywhere."""

_compiled: dict[str, Callable[..., Any]] = {}
_failed: dict[str, str] = {}


def flex_obstacle(query: Tensor, dropout: float) -> str | None:
    """Tell why FlexAttention cannot run, or None where it can.

    Args:
        query: The queries, ``(slots, heads, size)``: for their device, size and whether gradients are wanted.
        dropout: Probability of dropping an attention weight.
    """
    device = query.device.type
    if dropout:
        return "it has no dropout of attention weights"
    if device not in ("cuda", "cpu"):
        return f"it does not run on {device!r}"
    try:
        importlib.import_module("torch.nn.attention.flex_attention")
    except ImportError:
        return f"PyTorch {torch.__version__} does not have it"
    if device == "cpu":
        if torch.is_grad_enabled() and query.requires_grad:
            return "it has no backward pass on the CPU"
        if not any(shutil.which(name) for name in ("g++", "clang++", "c++", "cl")):
            return "there is no C++ compiler"
    elif query.shape[-1] < 16:
        return f"its CUDA kernels need 16 numbers a head, not {query.shape[-1]}"
    return _failed.get(device)


def flex_attention(query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int) -> Tensor | None:
    """Attend within windows and to global tokens, all through the local projections.

    Args:
        query: ``(slots, heads, size)``; :func:`flex_obstacle` has said None.
        key: Same shape.
        value: Same shape.
        packing: How documents stand in the slots.
        window: Tokens seen on both sides together, even.

    Returns:
        ``(slots, heads * size)``, the queries' dtype; None where it could not be compiled, which
        :func:`flex_obstacle` will then tell.

    References:
        FlexAttention, arXiv 2412.05496.
    """
    device = query.device.type
    slots = _compiled_slots(packing.slots, device)
    mask = packing.once(("flex", window), lambda: block_mask(packing, window, slots))
    batched = (functional.pad(x.transpose(0, 1)[None], (0, 0, 0, slots - len(x))) for x in (query, key, value))
    try:
        found: Tensor = _kernel(device)(*batched, block_mask=mask)
    except _compile_errors() as error:
        _failed[device] = f"it could not be compiled ({str(error).strip().splitlines()[0]})"
        return None
    return found[0, :, : packing.slots].transpose(0, 1).flatten(1)


def _compiled_slots(slots: int, device: str) -> int:
    """Round slots up to what is compiled: a power of two on the CPU, whose kernels have one shape each."""
    return max(FLEX_BLOCK, 1 << (slots - 1).bit_length()) if device == "cpu" else slots


def _kernel(device: str) -> Callable[..., Any]:
    if device not in _compiled:
        module = importlib.import_module("torch.nn.attention.flex_attention")
        # Every batch has another number of slots, and each would be compiled anew but for dynamic shapes. The CPU's
        # code generator writes wrong C++ for those (torch 2.13).
        _compiled[device] = torch.compile(module.flex_attention, dynamic=device != "cpu")
    return _compiled[device]


def _compile_errors() -> tuple[type[Exception], ...]:
    dynamo = importlib.import_module("torch._dynamo.exc")
    inductor = importlib.import_module("torch._inductor.exc")
    names = [(dynamo, "TorchDynamoException"), (inductor, "InductorError"), (inductor, "CppCompileError")]
    return tuple(getattr(module, name) for module, name in names if hasattr(module, name))


def block_mask(packing: Packing, window: int, slots: int | None = None, size: int = FLEX_BLOCK) -> Any:
    """Build FlexAttention's ``BlockMask``.

    Args:
        packing: How documents stand in the slots.
        window: Tokens seen on both sides together, even.
        slots: Slots of the mask, those beyond the packing's being empty; None: the packing's.
        size: Slots in a block.

    Returns:
        The mask: its map lists for each block of queries the blocks of keys that they may see, those that they see in
        full apart; in the others the rule is asked for every pair.
    """
    module = importlib.import_module("torch.nn.attention.flex_attention")
    slots = packing.slots if slots is None else slots
    reach, count = window // 2, -(-slots // size)
    some = torch.eye(count, dtype=torch.bool)
    for span in packing.spans:
        end = span.start + span.size
        columns = sorted({slot // size for slot in span.globals})
        for block in range(span.start // size, (end - 1) // size + 1):
            first = max(span.start, block * size - reach) // size
            last = (min(end, (block + 1) * size + reach) - 1) // size
            some[block, first : last + 1] = True
            some[block, columns] = True
    full = _full_blocks(packing, reach, count, size)
    device = packing.valid.device
    partial_count, partial_index = _listed(some & ~full, device)
    full_count, full_index = _listed(full, device)
    empty = slots - packing.slots
    document = functional.pad(packing.document, (0, empty), value=-1)
    valid, is_global = (functional.pad(x, (0, empty)) for x in (packing.valid, packing.is_global))
    # A tensor, because a number would be compiled into the kernel: one for every window.
    distance = torch.tensor(reach, device=device)

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        near = (query - key).abs() <= distance
        own = document[query] == document[key]
        # A slot always sees itself, so that no softmax is over nothing.
        return (own & valid[key] & (near | is_global[key])) | (query == key)

    return module.BlockMask.from_kv_blocks(
        partial_count,
        partial_index,
        full_count,
        full_index,
        BLOCK_SIZE=size,
        mask_mod=sees,
        seq_lengths=(slots, slots),
    )


def _full_blocks(packing: Packing, reach: int, count: int, size: int) -> Tensor:
    """Find the pairs of blocks, ``(count, count)``, of which every query sees every key by distance alone."""
    full = torch.zeros(count, count, dtype=torch.bool)
    most = (reach - (size - 1)) // size  # blocks apart that are still near in their farthest corners
    if most < 0:
        return full
    for span in packing.spans:
        if span.holes:
            continue
        first, stop = -(-span.start // size), (span.start + span.length) // size
        if first < stop:
            index = torch.arange(first, stop)
            full[first:stop, first:stop] = (index[:, None] - index).abs() <= most
    return full


def _listed(pairs: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """Turn a map of blocks into how many each row has, ``(1, 1, rows)``, and which, ``(1, 1, rows, columns)``."""
    counts = pairs.sum(1).to(torch.int32)
    index = pairs.to(torch.int8).argsort(dim=1, descending=True, stable=True).to(torch.int32)
    return counts[None, None].to(device), index[None, None].to(device)
