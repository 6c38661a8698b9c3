from __future__ import annotations

from functools import partial
from typing import Any

import pooling_support
import pytest
import torch
from pooling_support import check_empty_batches, check_flattened, compute_both
from torch import Tensor
from torch.nn import functional

from simlte_st.modules import StarTransformer
from simlte_st.modules.star_transformer import AdaptiveAttention

entmax = pytest.importorskip("entmax")


def attend(attention: AdaptiveAttention, query: Tensor, context: list[Tensor]) -> Tensor:
    """Eq. 1 to 3 for one query, head by head."""
    found = []
    size = len(query) // attention.heads
    for head in range(attention.heads):
        rows = slice(head * size, (head + 1) * size)
        wq, wk, wv = (layer.weight[rows] for layer in (attention.query, attention.key, attention.value))
        scores = [functional.cosine_similarity(wq @ query, wk @ other, dim=0) for other in context]
        weights = entmax.entmax_bisect(torch.stack(scores), 1 + torch.sigmoid(attention.sparsity[head]))
        found.append(sum(weight * (wv @ other) for weight, other in zip(weights, context, strict=True)))
    return torch.cat(found)


def transcribed(module: StarTransformer, tokens: Tensor) -> Tensor:
    """Section 3.5 of the paper, for one text without padding, ``[n, d]``."""
    h, s, c = list(tokens), tokens.mean(dim=0), module.window
    for _ in range(module.rounds):
        h = [attend(module.ring, h[i], [*h[max(0, i - c) : i + c + 1], s]) for i in range(len(h))]
        s = attend(module.star, s, h)
    return (torch.stack(h).amax(dim=0) + s) / 2


batch = partial(pooling_support.batch, size=12)


def made(**settings: Any) -> StarTransformer:
    module = StarTransformer(12, **{"heads": 3, **settings})
    with torch.no_grad():  # heads of different sparsity
        for attention in (module.ring, module.star):
            attention.sparsity.copy_(torch.tensor([-1.0, 0.5, 3.0]))
    return module


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(("window", "rounds"), [(1, 1), (2, 3)])
def test_vectors_and_gradients_match_the_paper(window: int, rounds: int, left: bool) -> None:
    module = made(window=window, rounds=rounds)
    found, expected = compute_both(module, batch((7, 1, 10), left=left), partial(transcribed, module))
    torch.testing.assert_close(found.pop("vectors"), expected.pop("vectors"), rtol=1e-4, atol=1e-5)
    assert expected["ring.sparsity"].all()
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(("alpha", "exact"), [(1.5, "entmax15"), (2.0, "sparsemax")])
def test_weights_match_entmax_closed_forms(alpha: float, exact: str) -> None:
    attention = made().star
    with torch.no_grad():
        attention.sparsity.fill_(0.0 if alpha == 1.5 else 100.0)
    scores = torch.randn(4, 5, 3, 17, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(17) < torch.tensor([17, 9, 1, 4])[:, None, None, None]
    found = attention.weights(scores, mask)
    for row, count in enumerate((17, 9, 1, 4)):
        expected = getattr(entmax, exact)(scores[row, ..., :count], dim=-1)
        torch.testing.assert_close(found[row, ..., :count], expected, atol=2e-5, rtol=1e-4)
        assert not found[row, ..., count:].any()
        assert torch.equal(found[row, ..., :count] == 0, expected == 0), "zero where entmax says so"


def test_flattened_matches_padded_and_prompt_is_excluded() -> None:
    module, lengths = made(), (5, 2, 9)
    check_flattened(module)  # leaves out the prompt at the end
    padded = batch(lengths)
    found = module({**padded, "prompt_length": 1})["sentence_embedding"]
    for row, length in enumerate(lengths):
        expected = transcribed(module, padded["token_embeddings"][row, 1:length])
        torch.testing.assert_close(found[row], expected, rtol=1e-4, atol=1e-5)


def test_empty_and_zero_batches() -> None:
    module = made()
    check_empty_batches(module)
    zeros = {**batch((4,)), "token_embeddings": torch.zeros(1, 4, 12).requires_grad_()}
    module(zeros)["sentence_embedding"].sum().backward()
    assert zeros["token_embeddings"].grad.isfinite().all()


def test_memory_is_linear_in_length() -> None:
    module = made()
    kept: dict[int, int] = {}
    for length in (512, 1024):
        sizes: list[int] = []

        def keep(value: Tensor, sizes: list[int] = sizes) -> Tensor:
            sizes.append(value.numel())
            return value

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
            module({**batch((length,)), "token_embeddings": batch((length,))["token_embeddings"].requires_grad_()})
        kept[length] = sum(sizes)
    assert kept[1024] == pytest.approx(2 * kept[512], rel=0.01)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_summed_in_float32(dtype: torch.dtype) -> None:
    module, features = StarTransformer(12, heads=3), pooling_support.batch((9, 4), 12)
    expected = module(dict(features))["sentence_embedding"]
    half = {**features, "token_embeddings": features["token_embeddings"].to(dtype)}
    found = module.to(dtype)(half)["sentence_embedding"]
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.03)
