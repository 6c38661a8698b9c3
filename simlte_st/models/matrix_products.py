"""Matrix products in float32 on AMD's processors with AVX-512.

PyTorch computes them by MKL, which takes no AVX-512 on processors that are not Intel's. oneDNN, which PyTorch carries
for bfloat16, does: 2.2 times as fast (see ``benchmarks/results/speed.md``). Both compute in float32, and add in another
order.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from simlte_st.compat import onednn_linear
from simlte_st.models.device import cpu_capabilities

FEWEST_PRODUCTS = 2**21
"""Multiplications from which oneDNN is faster: 16 tokens by a matrix of 384 x 384."""

FEWEST_ROWS = 16
"""Tokens from which it is: of fewer, most of its time is spent on the matrix, which it puts in order each time."""


def fast_products(device: torch.device) -> AbstractContextManager[Any]:
    """Return what computes linear layers faster, where something does: a context for what needs no gradients.

    Only float32 on a CPU is touched; all else is computed as ever, other threads' included.
    """
    if device.type != "cpu":
        return nullcontext()
    found = cpu_capabilities()
    amd = str(found.get("cpu_name", "")).startswith("AMD") and bool(found.get("avx512_f"))
    return _OneDnnProducts() if amd and torch.backends.mkldnn.is_available() else nullcontext()


class _OneDnnProducts(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear and not kwargs and not torch.is_grad_enabled() and _is_faster(*args[:2]):
            return onednn_linear(*args)
        return func(*args, **(kwargs or {}))


def _is_faster(inputs: Tensor, weight: Tensor) -> bool:
    """Return whether a product is one of plain tensors in float32, and large enough."""
    if type(inputs) is not Tensor or type(weight) not in (Tensor, torch.nn.Parameter) or inputs.device.type != "cpu":
        return False
    if inputs.dtype is not torch.float32 or weight.dtype is not torch.float32 or torch.is_autocast_enabled("cpu"):
        return False
    if not inputs.layout == weight.layout == torch.strided:
        return False
    rows = inputs.shape[:-1].numel()
    return rows >= FEWEST_ROWS and rows * weight.numel() >= FEWEST_PRODUCTS
