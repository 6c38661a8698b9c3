from __future__ import annotations

from typing import Any

import pytest
import torch
from losses_support import Scaling, both, columns_of, compare, first_batch, gradients, step, total
from sentence_transformers import SentenceTransformer
from support import rounding
from torch import Tensor

from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.training.load_model import set_dropout

# Dropout.


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
def test_dropout_draws_what_it_does_in_the_plain_loss(
    with_head: SentenceTransformer, documents: list[str], mlm_input: Any
) -> None:
    set_dropout(with_head, 0.3)
    columns = columns_of(with_head, documents)
    plain, cached = both(with_head, columns, mlm_input=mlm_input, mini_batch_size=64)
    state = torch.get_rng_state()
    compare(plain, cached, rtol=1e-5, atol=1e-5)
    step(MultipleNegativesRankingMLMLoss(with_head, mlm_input=mlm_input), columns)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
def test_the_second_embedding_step_replays_dropout(
    with_head: SentenceTransformer, documents: list[str], mlm_input: Any
) -> None:
    set_dropout(with_head, 0.3)
    columns = columns_of(with_head, documents)
    loss = CachedMultipleNegativesRankingMLMLoss(with_head, mini_batch_size=5, mlm_input=mlm_input)
    cached = step(loss, columns)

    # The same passes with all their graphs kept: each of the model's calls in the forward pass, with gradients.
    calls: list[dict[str, Any]] = []
    forward = with_head.forward
    with_head.forward = lambda features: calls.append(dict(features)) or forward(features)  # type: ignore[method-assign]
    first_batch(loss)
    torch.manual_seed(7)
    loss(columns, None)
    passes = len(calls)
    assert passes == (3 if mlm_input == "shared" else 6)
    with_head.forward = forward  # type: ignore[method-assign]
    plain = MultipleNegativesRankingMLMLoss(with_head, mlm_input=mlm_input)
    torch.manual_seed(7)
    masked = plain.mask_columns([dict(column) for column in columns])
    labels = torch.cat([column["mlm_labels"][column["mlm_labels"] != -100] for column in masked])
    outputs = [with_head(features) for features in calls]
    embeddings = torch.cat([out["sentence_embedding"] for out in outputs[:3]])
    lengths = torch.cat([column["attention_mask"].sum(1) for column in columns])
    order = lengths.argsort(descending=True, stable=True)
    contrastive = plain.compute_loss_from_embeddings(list(embeddings[order.argsort()].chunk(2)), None)
    assert plain.mlm_head is not None
    tokens = [(out["token_embeddings"], out["input_ids"]) for out in outputs[-3:]]
    ids = torch.cat([torch.nn.functional.pad(c["input_ids"], (0, 64 - c["input_ids"].shape[1])) for c in columns])
    targets = torch.cat(
        [torch.nn.functional.pad(c["mlm_labels"], (0, 64 - c["mlm_labels"].shape[1]), value=-100) for c in masked]
    )
    assert ids.shape == targets.shape
    words = with_head[0].auto_model.get_input_embeddings().weight
    mlm = torch.zeros(())
    for (hidden, _), rows in zip(tokens, order.split(5), strict=True):
        label = targets[rows][:, : hidden.shape[1]]
        logits = plain.mlm_head(hidden[label != -100], words)
        mlm = mlm + torch.nn.functional.cross_entropy(logits, label[label != -100], reduction="sum")
    with_head.zero_grad()
    mlm = plain.mlm_weight * mlm / len(labels)
    (contrastive + mlm).backward()
    expected = {"contrastive": contrastive.detach(), "mlm": mlm.detach(), **gradients(with_head)}
    expected |= {f"head.{name}": value for name, value in gradients(plain.mlm_head).items()}
    compare(expected, cached, rtol=1e-5, atol=1e-5)


# How it is back-propagated.


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
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
    # The gradient of the token types' embeddings is a sum over all tokens, which nearly cancel each other.
    tokens = sum(int(column["attention_mask"].sum()) for column in columns)
    found = torch.cat([value.flatten() for value in plain.values() if value is not None])
    compare(plain, cached, rtol=0, atol=rounding(tokens, found))


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
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
    # The second embedding step is in the backward pass, outside of the context.
    assert types == [torch.bfloat16] * (len(types))
    assert len(types) == (1 + 2 if mlm_input == "shared" else 2 + 3)
    for name, value in plain.items():
        other = cached[name]
        assert (value is None) == (other is None), name
        if value is not None and other is not None and value.norm() > 1e-3:
            value, other = value.flatten().float(), other.flatten().float()
            assert torch.cosine_similarity(value, other, dim=0) > 0.99, name
            assert float(other.norm()) == pytest.approx(float(value.norm()), rel=0.05), name


# Mini-batches.


# Memory.


class Graphs:
    """Counts the numbers that autograd keeps for backward passes, while they are kept."""

    def __init__(self) -> None:
        self.held = 0
        self.peak = 0

    def __enter__(self) -> Graphs:
        graphs = self

        class Kept:
            def __init__(self, tensor: Tensor) -> None:
                self.tensor = tensor
                graphs.held += tensor.numel()
                graphs.peak = max(graphs.peak, graphs.held)

            def __del__(self) -> None:
                graphs.held -= self.tensor.numel()

        self._hooks = torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor)
        self._hooks.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        self._hooks.__exit__(*args)


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
def test_1024_documents_take_the_memory_of_a_mini_batch(
    with_head: SentenceTransformer, documents: list[str], mlm_input: Any
) -> None:
    def peak(kind: Any, rows: int, **settings: Any) -> int:
        texts = [document.split(". ") for document in documents]
        columns = [
            with_head.preprocess([". ".join(texts[row % len(texts)][side : side + 5]) for row in range(rows)])
            for side in (0, 6)
        ]
        loss = kind(with_head, mlm_input=mlm_input, **settings)
        with Graphs() as graphs:
            step(loss, columns)
        return graphs.peak

    cached = CachedMultipleNegativesRankingMLMLoss
    small, large = (peak(cached, rows, mini_batch_size=64) for rows in (64, 1024))
    assert large < 1.3 * small
    # Were all graphs kept, it would be as many times as much as there are documents.
    plain, more = (peak(MultipleNegativesRankingMLMLoss, rows) for rows in (64, 128))
    assert more > 1.8 * plain > 1.8 * small
