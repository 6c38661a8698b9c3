from __future__ import annotations

from typing import Any, TypeAlias

import pytest
import torch
from losses_support import columns_of, first_batch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.losses.multiple_negatives_ranking_mlm import MLMLossMixin

Kind: TypeAlias = Any


@pytest.fixture(params=[MultipleNegativesRankingMLMLoss, CachedMultipleNegativesRankingMLMLoss])
def kind(request: pytest.FixtureRequest) -> Any:
    """Both losses: the term is the same."""
    return request.param


# Settings.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mlm_weight": -0.1}, "mlm_weight=-0.1"),
        ({"mlm_probability": 0.0}, "mlm_probability=0.0"),
        ({"mlm_probability": 1.5}, "mlm_probability=1.5"),
        ({"mlm_input": "both"}, "mlm_input='both'"),
        ({"mlm_head": "new"}, "mlm_head='new'"),
        ({"mlm_chunk_size": 0}, "mlm_chunk_size=0"),
    ],
)
def test_bad_settings(kind: Kind, model: SentenceTransformer, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        kind(model, **settings)


def test_a_tokenizer_without_a_mask_token(kind: Kind, model: SentenceTransformer, documents: list[str]) -> None:
    model.tokenizer.mask_token = None
    with pytest.raises(ModelError, match=r"mask token.*mlm_weight=0"):
        kind(model)
    value = kind(model, mlm_weight=0)(columns_of(model, documents), None)
    assert isinstance(value, Tensor)
    assert value.isfinite()


# State.


def test_the_extra_state_goes_round(kind: Kind, model: SentenceTransformer, documents: list[str]) -> None:
    first = kind(model.eval(), seed=1)
    second = kind(model, seed=2)
    state = {name: value.clone() for name, value in first.extra_state().items()}
    names = ("dense.weight", "dense.bias", "norm.weight", "norm.bias", "bias")
    assert set(state) == {"batches", *(f"mlm_head.{name}" for name in names)}

    def mlm(loss: MLMLossMixin) -> Tensor:
        first_batch(loss)
        return loss(columns_of(model, documents), None)["mlm"]

    second.masker.seed = 1  # type: ignore[union-attr]
    assert not torch.equal(mlm(first), mlm(second))
    assert second.mlm_head is not None
    parameters = list(second.mlm_head.parameters())
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    second.load_extra_state({**state, "batches": torch.tensor(7)})
    assert second.batches == 7
    assert torch.equal(mlm(first), mlm(second))
    # In place, because an optimizer may hold them; and the model is left alone.
    assert all(a is b for a, b in zip(parameters, second.mlm_head.parameters(), strict=True))
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


# Precision.


def test_the_head_in_bfloat16(kind: Kind, with_head: SentenceTransformer, documents: list[str]) -> None:
    loss = kind(with_head)
    columns = [with_head.preprocess(documents[at : at + 4]) for at in (0, 4)]

    def mlm(bf16: bool) -> tuple[Tensor, Tensor]:
        first_batch(loss)  # the same masks
        loss.set_head_precision(bf16)
        loss.zero_grad()
        terms = loss([dict(column) for column in columns], None)
        terms["mlm"].backward() if kind is MultipleNegativesRankingMLMLoss else sum(terms.values()).backward()
        assert loss.mlm_head is not None
        return terms["mlm"].detach(), loss.mlm_head.dense.weight.grad.clone()

    (wide, wide_gradient), (narrow, narrow_gradient) = mlm(False), mlm(True)
    assert narrow.dtype == wide.dtype == narrow_gradient.dtype == torch.float32
    assert not torch.equal(narrow, wide)
    assert torch.allclose(narrow, wide, rtol=0.01)
    assert (narrow_gradient - wide_gradient).norm() < 0.05 * wide_gradient.norm()
