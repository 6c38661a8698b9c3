from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from losses_support import OPTIONS, Scaling, both, columns_of, compare, cut, flattening, gradients, step, total
from sentence_transformers import SentenceTransformer
from support import flatten, rounding
from torch import Tensor

from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.training.prepare_model import set_dropout

# Equality with the plain loss.


@pytest.mark.parametrize("sizes", [{"mini_batch_size": 5}, {"mini_batch_size": 1}, {"mini_batch_num_tokens": 40}])
def test_cached_matches_plain_loss_and_gradients(
    with_head: SentenceTransformer, documents: list[str], mlm_input: Any, sizes: dict[str, int]
) -> None:
    columns = columns_of(with_head, documents, 3)
    options = {"mlm_input": mlm_input, "mlm_weight": 0.4, "scale": 10.0, "mlm_probability": 0.3}
    plain = step(MultipleNegativesRankingMLMLoss(with_head, **options), columns)
    cached = step(CachedMultipleNegativesRankingMLMLoss(with_head, **options, **sizes), columns)
    compare(plain, cached, rtol=1e-5, atol=1e-5)
    assert sum(value is not None and bool(value.any()) for value in cached.values()) == 2 + 37 + 5


@pytest.mark.parametrize("options", [*OPTIONS, {"mlm_chunk_size": 3}, {"mlm_head": "fresh", "seed": 3}], ids=str)
def test_cached_matches_plain_loss_for_all_options(
    with_head: SentenceTransformer, documents: list[str], mlm_input: Any, options: dict[str, Any]
) -> None:
    compare(*both(with_head, columns_of(with_head, documents, 3), mlm_input=mlm_input, **options), rtol=1e-5, atol=1e-5)


def test_flattened_batches(
    perturbed_path: Path, with_head: SentenceTransformer, documents: list[str], mlm_input: Any
) -> None:
    columns = [flatten(column) for column in columns_of(with_head, documents)]
    plain, cached = both(flattening(perturbed_path), columns, mlm_input=mlm_input)
    compare(plain, cached, rtol=1e-5, atol=1e-5)
    if mlm_input == "separate":
        padded = step(MultipleNegativesRankingMLMLoss(with_head), columns_of(with_head, documents))
        torch.testing.assert_close(plain["contrastive"], padded["contrastive"])


# Cases.


def test_evaluation(with_head: SentenceTransformer, documents: list[str], mlm_input: Any) -> None:
    columns = columns_of(with_head, documents)
    loss = CachedMultipleNegativesRankingMLMLoss(with_head, mini_batch_size=4, mlm_input=mlm_input)
    trained = step(loss, columns)
    assert loss.metrics.take()
    with torch.no_grad():
        torch.manual_seed(7)
        values = loss(columns, None)
    assert not any(value.requires_grad for value in values.values())
    for name, value in values.items():
        torch.testing.assert_close(value, trained[name])
    assert loss.metrics.take() == {}


# Inputs.


@pytest.mark.parametrize("as_tensor", [None, 1, 6])
def test_prompts(with_head: SentenceTransformer, documents: list[str], as_tensor: int | None) -> None:
    with_head[1].include_prompt = False
    columns = [with_head.preprocess(texts, prompt="ba bei bo: ") for texts in cut(documents)[:2]]
    if as_tensor:  # as the collator returns it for a map-style or an iterable dataset
        columns = [{**column, "prompt_length": torch.full((as_tensor,), column["prompt_length"])} for column in columns]
    compare(*both(with_head, columns), rtol=1e-5, atol=1e-5)


# Dropout.


def test_dropout_matches_the_plain_loss(with_head: SentenceTransformer, documents: list[str], mlm_input: Any) -> None:
    set_dropout(with_head, 0.3)
    columns = columns_of(with_head, documents)
    plain, cached = both(with_head, columns, mlm_input=mlm_input, mini_batch_size=64)
    state = torch.get_rng_state()
    compare(plain, cached, rtol=1e-5, atol=1e-5)
    step(MultipleNegativesRankingMLMLoss(with_head, mlm_input=mlm_input), columns)
    assert torch.equal(state, torch.get_rng_state())


def test_second_embedding_replays_dropout(with_head: SentenceTransformer, documents: list[str], mlm_input: Any) -> None:
    columns, first = columns_of(with_head, documents), []
    found: list[Tensor] = []
    with_head.register_forward_hook(lambda module, args, out: found.append(out["sentence_embedding"].detach().clone()))
    for dropout in (0.3, 0.0):
        found.clear()
        set_dropout(with_head, dropout)
        step(CachedMultipleNegativesRankingMLMLoss(with_head, mini_batch_size=5, mlm_input=mlm_input), columns)
        assert len(found) == (6 if mlm_input == "shared" else 9)
        for one, other in zip(found[:3], found[-3:], strict=True):
            torch.testing.assert_close(one, other)
        first.append(found[0])
    assert not torch.allclose(first[0], first[1], atol=1e-3), "dropout changes the embeddings"


# Backpropagation.


@pytest.mark.parametrize(
    "scaling",
    [
        lambda values: 65536.0 * total(values) / 4,
        lambda values: 2.0 * values["contrastive"] + 0.3 * values["mlm"],
        lambda values: values["mlm"] * 1.0,
        lambda values: values["contrastive"] * 1.0,
    ],
    ids=["scaler", "unlike", "mlm", "contrastive"],
)
def test_scaled_terms(with_head: SentenceTransformer, documents: list[str], mlm_input: Any, scaling: Scaling) -> None:
    columns = columns_of(with_head, documents)
    plain, cached = both(with_head, columns, mlm_input=mlm_input, scaling=scaling)
    # The gradient of the token type embeddings is a sum over all tokens, which nearly cancel.
    tokens = sum(int(column["attention_mask"].sum()) for column in columns)
    found = torch.cat([value.flatten() for value in plain.values() if value is not None])
    compare(plain, cached, rtol=0, atol=rounding(tokens, found))


def test_autocast(with_head: SentenceTransformer, documents: list[str], mlm_input: Any) -> None:
    columns = columns_of(with_head, documents)
    dense = with_head[0].auto_model.encoder.layer[0].output.dense
    types: list[torch.dtype] = []
    dense.register_forward_hook(lambda module, args, output: types.append(output.dtype))
    results = []
    for kind in (MultipleNegativesRankingMLMLoss, CachedMultipleNegativesRankingMLMLoss):
        loss = kind(with_head, mlm_input=mlm_input)
        with_head.zero_grad()
        torch.manual_seed(7)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            values = loss(columns, None)
        total(values).backward()
        found = {name: value.detach() for name, value in values.items()}
        results.append({**found, **gradients(with_head), **gradients(loss.mlm_head)})  # type: ignore[arg-type]
    plain, cached = results
    # The second embedding step runs in the backward pass, outside the context.
    assert types == [torch.bfloat16] * (len(types))
    assert len(types) == (1 + 2 if mlm_input == "shared" else 2 + 3)
    for name, value in plain.items():
        other = cached[name]
        assert (value is None) == (other is None), name
        if value is not None and other is not None and value.norm() > 1e-3:
            value, other = value.flatten().float(), other.flatten().float()
            assert torch.cosine_similarity(value, other, dim=0) > 0.99, name
            assert float(other.norm()) == pytest.approx(float(value.norm()), rel=0.05), name


# Memory.


class SavedTensor:
    """A tensor that autograd keeps for a backward pass; counts the values of all of them."""

    held = peak = 0

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        SavedTensor.held += tensor.numel()
        SavedTensor.peak = max(SavedTensor.peak, SavedTensor.held)

    def __del__(self) -> None:
        SavedTensor.held -= self.tensor.numel()


def test_memory_follows_mini_batch_size(with_head: SentenceTransformer, documents: list[str], mlm_input: Any) -> None:
    def peak(kind: Any, rows: int, **settings: Any) -> int:
        texts = [document.split(". ") for document in documents]
        chosen = [texts[row % len(texts)] for row in range(rows)]
        columns = [with_head.preprocess([". ".join(text[side : side + 5]) for text in chosen]) for side in (0, 6)]
        loss = kind(with_head, mlm_input=mlm_input, **settings)
        SavedTensor.held = SavedTensor.peak = 0
        with torch.autograd.graph.saved_tensors_hooks(SavedTensor, lambda saved: saved.tensor):
            step(loss, columns)
        return SavedTensor.peak

    cached = CachedMultipleNegativesRankingMLMLoss
    small, large = (peak(cached, rows, mini_batch_size=64) for rows in (64, 1024))
    assert large < 1.3 * small
    # If all graphs were kept, it would grow with the number of documents.
    plain, more = (peak(MultipleNegativesRankingMLMLoss, rows) for rows in (64, 128))
    assert more > 1.8 * plain > 1.8 * small
