from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from losses_support import OPTIONS, Columns, columns_of, cut, first_batch, gradients, total
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor
from torch.nn import functional
from training_support import stock_trainer
from transformers import BertForMaskedLM, TrainerCallback
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from simlte_st import DocSplitTransform, trainer_callbacks
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss, ReconstructionLoss
from simlte_st.losses.base import IGNORE
from simlte_st.losses.masked_language_model import TokenMasker
from simlte_st.losses.multiple_negatives_ranking_mlm import MLMLossMixin

STOCK: dict[Any, Any] = {
    MultipleNegativesRankingMLMLoss: MultipleNegativesRankingLoss,
    CachedMultipleNegativesRankingMLMLoss: losses.CachedMultipleNegativesRankingLoss,
}
"""The stock loss that each loss equals with mlm_weight=0."""


@pytest.fixture(params=STOCK)
def kind(request: pytest.FixtureRequest) -> Any:
    """Both losses, which share the term."""
    return request.param


# With mlm_weight=0, the stock loss.


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_without_mlm_equals_the_stock_loss(
    kind: Any, model: SentenceTransformer, documents: list[str], options: dict[str, Any], columns: int
) -> None:
    model.train()  # with dropout: both must draw the same
    results, states = [], []
    cached = kind is CachedMultipleNegativesRankingMLMLoss
    options = {**options, "mini_batch_size": 4} if cached else options
    for make, more in ((STOCK[kind], {}), (kind, {"mlm_weight": 0})):
        torch.manual_seed(3)
        loss = make(model, **options, **more)
        assert [name for name, _ in loss.named_parameters() if not name.startswith("model.")] == []
        model.zero_grad(set_to_none=True)
        value = loss(columns_of(model, documents, columns), None)
        assert isinstance(value, Tensor)
        value.backward()
        results.append({"loss": value.detach(), **gradients(model)})
        states.append(torch.get_rng_state())
    stock, ours = results
    assert stock.keys() == ours.keys()
    assert sum(value is not None and bool(value.any()) for value in stock.values()) > 20
    for name, value in stock.items():
        assert (value is None) == (ours[name] is None), name
        assert value is None or torch.equal(value, ours[name]), name
    assert torch.equal(states[0], states[1])


# The two terms.


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_contrastive_term_is_stock(model: SentenceTransformer, documents: list[str], options: dict[str, Any]) -> None:
    model.eval()
    stock = MultipleNegativesRankingLoss(model, **options)(columns_of(model, documents, 3), None)
    loss = MultipleNegativesRankingMLMLoss(model, **options)
    ours = loss(columns_of(model, documents, 3), None)
    assert list(ours) == ["contrastive", "mlm"]
    torch.testing.assert_close(ours["contrastive"], stock, rtol=1e-6, atol=1e-6)
    assert ours["mlm"] > 0


def reference(
    masked_lm: BertForMaskedLM, columns: Columns, masked: list[tuple[Tensor, Tensor]], scale: float, shared: bool
) -> dict[str, Tensor]:
    """Both terms in plain PyTorch: logits of the whole vocabulary at all positions of the stock masked LM."""

    def embed(ids: Tensor, mask: Tensor) -> Tensor:
        hidden = masked_lm.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        mean = (hidden * weights).sum(1) / weights.sum(1)
        return mean / mean.norm(dim=1, keepdim=True)

    pairs = zip(columns, masked, strict=True)
    inputs = [(column["input_ids"], ids, column["attention_mask"]) for column, (ids, _) in pairs]
    anchor, positive = (embed(ids if shared else plain, mask) for plain, ids, mask in inputs)
    logits = [masked_lm(input_ids=ids, attention_mask=mask).logits.flatten(0, 1) for _, ids, mask in inputs]
    labels = torch.cat([label.flatten() for _, label in masked])
    return {
        "contrastive": functional.cross_entropy(scale * anchor @ positive.T, torch.arange(len(anchor))),
        "mlm": functional.cross_entropy(torch.cat(logits), labels, ignore_index=-100),
    }


def test_loss_matches_a_plain_reference(
    with_head: SentenceTransformer, perturbed_path: Path, documents: list[str], mlm_input: Any
) -> None:
    weight, scale, probability = 0.3, 12.0, 0.25
    columns = columns_of(with_head, documents)
    masker = TokenMasker(with_head.tokenizer, probability)
    masked = [masker(column, (0, number)) for number, column in enumerate(columns)]
    counts = [int((label != IGNORE).sum()) for _, label in masked]
    assert counts[0] != counts[1] > 0  # otherwise the mean over both would equal the mean of two means

    masked_lm = BertForMaskedLM.from_pretrained(perturbed_path).eval()
    expected = reference(masked_lm, columns, masked, scale, mlm_input == "shared")
    (expected["contrastive"] + weight * expected["mlm"]).backward()

    loss = MultipleNegativesRankingMLMLoss(
        with_head, scale=scale, mlm_weight=weight, mlm_probability=probability, mlm_input=mlm_input
    )
    assert loss.mlm_head is not None
    assert loss.mlm_head.pretrained
    ours = loss(columns, None)
    torch.testing.assert_close(ours["contrastive"], expected["contrastive"], rtol=0, atol=1e-5)
    torch.testing.assert_close(ours["mlm"], weight * expected["mlm"], rtol=0, atol=1e-5)
    total(ours).backward()

    encoder = {name: value for name, value in gradients(with_head[0].auto_model).items() if "pooler" not in name}
    assert encoder.keys() == gradients(masked_lm.bert).keys()
    predictions = masked_lm.cls.predictions
    pairs = {name: (encoder[name], value) for name, value in gradients(masked_lm.bert).items()}
    head = {name.replace("LayerNorm", "norm"): value for name, value in gradients(predictions.transform).items()}
    head["bias"] = predictions.decoder.bias.grad
    pairs |= {f"head.{name}": (value, head.pop(name)) for name, value in gradients(loss.mlm_head).items()}
    assert not head
    for name, (ours_, theirs) in pairs.items():
        assert ours_ is not None, name
        torch.testing.assert_close(ours_, theirs, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
    assert all(value[1].any() for name, value in pairs.items() if "key.bias" not in name)


WRAPPERS: dict[str, Any] = {
    "Matryoshka": partial(losses.MatryoshkaLoss, matryoshka_dims=[32, 8], matryoshka_weights=[1.0, 0.5]),
    "AdaptiveLayer": partial(losses.AdaptiveLayerLoss, n_layers_per_step=1, last_layer_weight=2.0),
    "AdaptiveLayer and Matryoshka": partial(losses.Matryoshka2dLoss, matryoshka_dims=[32, 8], n_layers_per_step=-1),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_stock_wrappers(name: str, with_head: SentenceTransformer, documents: list[str]) -> None:
    wrap, loss = WRAPPERS[name], MultipleNegativesRankingMLMLoss(with_head, mlm_probability=0.5)
    mlm = loss(columns_of(with_head, documents), None)["mlm"]
    first_batch(loss)
    random.seed(0)  # of the dimensions in Matryoshka2dLoss
    terms = wrap(with_head, loss)(columns_of(with_head, documents), None)
    random.seed(0)
    stock = wrap(with_head, MultipleNegativesRankingLoss(with_head))(columns_of(with_head, documents), None)
    torch.testing.assert_close(terms["contrastive"], stock)
    torch.testing.assert_close(terms["mlm"], mlm)  # once, on the last layer and all dimensions
    total(terms).backward()
    refused = [MultipleNegativesRankingMLMLoss(with_head, mlm_input="shared"), ReconstructionLoss(loss)]
    refused += [CachedMultipleNegativesRankingMLMLoss(with_head)] * (name != "Matryoshka")
    for other in refused:
        with pytest.raises(ConfigurationError, match=f"does not work inside .*{name.split()[0]}"):
            wrap(with_head, other)(columns_of(with_head, documents), None)


@pytest.mark.parametrize("alike", [True, False])
def test_number_of_forward_passes(
    with_head: SentenceTransformer, documents: list[str], mlm_input: Any, alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = []
    inner = with_head[0].forward
    monkeypatch.setattr(with_head[0], "forward", lambda *args, **kwargs: passes.append(1) or inner(*args, **kwargs))
    anchors, positives, _ = cut(documents)
    if not alike:  # by adding padding to one pass
        anchors = [text.split(".")[0] for text in anchors]
    columns = [with_head.preprocess(texts) for texts in (anchors, positives)]
    MultipleNegativesRankingMLMLoss(with_head, mlm_input=mlm_input)(columns, None)
    assert len(passes) == (1 if mlm_input == "shared" else 2) * (1 if alike else 2)


def test_no_token_masked_gives_zero_and_finite_gradients(with_head: SentenceTransformer, documents: list[str]) -> None:
    loss = MultipleNegativesRankingMLMLoss(with_head, mlm_probability=1e-12)
    value = loss(columns_of(with_head, documents), None)
    assert value["mlm"].item() == 0.0
    total(value).backward()
    assert loss.mlm_head is not None
    for name, parameter in loss.mlm_head.named_parameters():
        assert parameter.grad is not None, name  # the graph exists, as in the other processes
        assert not parameter.grad.any(), name
    assert all(value.isfinite().all() for value in gradients(with_head).values() if value is not None)
    assert with_head[0].auto_model.get_input_embeddings().weight.grad.any()  # of the contrastive term


# With the Trainer.


def test_trainer_logs_terms_and_metrics(
    model: SentenceTransformer, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[dict[str, float]] = []

    class Reporter(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            reported.append(dict(logs))

    monkeypatch.setitem(INTEGRATION_TO_CALLBACK, "tensorboard", Reporter)  # the Trainer makes it, and calls it first
    anchors, positives, _ = cut(documents, rows=16)
    dataset = Dataset.from_dict({"anchor": anchors, "positive": positives})
    loss = MultipleNegativesRankingMLMLoss(model, mlm_weight=0.5)
    assert loss.mlm_head is not None
    before = {name: value.detach().clone() for name, value in loss.mlm_head.named_parameters()}
    settings = {"max_steps": 2, "per_device_train_batch_size": 8, "learning_rate": 1e-3, "logging_steps": 1}
    settings |= {"save_strategy": "no", "report_to": "tensorboard"}
    callbacks = trainer_callbacks(DocSplitTransform(model=model), loss)
    trainer = stock_trainer(model, loss, dataset, tmp_path, callbacks, **settings)
    trainer.train()
    lines = [line for line in trainer.state.log_history if "loss" in line]
    assert [{**line, "step": step} for step, line in enumerate(reported[:2], 1)] == lines
    for line in lines:
        assert line["contrastive"] + line["mlm"] == pytest.approx(line["loss"], abs=2e-3)
        assert line["mlm"] > 2  # a weight of 0.5 on about log(136) = 4.9
        assert 0 < line["alignment"] < 4
        assert -1 <= line["mean_cosine"] <= 1
        assert -8 <= line["uniformity"] <= 0
    assert lines[0]["alignment"] != lines[1]["alignment"]  # over these steps, not the whole run
    for name, value in loss.mlm_head.named_parameters():
        assert not torch.equal(value, before[name]), name


# Settings.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mlm_weight", -0.1), ("mlm_probability", 0.0), ("mlm_probability", 1.5), ("mlm_input", "both"),
        ("mlm_head", "new"), ("mlm_chunk_size", 0),
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(kind: Any, model: SentenceTransformer, name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}={value!r}"):
        kind(model, **{name: value})


def test_empty_mini_batches_are_refused(model: SentenceTransformer) -> None:
    with pytest.raises(ConfigurationError, match="mini_batch_size=0"):
        CachedMultipleNegativesRankingMLMLoss(model, mini_batch_size=0)


def test_tokenizer_without_mask_token_is_refused(kind: Any, model: SentenceTransformer, documents: list[str]) -> None:
    model.tokenizer.mask_token = None
    with pytest.raises(ModelError, match=r"mask token.*mlm_weight=0"):
        kind(model)
    value = kind(model, mlm_weight=0)(columns_of(model, documents), None)
    assert isinstance(value, Tensor)
    assert value.isfinite()


# State.


def test_extra_state_round_trip(kind: Any, model: SentenceTransformer, documents: list[str]) -> None:
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
    # In place, because an optimizer may hold them; the model stays unchanged.
    assert all(a is b for a, b in zip(parameters, second.mlm_head.parameters(), strict=True))
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


# Precision.


def test_head_in_bfloat16(kind: Any, with_head: SentenceTransformer, documents: list[str]) -> None:
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
