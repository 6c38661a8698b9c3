"""Cross-entropy over a large vocabulary without ever holding the logits of all tokens."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class HeadPrecision:
    """A module with logits over the vocabulary, which computes them in the Trainer's precision."""

    # Whether it computes in bfloat16 without autocast: the Trainer's ends with the model. Softmax and sums are in 32
    # bits all the same.
    bf16 = False

    def precision(self, device: torch.device) -> AbstractContextManager[Any]:
        """Return the context in which to compute."""
        return torch.autocast(device.type, torch.bfloat16) if self.bf16 else nullcontext()


def chunked_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, chunk_size: int
) -> Tensor:
    """Return the sum of ``cross_entropy(hidden @ weight.T + bias, targets)``, computed a chunk of tokens at a time.

    The gradients are computed in the forward pass, together with a chunk's logits, so that nothing is computed twice
    and only ``chunk_size * vocab`` numbers are held at once, as in the fused linear cross-entropy of Liger Kernel
    (https://arxiv.org/abs/2410.10989, section 3.2). What is kept for the backward pass is as large as the inputs.

    Under autocast the products run in its precision, the softmax and all sums over chunks in 32 bits at least.
    """
    grad_enabled = torch.is_grad_enabled()  # cannot be seen inside
    total: Tensor = _ChunkedCrossEntropy.apply(hidden, weight, bias, targets, chunk_size, grad_enabled)  # type: ignore[no-untyped-call]
    return total


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        chunk_size: int,
        grad_enabled: bool,
    ) -> Tensor:
        device = hidden.device.type
        common = torch.promote_types(hidden.dtype, weight.dtype)
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else common
        wide = torch.promote_types(common, torch.float32)
        needs = [grad_enabled and needed for needed in ctx.needs_input_grad[:3]]
        total = hidden.new_zeros((), dtype=wide)
        hidden_grad = torch.zeros_like(hidden) if needs[0] else None
        weight_grad = torch.zeros_like(weight, dtype=wide) if needs[1] else None
        bias_grad = torch.zeros_like(bias, dtype=wide) if needs[2] and bias is not None else None
        with torch.autocast(device, enabled=False):
            low_weight = weight.to(dtype)
            low_bias = None if bias is None else bias.to(dtype)
            for begin in range(0, len(targets), chunk_size):
                rows = slice(begin, begin + chunk_size)
                chunk, target = hidden[rows].to(dtype), targets[rows].unsqueeze(1)
                logits = torch.nn.functional.linear(chunk, low_weight, low_bias).to(wide)
                log_z = logits.logsumexp(dim=1, keepdim=True)
                total += (log_z - logits.gather(1, target)).sum()
                if not any(needs):
                    continue
                # In place: softmax minus the one-hot targets, the gradient of the sum with respect to the logits.
                slope = logits.sub_(log_z).exp_()
                slope.scatter_add_(1, target, torch.full_like(log_z, -1.0))
                if bias_grad is not None:
                    bias_grad += slope.sum(dim=0)
                slope = slope.to(dtype)
                if hidden_grad is not None:
                    hidden_grad[rows] = slope @ low_weight
                if weight_grad is not None:
                    if dtype == wide:
                        weight_grad.addmm_(slope.T, chunk)  # without a second matrix of this size
                    else:
                        weight_grad += slope.T @ chunk
        ctx.save_for_backward(hidden_grad, weight_grad, bias_grad)
        ctx.dtypes = (hidden.dtype, weight.dtype, None if bias is None else bias.dtype)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        grads = [
            None if grad is None else (grad * grad_output).to(dtype)
            for grad, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        ]
        return (*grads, None, None, None)
