from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from losses_support import OPTIONS, both, columns_of, compare, cut, flatten, flattening, gradients, step
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from training_support import stock_trainer

from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.training import LossMetricsCallback, LossStateCallback
from simlte_st.training.load_model import set_dropout

# The same as the plain loss.


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
@pytest.mark.parametrize("sizes", [{"mini_batch_size": 5}, {"mini_batch_size": 1}, {"mini_batch_num_tokens": 40}])
def test_the_plain_loss_in_value_and_gradient(
    with_head: SentenceTransformer, documents: list[str], mlm_input: Any, sizes: dict[str, int]
) -> None:
    columns = columns_of(with_head, documents, 3)
    options = {"mlm_input": mlm_input, "mlm_weight": 0.4, "scale": 10.0, "mlm_probability": 0.3}
    plain = step(MultipleNegativesRankingMLMLoss(with_head, **options), columns)
    cached = step(CachedMultipleNegativesRankingMLMLoss(with_head, **options, **sizes), columns)
    compare(plain, cached, rtol=1e-5, atol=1e-5)
    assert sum(value is not None and bool(value.any()) for value in cached.values()) == 2 + 37 + 5


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
@pytest.mark.parametrize("options", [*OPTIONS, {"mlm_chunk_size": 3}, {"mlm_head": "fresh", "seed": 3}], ids=str)
def test_all_options_of_the_plain_loss(
    with_head: SentenceTransformer, documents: list[str], mlm_input: Any, options: dict[str, Any]
) -> None:
    compare(*both(with_head, columns_of(with_head, documents, 3), mlm_input=mlm_input, **options), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"mlm_input": "shared"}], ids=str)
def test_flattened_batches(
    perturbed_path: Path, with_head: SentenceTransformer, documents: list[str], options: dict[str, Any]
) -> None:
    columns = [flatten(column) for column in columns_of(with_head, documents)]
    plain, cached = both(flattening(perturbed_path), columns, **options)
    compare(plain, cached, rtol=1e-5, atol=1e-5)
    if not options:
        padded = step(MultipleNegativesRankingMLMLoss(with_head), columns_of(with_head, documents))
        torch.testing.assert_close(plain["contrastive"], padded["contrastive"])


def test_without_mlm_it_is_the_stock_cached_loss_to_the_bit(model: SentenceTransformer, documents: list[str]) -> None:
    model.train()
    results = []
    for make in (
        lambda: CachedMultipleNegativesRankingLoss(model, scale=9.0, mini_batch_size=4),
        lambda: CachedMultipleNegativesRankingMLMLoss(model, scale=9.0, mini_batch_size=4, mlm_weight=0),
    ):
        torch.manual_seed(3)
        model.zero_grad()
        value = make()(columns_of(model, documents, 3), None)
        value.backward()
        results.append({"loss": value.detach(), **gradients(model)})
    compare(*results, rtol=0, atol=0)


# Cases.


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
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
    if as_tensor:  # as the collator gives it for a dataset, or an iterable one
        columns = [{**column, "prompt_length": torch.full((as_tensor,), column["prompt_length"])} for column in columns]
    compare(*both(with_head, columns), rtol=1e-5, atol=1e-5)


# With the Trainer.


@pytest.mark.parametrize("mlm_input", ["separate", "shared"])
def test_the_trainer_does_the_same_steps(
    encoder_path: Path, documents: list[str], tmp_path: Path, mlm_input: Any
) -> None:
    anchors, positives, _ = cut(documents, rows=24)
    dataset = Dataset.from_dict({"anchor": anchors, "positive": positives})
    results = []
    for kind, sizes in (
        (MultipleNegativesRankingMLMLoss, {}),
        (CachedMultipleNegativesRankingMLMLoss, {"mini_batch_size": 3}),
    ):
        model = SentenceTransformer(str(encoder_path), device="cpu")
        set_dropout(model, 0.0)
        loss = kind(model, mlm_weight=0.5, mlm_input=mlm_input, **sizes)
        settings = {"max_steps": 3, "per_device_train_batch_size": 8, "gradient_accumulation_steps": 2}
        settings |= {"max_grad_norm": 0.5, "learning_rate": 1e-2, "logging_steps": 1, "save_strategy": "no"}
        settings["optim"] = "sgd"  # Adam would make much of the rounding of small gradients
        callbacks = [LossStateCallback(loss), LossMetricsCallback(loss)]
        trainer = stock_trainer(model, loss, dataset, tmp_path / kind.__name__, callbacks, **settings)
        trainer.train()
        torch.manual_seed(0)
        evaluation = trainer.evaluate(dataset)
        lines = [line for line in trainer.state.log_history if "loss" in line]
        assert len(lines) == 3
        weights = {**dict(model.named_parameters()), **loss.extra_state()}
        results.append((weights, lines, {name: evaluation[name] for name in evaluation if "loss" in name}))
    (plain, plain_lines, plain_evaluation), (cached, cached_lines, cached_evaluation) = results
    compare(plain, cached, rtol=1e-5, atol=1e-5)
    assert not torch.equal(cached["mlm_head.bias"], torch.zeros_like(cached["mlm_head.bias"]))
    for first, second in zip(plain_lines, cached_lines, strict=True):
        for name in ("loss", "contrastive", "mlm", "grad_norm", "mean_cosine", "alignment", "uniformity"):
            assert second[name] == pytest.approx(first[name], abs=2e-4), name
    assert cached_evaluation == pytest.approx(plain_evaluation, abs=1e-4)
