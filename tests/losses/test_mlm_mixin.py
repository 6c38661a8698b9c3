from __future__ import annotations

import statistics
from typing import Any, TypeAlias

import pytest
import torch
from losses_support import columns_of, first_batch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.errors import ConfigurationError, DataError, ModelError
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.losses.mlm_head import make_mlm_head
from simlte_st.losses.mlm_mixin import MLMLossMixin

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
        ({"mlm_chunk_size": 1.5}, "mlm_chunk_size=1.5"),
        ({"mlm_share": 0.0}, "mlm_share=0.0"),
        ({"mlm_share": 1.1}, "mlm_share=1.1"),
        ({"mlm_share": 0.5, "mlm_input": "shared"}, "mlm_share=0.5 with mlm_input='shared'"),
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


def test_a_model_without_token_embeddings(kind: Kind, with_head: SentenceTransformer, documents: list[str]) -> None:
    class Drop(torch.nn.Module):
        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            return {"sentence_embedding": features["sentence_embedding"]}

    model = SentenceTransformer(modules=[with_head[0], with_head[1], Drop()], device="cpu")
    with pytest.raises(ModelError, match="no token embeddings"):
        kind(model)(columns_of(model, documents), None)


def test_one_column_is_refused(kind: Kind, with_head: SentenceTransformer, documents: list[str]) -> None:
    with pytest.raises(DataError, match="this batch has 1"):
        kind(with_head)(columns_of(with_head, documents, 1), None)


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


def test_the_extra_state_of_other_settings_is_refused(kind: Kind, model: SentenceTransformer) -> None:
    with_mlm = kind(model)
    without = kind(model, mlm_weight=0)
    assert without.extra_state() == {}
    without.load_extra_state({})
    with pytest.raises(ConfigurationError, match="The saved loss"):
        with_mlm.load_extra_state({})
    with pytest.raises(ConfigurationError, match="The saved loss"):
        without.load_extra_state(with_mlm.extra_state())
    with pytest.raises(ConfigurationError, match="The saved loss"):
        with_mlm.load_extra_state({**with_mlm.extra_state(), "mlm_head.decoder": torch.zeros(1)})


# On a share of the rows.


def test_a_share_of_the_rows(kind: Kind, with_head: SentenceTransformer, documents: list[str]) -> None:
    columns = columns_of(with_head, documents)
    seen: list[int] = []
    with_head[0].register_forward_pre_hook(lambda module, args: seen.append(len(args[0]["input_ids"])))
    for share in (1.0, 0.5, 0.01):
        seen.clear()
        loss = kind(with_head, mlm_share=share)
        loss(columns, None)
        first_batch(loss)
        assert sum(seen) == 12 + sum(len(column["input_ids"]) for column in loss.mask_columns(columns))
        assert {1.0: sum(seen) == 24, 0.5: 14 <= sum(seen) < 24, 0.01: sum(seen) == 14}[share]


def test_the_rows_of_a_share_are_drawn_anew_for_each_batch(
    with_head: SentenceTransformer, documents: list[str]
) -> None:
    column = columns_of(with_head, documents)[0]
    loss = MultipleNegativesRankingMLMLoss(with_head, mlm_share=0.5, mlm_probability=1e-9)
    places = {tuple(row[row != 0].tolist()): place for place, row in enumerate(column["input_ids"])}
    counts = torch.zeros(6)
    for _ in range(200):
        (masked,) = loss.mask_columns([column])
        counts[[places[tuple(row[row != 0].tolist())] for row in masked["input_ids"]]] += 1
    # 100 each, and a few where none was drawn; the standard deviation is 7.
    assert (counts - 100).abs().max() < 30


def test_the_mean_over_a_share_is_that_over_all_rows(
    kind: Kind, with_head: SentenceTransformer, documents: list[str]
) -> None:
    columns = columns_of(with_head, documents)
    means = []
    for share in (1.0, 0.34):
        loss = kind(with_head, mlm_share=share, mlm_probability=0.5)
        means.append(statistics.mean(float(loss(columns, None)["mlm"].detach()) for _ in range(40)))
    assert means[1] == pytest.approx(means[0], rel=0.1)


# Precision.


def test_the_head_in_bfloat16(kind: Kind, with_head: SentenceTransformer, documents: list[str]) -> None:
    loss = kind(with_head, mlm_share=1.0)
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


def test_a_head_that_is_there_already(kind: Kind, with_head: SentenceTransformer) -> None:
    head = make_mlm_head(with_head, "fresh", seed=5)
    loss = kind(with_head, mlm_head=head)
    assert loss.mlm_head is head
