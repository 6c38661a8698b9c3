"""Each backend against the reference, and the reference against the rule itself."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from longformer_support import emulate_kernel
from support import rounding
from torch import Tensor, nn

from simlte_st.longformer import attention, blocked, kernels
from simlte_st.longformer.attention import LongformerSelfAttention, windowed_attention
from simlte_st.longformer.blocked import dropout_mask, group_chunks
from simlte_st.longformer.packing import Packing, pack_batch

HEADS, SIZE = 2, 16


class Inputs(NamedTuple):
    """A layer's attention and the states that it reads."""

    layer: LongformerSelfAttention
    hidden: Tensor


BACKENDS = ["kernel", "products", "fused", "varlen"]


def use_backend(name: str, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention, "has_cpu_kernel", lambda: name == "kernel")
    if name == "varlen":
        emulate_kernel(patch)
    if name == "fused":
        patch.setattr(attention, "ProductAttention", FusedAttention)


class FusedAttention:
    """What a GPU computes, in place of the products."""

    @staticmethod
    def apply(query: Tensor, key: Tensor, value: Tensor, groups: list[blocked.Group], *dropout: float) -> Tensor:
        rows = torch.cat([group.rows.flatten() for group in groups])
        return blocked.fused_attention(query, key, value, groups, dropout[0])[rows.argsort()].view(query.shape)


def attend(inputs: Inputs, packing: Packing, window: int) -> Tensor:
    inputs.layer.window = window
    found: Tensor = inputs.layer(inputs.hidden, packing)
    return found


def assert_close(found: Tensor, expected: Tensor) -> None:
    """Compare up to rounding: scores and weighted means are of sums over a hidden state, added in another order."""
    assert (found - expected).abs().max() <= rounding(HEADS * SIZE, expected)


def make_packing(lengths: list[int], globals_each: int = 0, hole: bool = False) -> Packing:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    if hole:
        mask[0, 3:9] = False
    global_mask = torch.zeros_like(mask)
    for row, length in enumerate(lengths):
        global_mask[row, torch.randperm(length)[:globals_each]] = True
    return pack_batch(mask, global_mask)


def make_inputs(packing: Packing, dtype: torch.dtype = torch.float32) -> Inputs:
    width = HEADS * SIZE
    hidden = torch.randn(packing.slots, width, dtype=dtype, requires_grad=True)
    layer = LongformerSelfAttention(width, HEADS, 2, 0.0).to(dtype)
    with torch.no_grad():
        for value in (*layer.query.parameters(), *layer.key.parameters(), *layer.value.parameters()):
            value *= 3
    return Inputs(layer, hidden)


def reference(inputs: Inputs, packing: Packing, window: int) -> Tensor:
    """One dense matrix of scores a document, as the paper's text has it."""
    layer, hidden = inputs

    def dense(own: slice, sees: Tensor, *projections: nn.Module) -> Tensor:
        query, key, value = (linear(hidden[own]).view(-1, HEADS, SIZE).transpose(0, 1) for linear in projections)
        scores = query @ key.transpose(1, 2) / SIZE**0.5
        weights = scores.masked_fill(~sees, float("-inf")).softmax(-1, dtype=torch.float32).to(value.dtype)
        return (weights @ value).transpose(0, 1).flatten(1)

    documents = []
    for span in packing.spans:
        own = slice(span.start, span.start + span.size)
        valid, is_global, place = packing.valid[own], packing.is_global[own], torch.arange(span.size)
        near = (place[:, None] - place).abs() <= window // 2
        # A masked token sees itself, or its softmax would be over nothing.
        sees = (valid & (near | is_global)) | torch.eye(span.size, dtype=torch.bool)
        local = dense(own, sees, layer.query, layer.key, layer.value)
        whole = valid.expand(span.size, -1)
        globally = dense(own, whole, layer.query_global, layer.key_global, layer.value_global)
        documents.append(torch.where(is_global[:, None], globally, local))
    return torch.cat(documents)


CASES = [([1], 2, 0, False), ([31, 32, 33, 64], 8, 1, False), ([300, 20, 150], 64, 1, False)]
CASES += [([300, 20, 150], 64, 40, True), ([700, 700, 40], 256, 3, False)]


def compare(lengths: list[int], window: int, globals_each: int, hole: bool) -> None:
    packing = make_packing(lengths, globals_each, hole)
    inputs = make_inputs(packing)
    weights = torch.randn(packing.slots, HEADS * SIZE) * packing.valid[:, None]
    results = []
    for compute in (reference, attend):
        out = compute(inputs, packing, window)
        (grad,) = torch.autograd.grad((out * weights).sum(), inputs.hidden, retain_graph=True)
        results.append((out[packing.valid], grad))
    (expected, expected_grad), (found, found_grad) = results
    assert_close(found, expected)
    assert (found_grad - expected_grad).norm() < 1e-5 * expected_grad.norm()


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_match_the_reference(case: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_backend(backend, monkeypatch)
    compare(*case)


LENGTHS = st.integers(1, 40) | st.sampled_from([31, 32, 33, 63, 64, 65, 127, 200])


@settings(max_examples=25)
@given(
    lengths=st.lists(LENGTHS, min_size=1, max_size=5),
    half=st.integers(1, 20) | st.sampled_from([31, 32, 33, 64, 300]),
    globals_each=st.integers(0, 70),
    hole=st.booleans(),
    seed=st.integers(0, 1000),
    backend=st.sampled_from(BACKENDS),
)
def test_random_layouts_match_the_reference_and_single_documents(
    lengths: list[int], half: int, globals_each: int, hole: bool, seed: int, backend: str
) -> None:
    torch.manual_seed(seed)
    with pytest.MonkeyPatch.context() as patch:
        use_backend(backend, patch)
        compare(lengths, 2 * half, globals_each, hole and lengths[0] > 9)
        packing = make_packing(lengths, globals_each)
        inputs = make_inputs(packing)
        with torch.no_grad():
            found = attend(inputs, packing, 2 * half)
            for span in packing.spans:
                own = slice(span.start, span.start + span.size)
                mask = torch.ones(1, span.length, dtype=torch.bool)
                alone = pack_batch(mask, packing.is_global[span.start : span.start + span.length][None])
                by_itself = attend(Inputs(inputs.layer, inputs.hidden[own]), alone, 2 * half)
                assert_close(by_itself[: span.length], found[own][: span.length])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_masked_tokens_stay_hidden_with_extreme_scores(dtype: torch.dtype) -> None:
    packing = make_packing([700, 40], 1, hole=True)
    # All scores are 25,000 or minus that, in a type that ends at 65,504; masked keys have the larger one.
    query = torch.full((packing.slots, HEADS, SIZE), 79.0, dtype=dtype).requires_grad_()
    key = torch.where(packing.valid, -79.0, 79.0).to(dtype)[:, None, None].expand_as(query)
    value = torch.where(packing.valid, 1.0, 100.0).to(dtype)[:, None, None].expand_as(query)
    for trained in (False, True):  # the kernel, the products
        found = windowed_attention(query, key, value, packing, 64, 0.0, trained)
        assert (found[packing.valid] - 1).abs().max() < 0.01
        assert torch.autograd.grad(found.sum(), query)[0].isfinite().all()


def test_half_precision_is_as_accurate_as_the_reference() -> None:
    packing = make_packing([300, 20], 2)
    inputs = make_inputs(packing, torch.bfloat16)
    wide = Inputs(copy.deepcopy(inputs.layer).float(), inputs.hidden.float())
    with torch.no_grad():
        truth = reference(wide, packing, 64)[packing.valid]
        halves = [compute(inputs, packing, 64) for compute in (reference, attend)]
    dense, blocks = ((half[packing.valid].float() - truth).abs() for half in halves)
    assert blocks.mean() <= 1.2 * dense.mean()
    assert blocks.max() <= 2 * dense.max()


def masks_of(packing: Packing, window: int, dropout: float, seed: int) -> Tensor:
    """Put what dropout keeps into one matrix a head, ``(heads, slots, slots)``, 0 where no chunk has the pair."""
    whole = torch.zeros(HEADS, packing.slots, packing.slots)
    for group in group_chunks(packing, window, torch.float32):
        drawn = dropout_mask(group, HEADS, dropout, seed, torch.float32) * (group.bias == 0)
        for rows, columns, mask in zip(group.rows, group.columns, drawn, strict=True):
            # A far column that is missing stands for any slot, and is hidden: the largest is the one that is there.
            for column in range(len(columns)):
                place = whole[:, rows, columns[column]]
                whole[:, rows, columns[column]] = torch.maximum(place, mask[..., column])
    return whole


@pytest.mark.parametrize("globals_each", [1, 3])
def test_dropout_matches_a_dense_reference_with_its_masks(globals_each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packing = make_packing([300, 170, 7], globals_each)
    slots, window, dropout = packing.slots, 32, 0.3
    draw = torch.Generator().manual_seed(0)
    leaves = torch.randn(3, slots, HEADS, SIZE, generator=draw).requires_grad_()
    weights = torch.randn(slots, HEADS * SIZE, generator=draw) * packing.valid[:, None]
    place, document = torch.arange(slots), packing.document
    near = ((place[:, None] - place).abs() <= window // 2) | packing.is_global
    sees = near & (document[:, None] == document) & packing.valid
    query, key, value = (x.transpose(0, 1) for x in leaves)
    scores = (query @ key.transpose(1, 2) / SIZE**0.5).masked_fill(~sees, -1e9)
    torch.manual_seed(5)
    mask = masks_of(packing, window, dropout, int(torch.randint(2**31, ())))
    assert 0.6 < float(mask.sum() / HEADS / sees.sum()) < 0.8
    alone, beside = (masks_of(make_packing([300, *others]), 32, 0.3, 1) for others in ([], [170, 7]))
    assert torch.equal(alone[:, :300, :300], beside[:, :300, :300]), "however documents are packed"
    expected = ((scores.softmax(-1) * mask / (1 - dropout)) @ value).transpose(0, 1).flatten(1)
    (expected_grad,) = torch.autograd.grad((expected * weights).sum(), leaves)
    for size in (blocked.WEIGHTS, HEADS * 64 * 100):  # chunks together, and one by one
        monkeypatch.setattr(blocked, "WEIGHTS", size)
        torch.manual_seed(5)
        found = windowed_attention(leaves[0], leaves[1], leaves[2], packing, window, dropout, True)
        torch.rand(3)  # what is drawn afterwards does not matter
        (grad,) = torch.autograd.grad((found * weights).sum(), leaves)
        assert_close(found[packing.valid], expected[packing.valid])
        assert (grad - expected_grad).norm() < 1e-5 * expected_grad.norm()


def test_dropout_masks_are_uncorrelated() -> None:
    packing = make_packing([640] * 3, 1)
    [*_, group] = sorted(group_chunks(packing, 256, torch.float32), key=lambda each: each.rows.numel())
    for dropout in (0.1, 0.5):
        mask = dropout_mask(group, HEADS, dropout, 7, torch.float32) - (1 - dropout)
        other = dropout_mask(group, HEADS, dropout, 8, torch.float32) - (1 - dropout)
        variance, noise = dropout * (1 - dropout), 5 / mask.numel() ** 0.5
        assert abs(mask.mean()) < noise
        pairs = [(mask[..., 1:], mask[..., :-1]), (mask[:, :, 1:], mask[:, :, :-1]), (mask, other)]
        pairs += [(mask[:, 1:], mask[:, :-1]), (mask[1:], mask[:-1])]
        corners = mask[:, :, 1:] * mask[:, :, :-1]  # what is left where rows and columns are drawn apart
        pairs.append((corners[..., 1:] / variance**0.5, corners[..., :-1] / variance**0.5))
        for first, second in pairs:
            assert abs((first * second).mean()) / variance < 1.5 * noise


def test_varlen_gradients_with_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    emulate_kernel(monkeypatch)
    packing = make_packing([70, 40, 9], 2)
    inputs = torch.randn(3, packing.slots, 1, 8, dtype=torch.float64, requires_grad=True)

    def attended(inputs: Tensor) -> Tensor:
        torch.manual_seed(3)
        return kernels.varlen_attention(*inputs, packing, 8, 0.3)

    assert torch.autograd.gradcheck(attended, inputs, fast_mode=True)


def test_private_kernels_are_available(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels.has_cpu_kernel(), "without it attention on the CPU is correct and several times slower"
    assert kernels.has_operators(), "without them attention on a GPU is correct and slower"
    monkeypatch.setitem(kernels._OPERATORS, "_flash_attention_backward", ("grad_out", "key"))
    assert not kernels.has_operators()


def test_adapters_on_global_projections_are_used() -> None:
    class Adapted(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + x

    packing = make_packing([50], 1)
    inputs = make_inputs(packing)
    for name in ("query_global", "key_global", "value_global"):
        setattr(inputs.layer, name, Adapted(HEADS * SIZE, HEADS * SIZE))
    expected, found = (compute(inputs, packing, 8) for compute in (reference, attend))
    assert_close(found[packing.valid], expected[packing.valid])
