from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pooling_support
import pytest
import torch
from pooling_support import flattened
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import Tensor
from torch.nn import functional

import simlte_st
from simlte_st.errors import ConfigurationError
from simlte_st.modules import StarTransformer
from simlte_st.modules.star_transformer import LEAST_ALPHA, AdaptiveAttention

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
def test_it_is_what_the_paper_says(window: int, rounds: int, left: bool) -> None:
    module = made(window=window, rounds=rounds)
    features = batch((7, 1, 10), left=left)
    tokens = features["token_embeddings"].requires_grad_()
    found = module(dict(features))["sentence_embedding"]
    found.square().sum().backward()
    got = {name: value.grad.clone() for name, value in module.named_parameters()} | {"tokens": tokens.grad.clone()}
    module.zero_grad()
    tokens.grad = None
    rows = [transcribed(module, row[mask.bool()]) for row, mask in zip(tokens, features["attention_mask"], strict=True)]
    torch.testing.assert_close(found, torch.stack(rows), rtol=1e-4, atol=1e-5)
    torch.stack(rows).square().sum().backward()
    wanted = {name: value.grad for name, value in module.named_parameters()} | {"tokens": tokens.grad}
    assert wanted["ring.sparsity"].all()
    for name, value in wanted.items():
        torch.testing.assert_close(got[name], value, rtol=2e-3, atol=2e-4, msg=name)


@pytest.mark.parametrize(("alpha", "exact"), [(1.5, "entmax15"), (2.0, "sparsemax")])
def test_weights_are_those_of_the_closed_forms(alpha: float, exact: str) -> None:
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


def test_alpha_stays_in_its_range() -> None:
    attention = StarTransformer(12, heads=3).ring
    assert attention.alpha.tolist() == [1.5] * 3
    with torch.no_grad():
        attention.sparsity.copy_(torch.tensor([-1e3, 0.0, 1e3]))
    assert attention.alpha.tolist() == pytest.approx([LEAST_ALPHA, 1.5, 2.0])
    weights = attention.weights(torch.randn(1, 1, 3, 9), torch.ones(1, 1, 1, 9, dtype=torch.bool))
    assert weights.isfinite().all()


def test_flattened_is_padded_and_a_prompt_can_be_left_out() -> None:
    module, lengths = made(), (5, 2, 9)
    padded = batch(lengths)
    flat = flattened(padded)
    one, two = module(dict(padded)), module(dict(flat))
    torch.testing.assert_close(one["sentence_embedding"], two["sentence_embedding"])
    module.include_prompt = False
    found = module({**padded, "prompt_length": 1})["sentence_embedding"]
    for row, length in enumerate(lengths):
        expected = transcribed(module, padded["token_embeddings"][row, 1:length])
        torch.testing.assert_close(found[row], expected, rtol=1e-4, atol=1e-5)


def test_the_weights_can_be_asked_for() -> None:
    module = made(window=2)
    features = batch((6, 3))
    mask = features["attention_mask"].bool()
    vectors, ring, star = module.attention(features["token_embeddings"], mask)
    found = module(dict(features))
    assert torch.equal(found["sentence_embedding"], vectors)
    assert torch.equal(found["token_attention"], star.mean(dim=1))
    assert ring.shape == (2, 6, 3, 6)
    torch.testing.assert_close(ring.sum(dim=-1), mask[..., None].expand(2, 6, 3).float())
    torch.testing.assert_close(star.sum(dim=-1), torch.ones(2, 3))
    assert not ring[1, 0, :, :2].any(), "nothing stands before the first token"
    assert (ring[mask][:, 2] == 0).any(), "the head with alpha near 2 leaves some out"


def test_odd_batches() -> None:
    module = made()
    for features in (
        {**batch((3,)), "attention_mask": torch.zeros(1, 3, dtype=torch.int64)},
        {"token_embeddings": torch.zeros(2, 0, 12), "attention_mask": torch.zeros(2, 0)},
        {"token_embeddings": torch.zeros(0, 4, 12), "attention_mask": torch.zeros(0, 4, dtype=torch.int64)},
    ):
        found = module(features)
        assert found["sentence_embedding"].tolist() == torch.zeros(len(features["token_embeddings"]), 12).tolist()
        assert not found["token_attention"].any()
    zeros = batch((4,))
    zeros["token_embeddings"] = torch.zeros(1, 4, 12).requires_grad_()
    module(zeros)["sentence_embedding"].sum().backward()
    assert zeros["token_embeddings"].grad.isfinite().all()


def test_memory_is_linear() -> None:
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


def test_a_model_with_it_trains_and_is_loaded(bert_path: Path, tmp_path: Path) -> None:
    before = torch.get_rng_state()
    module = StarTransformer(32, heads=4, window=2, rounds=1, seed=3)
    assert torch.equal(before, torch.get_rng_state())
    model = SentenceTransformer(modules=[Transformer(str(bert_path)), module], device="cpu")
    texts = ["a short text", "one that is a little longer than that"]
    model.save_pretrained(str(tmp_path / "model"))
    again = simlte_st.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert again[1].get_config_dict() == module.get_config_dict()
    torch.testing.assert_close(torch.tensor(again.encode(texts)), torch.tensor(model.encode(texts)))


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match=r"heads=5.*embedding_dimension=12"):
        StarTransformer(12, heads=5)
    with pytest.raises(ConfigurationError, match="window=0"):
        StarTransformer(12, window=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_half_precision_are_summed_in_float(dtype: torch.dtype) -> None:
    module, features = StarTransformer(12, heads=3), pooling_support.batch((9, 4), 12)
    expected = module(dict(features))["sentence_embedding"]
    half = {**features, "token_embeddings": features["token_embeddings"].to(dtype)}
    found = module.to(dtype)(half)["sentence_embedding"]
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.03)
