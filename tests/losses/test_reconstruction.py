from __future__ import annotations

from typing import Any

import pytest
import torch
from losses_support import columns_of, cut, gradients, total
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
    SoftmaxLoss,
)
from torch import nn
from torch.nn import functional

from simlte_st.errors import ConfigurationError
from simlte_st.losses import MultipleNegativesRankingMLMLoss, ReconstructionLoss
from simlte_st.losses.masking import IGNORE
from simlte_st.losses.mlm_head import MLMHead


def make(kind: str, model: SentenceTransformer) -> nn.Module:
    if kind == "softmax":
        torch.manual_seed(0)
        return SoftmaxLoss(model, model.get_embedding_dimension(), num_labels=3)
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
def test_beside_any_loss_it_is_the_cross_entropy_of_all_tokens(
    kind: str, model: SentenceTransformer, documents: list[str]
) -> None:
    model.eval()
    columns, labels = columns_of(model, documents), torch.tensor([0, 1, 2, 0, 1, 2])
    inner = make(kind, model)
    torch.manual_seed(5)
    alone = inner([dict(features) for features in columns], labels)
    loss = ReconstructionLoss(inner, weight=0.5, chunk_size=7)
    torch.manual_seed(5)
    terms = loss([dict(features) for features in columns], labels)
    torch.testing.assert_close(sum(value for name, value in terms.items() if name != "reconstruction"), total(alone))
    assert set(terms) == {"reconstruction"} | ({"contrastive", "mlm"} if kind == "docsplit" else {"sentence"})
    torch.testing.assert_close(terms["reconstruction"], 0.5 * full_logits(loss, model, columns))
    assert not model._forward_hooks


def test_gradients_are_those_of_full_logits(model: SentenceTransformer, documents: list[str]) -> None:
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


def test_the_trainer_s_precision_is_the_head_s(model: SentenceTransformer, documents: list[str]) -> None:
    model.eval()
    loss = ReconstructionLoss(make("docsplit", model), weight=1.0)
    terms = {}
    for bf16 in (False, True):
        loss.set_head_precision(bf16)
        assert [module.bf16 for module in loss.modules() if isinstance(module, MLMHead)] == [bf16]
        terms[bf16] = loss([dict(features) for features in columns_of(model, documents)])["reconstruction"]
    assert terms[True].dtype == torch.float32
    assert terms[True] != terms[False]
    torch.testing.assert_close(terms[True], terms[False], rtol=1e-2, atol=0)
    assert loss.head.weight.dtype == torch.float32


def test_only_special_tokens(model: SentenceTransformer) -> None:
    loss = ReconstructionLoss(MultipleNegativesRankingLoss(model))
    terms = loss([model.preprocess(["", ""]), model.preprocess(["", ""])])
    assert torch.isfinite(total(terms))


def test_the_head_is_state_and_decided_by_its_seed(model: SentenceTransformer) -> None:
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
    with pytest.raises(ConfigurationError, match="resume with the loss"):
        wrapped.load_extra_state(first.extra_state())


def test_what_it_cannot_wrap(model: SentenceTransformer) -> None:
    with pytest.raises(ConfigurationError, match="gradient caching"):
        ReconstructionLoss(CachedMultipleNegativesRankingLoss(model))
    with pytest.raises(ConfigurationError, match="mlm_input='shared'"):
        ReconstructionLoss(MultipleNegativesRankingMLMLoss(model, mlm_input="shared"))
    with pytest.raises(ConfigurationError, match="must not be negative"):
        ReconstructionLoss(make("ranking", model), weight=-1)
    with pytest.raises(ConfigurationError, match=r"no SentenceTransformer as \.model"):
        ReconstructionLoss(nn.MSELoss())


def test_its_card_names_the_paper(model: SentenceTransformer, documents: list[str]) -> None:
    loss = ReconstructionLoss(make("softmax", model))
    assert loss.get_config_dict() == {"loss": "SoftmaxLoss", "weight": 0.017}
    assert "TA-SBERT" in loss.citation
    assert len(cut(documents)[0]) == 6
