from __future__ import annotations

from typing import Any

import pytest
import torch
from support import rounding
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from simlte_st.losses.masked_language_model import chunked_cross_entropy

TOKENS, SIZE, VOCABULARY = 37, 12, 50


def inputs(dtype: torch.dtype = torch.float32, tokens: int = TOKENS) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return (torch.randn(*shape, generator=generator) * 2).to(dtype).requires_grad_()

    targets = torch.randint(VOCABULARY, (tokens,), generator=generator)
    return draw(tokens, SIZE), draw(VOCABULARY, SIZE), draw(VOCABULARY), targets


def plain(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    logits = functional.linear(hidden, weight, bias)
    return functional.cross_entropy(logits.float() if logits.dtype.itemsize < 4 else logits, targets, reduction="sum")


def assert_close(first: Tensor, second: Tensor) -> None:
    """Compare up to rounding: the longest sums run over the vocabulary."""
    torch.testing.assert_close(first, second, rtol=0, atol=rounding(VOCABULARY, second))


@pytest.mark.parametrize("chunk_size", [1, 8, 37, 1000])
@pytest.mark.parametrize("with_bias", [True, False])
def test_value_and_gradients_are_those_of_all_logits_at_once(chunk_size: int, with_bias: bool) -> None:
    hidden, weight, bias, targets = inputs()
    leaves = [hidden, weight, bias] if with_bias else [hidden, weight]
    optional = bias if with_bias else None
    expected = plain(hidden, weight, optional, targets)
    found = chunked_cross_entropy(hidden, weight, optional, targets, chunk_size)
    assert_close(found, expected)
    # As a part of a larger sum, so that the gradient with respect to it is not 1.
    for ours, theirs in zip(
        torch.autograd.grad(0.3 * found, leaves), torch.autograd.grad(0.3 * expected, leaves), strict=True
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("grad", [True, False])
def test_autocast(grad: bool) -> None:
    hidden, weight, bias, targets = inputs()
    with torch.set_grad_enabled(grad), torch.autocast("cpu", dtype=torch.bfloat16):
        found = chunked_cross_entropy(hidden, weight, bias, targets, 8)
        expected = plain(hidden, weight, bias, targets)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=1e-3)
    exact = plain(hidden, weight, bias, targets)
    assert found.item() != exact.item()
    if grad:
        ours = torch.autograd.grad(found, [hidden, weight, bias])
        theirs = torch.autograd.grad(exact, [hidden, weight, bias])
        for first, second in zip(ours, theirs, strict=True):
            assert first.dtype == torch.float32
            assert (first - second).norm() < 0.02 * second.norm()


class Sizes(TorchDispatchMode):
    """Notes the rows of every matrix as wide as the vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.ndim == 2 and result.shape[1] == VOCABULARY:
            self.rows.add(result.shape[0])
        return result


def test_no_more_logits_than_those_of_a_chunk() -> None:
    hidden, weight, bias, targets = inputs()
    with Sizes() as sizes:
        chunked_cross_entropy(hidden, weight, bias, targets, 8).backward()
    assert sizes.rows <= {8, TOKENS % 8, SIZE}  # the last is the weight, transposed
    assert 8 in sizes.rows
    with Sizes() as sizes:
        plain(hidden, weight, bias, targets).backward()
    assert TOKENS in sizes.rows
