from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from losses_support import columns_of, cut, first_batch, flattening, gradients, total
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from support import flatten
from torch import nn
from torch.nn import functional

from simlte_st.errors import ConfigurationError
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss, ReconstructionLoss
from simlte_st.losses.base import IGNORE


def make(kind: str, model: SentenceTransformer) -> nn.Module:
    if kind == "softmax":
        torch.manual_seed(0)
        return losses.SoftmaxLoss(model, model.get_embedding_dimension(), num_labels=3)
    if kind == "docsplit":
        return MultipleNegativesRankingMLMLoss(model)
    return MultipleNegativesRankingLoss(model)


def full_logits(loss: ReconstructionLoss, model: SentenceTransformer, columns: list[dict[str, Any]]) -> torch.Tensor:
    """The term with all logits at once."""
    values = []
    for features in columns:
        tokens = model(dict(features))["token_embeddings"]
        targets = features["input_ids"].masked_fill(features["attention_mask"] == 0, IGNORE)
        values.append(functional.cross_entropy((tokens @ loss.head.weight.T).flatten(0, 1), targets.flatten(),
                                               ignore_index=IGNORE, reduction="sum"))  # fmt: skip
    count = sum(int(features["attention_mask"].sum()) for features in columns)
    return len(columns) * torch.stack(values).sum() / count


@pytest.mark.parametrize("kind", ["softmax", "ranking", "docsplit"])
def test_reconstruction_is_cross_entropy_of_tokens(kind: str, model: SentenceTransformer, documents: list[str]) -> None:
    model.eval()
    columns, labels = columns_of(model, documents), torch.tensor([0, 1, 2, 0, 1, 2])
    inner = make(kind, model)
    alone = inner([dict(features) for features in columns], labels)
    loss = ReconstructionLoss(inner, weight=0.5, chunk_size=7)
    first_batch(inner)
    terms = loss([dict(features) for features in columns], labels)
    torch.testing.assert_close(sum(value for name, value in terms.items() if name != "reconstruction"), total(alone))
    assert set(terms) == {"reconstruction"} | ({"contrastive", "mlm"} if kind == "docsplit" else {"sentence"})
    torch.testing.assert_close(terms["reconstruction"], 0.5 * full_logits(loss, model, columns))
    assert not model._forward_hooks


def test_columns_of_equal_length_match_equation_7(model: SentenceTransformer, documents: list[str]) -> None:
    model.eval()
    texts = cut(documents)[0]
    columns = [model.preprocess(texts), model.preprocess([*texts[3:], *texts[:3]])]
    assert not columns[0]["attention_mask"].all()
    loss = ReconstructionLoss(MultipleNegativesRankingLoss(model))
    means = []
    for features in columns:
        told = nn.CrossEntropyLoss(ignore_index=IGNORE)  # over each column separately
        logits = loss.head(model(dict(features))["token_embeddings"])
        means.append(told(logits.mT, features["input_ids"].where(features["attention_mask"] == 1, IGNORE)))
    terms = loss([dict(features) for features in columns])
    torch.testing.assert_close(terms["reconstruction"], 0.017 * (means[0] + means[1]))


def test_flattened_matches_padded(perturbed_path: Path, with_head: SentenceTransformer, documents: list[str]) -> None:
    columns = columns_of(with_head, documents)
    padded = ReconstructionLoss(MultipleNegativesRankingLoss(with_head))([dict(features) for features in columns])
    loss = ReconstructionLoss(MultipleNegativesRankingLoss(flattening(perturbed_path)))
    flat = loss([flatten(features) for features in columns])
    torch.testing.assert_close(flat, padded)


def test_gradients_match_full_logits(model: SentenceTransformer, documents: list[str]) -> None:
    model.eval()
    columns = columns_of(model, documents)
    loss = ReconstructionLoss(MultipleNegativesRankingLoss(model), weight=0.3, chunk_size=5)
    total(loss([dict(features) for features in columns])).backward()
    found = {name: value.clone() for name, value in gradients(loss).items() if value is not None}
    loss.zero_grad()
    inner = loss.loss([dict(features) for features in columns], None)
    (inner + 0.3 * full_logits(loss, model, columns)).backward()
    for name, value in gradients(loss).items():
        if value is not None:
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-6, msg=name)
    assert found["head.weight"].any()


def test_texts_without_tokens_give_zero(model: SentenceTransformer, documents: list[str]) -> None:
    empty = [{**column, "attention_mask": 0 * column["attention_mask"]} for column in columns_of(model, documents)]
    assert ReconstructionLoss(MultipleNegativesRankingLoss(model))(empty)["reconstruction"] == 0


def test_head_is_state_and_depends_on_the_seed(model: SentenceTransformer) -> None:
    before = torch.get_rng_state()
    first, second, third = (ReconstructionLoss(make("ranking", model), seed=seed) for seed in (0, 1, 0))
    assert torch.equal(before, torch.get_rng_state())
    assert list(first.extra_state()) == ["head.weight"]
    assert not torch.equal(first.head.weight, second.head.weight)
    assert torch.equal(first.head.weight, third.head.weight)
    second.load_extra_state(first.extra_state())
    assert torch.equal(first.head.weight, second.head.weight)
    wrapped = ReconstructionLoss(make("docsplit", model))
    assert {name.split(".")[0] for name in wrapped.extra_state()} == {"head", "loss"}
    with pytest.raises(ConfigurationError, match="loss has the parameters"):
        wrapped.load_extra_state(first.extra_state())


@pytest.mark.parametrize("wrap", [lambda loss: loss, lambda loss: losses.MatryoshkaLoss(loss.model, loss, [32, 8])])
def test_unsupported_losses_are_refused(model: SentenceTransformer, wrap: Callable[[nn.Module], nn.Module]) -> None:
    for kind in (losses.CachedMultipleNegativesRankingLoss, CachedMultipleNegativesRankingMLMLoss):
        with pytest.raises(ConfigurationError, match=f"wrap {kind.__name__}, .* without caching"):
            ReconstructionLoss(wrap(kind(model)))
    with pytest.raises(ConfigurationError, match="mlm_input='shared'"):
        ReconstructionLoss(wrap(MultipleNegativesRankingMLMLoss(model, mlm_input="shared")))
    ReconstructionLoss(wrap(MultipleNegativesRankingMLMLoss(model, mlm_input="shared", mlm_weight=0)))
    ReconstructionLoss(wrap(losses.MegaBatchMarginLoss(model, use_mini_batched_version=False)))


def test_head_trains_with_a_frozen_model(model: SentenceTransformer, documents: list[str]) -> None:
    model.requires_grad_(False)
    loss = ReconstructionLoss(MultipleNegativesRankingLoss(model))
    loss(columns_of(model, documents))["reconstruction"].backward()
    assert loss.head.weight.grad.any()
