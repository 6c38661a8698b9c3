from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from interpolation_support import load, moved, same, state
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.modules import BoW, Dense, Pooling
from torch import nn
from transformers import AutoTokenizer

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer import convert_to_longformer
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.models.base import load_model
from simlte_st.training.dropout import set_dropout
from simlte_st.training.interpolation import check_interpolable, choose_interpolation, interpolate
from simlte_st.training.lora import add_lora, merge_lora

TEXTS = ["Ba bei bo, cun dis.", "Let lal gor hun tis wet wal. Ba, bei."]


@pytest.fixture
def base(encoder_path: Path) -> SentenceTransformer:
    return load(encoder_path)


@pytest.fixture
def adapted(encoder_path: Path) -> SentenceTransformer:
    return moved(encoder_path)


# One weight.


def test_the_ends_are_the_models_and_between_lies_the_line(
    base: SentenceTransformer, adapted: SentenceTransformer
) -> None:
    start, end = state(base), state(adapted)
    assert same(state(interpolate(base, adapted, 0)), start)
    assert same(state(interpolate(base, adapted, 1)), end)
    for weight in (0.1, 0.5, 0.75):
        model = interpolate(base, adapted, weight)
        for name, value in state(model).items():
            expected = (1 - weight) * start[name].double() + weight * end[name].double()
            torch.testing.assert_close(value.double(), expected, rtol=0, atol=1e-6)
        assert not model.training
    assert same(state(base), start)
    assert same(state(adapted), end)
    assert (interpolate(base, adapted, 0).encode(TEXTS) == base.encode(TEXTS)).all()
    assert (interpolate(base, adapted, 1).encode(TEXTS) == adapted.encode(TEXTS)).all()


def test_in_place_it_is_the_same(base: SentenceTransformer, adapted: SentenceTransformer) -> None:
    start = state(base)
    expected = state(interpolate(base, adapted, 0.4))
    adapted.train()
    card = adapted.model_card_data
    assert interpolate(base, adapted, 0.4, in_place=True) is adapted
    assert same(state(adapted), expected)
    assert adapted.model_card_data is card
    assert not adapted.training
    assert same(state(base), start)


def test_tied_weights_stay_tied(encoder_path: Path) -> None:
    models = []
    for model in (load(encoder_path), moved(encoder_path)):
        words = model.transformers_model.get_input_embeddings()
        model.append(Dense(32, len(words.weight), bias=False, activation_function=nn.Identity()))
        model[2].linear.weight = words.weight
        models.append(model)
    between = interpolate(*models, 0.5)
    words = between.transformers_model.get_input_embeddings().weight
    assert between[2].linear.weight is words
    expected = sum(model[2].linear.weight.detach() for model in models) / 2
    torch.testing.assert_close(words.detach(), expected, rtol=0, atol=1e-6)
    untied = load(encoder_path)
    untied.append(Dense(32, len(words), bias=False, activation_function=nn.Identity()))
    with pytest.raises(ModelError, match="is tied to"):
        interpolate(untied, models[1], 0.5)


def test_half_precision_is_rounded_once(encoder_path: Path, base: SentenceTransformer) -> None:
    start, end = state(base), state(moved(encoder_path))
    between = interpolate(base, moved(encoder_path).to(torch.bfloat16), 0.3)
    for name, value in state(between).items():
        assert value.dtype == torch.bfloat16
        exact = torch.lerp(start[name], end[name].to(torch.bfloat16).float(), 0.3)
        assert torch.equal(value, exact.to(torch.bfloat16))


def test_what_is_saved_is_a_plain_model_without_the_others_card(
    base: SentenceTransformer, adapted: SentenceTransformer, tmp_path: Path
) -> None:
    adapted.max_seq_length = 40
    adapted.prompts = {"query": "ba "}
    adapted.save_pretrained(str(tmp_path / "adapted"))
    with (tmp_path / "adapted" / "README.md").open("a") as file:
        file.write("\nOf the adapted model only.\n")
    between = interpolate(base, load(tmp_path / "adapted"), 0.5)
    between.save_pretrained(str(tmp_path / "between"))
    assert "Of the adapted model only." not in (tmp_path / "between" / "README.md").read_text()
    loaded = load(tmp_path / "between")
    assert (loaded.encode(TEXTS) == between.encode(TEXTS)).all()
    assert (loaded.max_seq_length, loaded.prompts["query"]) == (40, "ba ")


def test_a_model_out_of_the_trainer_is_copied_whole_but_for_its_card(
    encoder_path: Path, base: SentenceTransformer, documents: list[str], tmp_path: Path
) -> None:
    model = load(encoder_path)
    trainer = SentenceTransformerTrainer(
        model=model,
        # bf16: the Trainer wraps the model's forward, which a copy must not share.
        args=SentenceTransformerTrainingArguments(
            str(tmp_path), max_steps=3, learning_rate=1e-2, bf16=True, use_cpu=True, report_to="none",
            disable_tqdm=True, save_strategy="no",
        ),
        train_dataset=Dataset.from_dict({"a": documents[:16], "b": documents[16:32]}),
        loss=MultipleNegativesRankingMLMLoss(model, mlm_weight=0.1),
    )  # fmt: skip
    trainer.train()
    trained = model.encode(TEXTS)
    copied = interpolate(base, model, 0)
    assert "generated_from_trainer" in model.model_card_data.tags
    assert "generated_from_trainer" not in copied.model_card_data.tags
    assert all(weight.grad is None for weight in copied.parameters())
    assert same(state(copied), state(base))
    torch.testing.assert_close(copied.encode(TEXTS), base.encode(TEXTS), rtol=0, atol=0.02)
    assert abs(trained - base.encode(TEXTS)).max() > 0.1
    assert (model.encode(TEXTS) == trained).all()
    assert (interpolate(base, model, 1).encode(TEXTS) == trained).all()


def test_a_merged_adapter_is_between_base_and_itself(base: SentenceTransformer, encoder_path: Path) -> None:
    pytest.importorskip("peft")
    adapted = load(encoder_path)
    add_lora(adapted, 2, target_modules=["query"])
    with torch.no_grad():
        for weight in adapted.parameters():
            if weight.requires_grad:
                weight.fill_(0.1)
    with pytest.raises(ModelError, match="merge_lora"):
        interpolate(base, adapted, 0.5)
    merge_lora(adapted)
    between = state(interpolate(base, adapted, 0.5))
    start, end = state(base), state(adapted)
    changed = {name for name, value in between.items() if not torch.equal(value, start[name])}
    assert changed == {f"0.model.encoder.layer.{layer}.attention.self.query.weight" for layer in range(2)}
    for name in changed:
        torch.testing.assert_close(between[name], (start[name] + end[name]) / 2, rtol=0, atol=1e-6)


def test_our_longformer_is_interpolated(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    convert_to_longformer(bert_path, max_length=120, attention_window=16).save_pretrained(tmp_path / "long")
    tokenizer = AutoTokenizer.from_pretrained(bert_path)
    tokenizer.model_max_length = 120
    tokenizer.save_pretrained(tmp_path / "long")
    base = load_model(tmp_path / "long").model
    base.save_pretrained(str(tmp_path / "encoder"))
    adapted = moved(tmp_path / "encoder")
    half = interpolate(base, adapted, 0.5).encode(documents[:3])
    assert abs(half - base.encode(documents[:3])).max() > 1e-3
    assert abs(half - adapted.encode(documents[:3])).max() > 1e-3


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_weight_outside_is_refused(base: SentenceTransformer, adapted: SentenceTransformer, weight: float) -> None:
    with pytest.raises(ConfigurationError, match="from 0, the base, to 1"):
        interpolate(base, adapted, weight)
    with pytest.raises(ConfigurationError, match="from 0, the base, to 1"):
        choose_interpolation(base, adapted, [], weights=(0.5, weight))


# What is one model with other weights, and what is not.


def with_config(path: Path, to: Path, **fields: object) -> SentenceTransformer:
    """The same weights under another configuration."""
    load(path).save_pretrained(str(to))
    config = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps({**config, **fields}))
    return load(to)


def test_other_models_are_refused(base: SentenceTransformer, encoder_path: Path, tmp_path: Path) -> None:
    other = load(encoder_path)
    other[1] = Pooling(32, "cls")
    with pytest.raises(ModelError, match=r"configuration of module 1 .*pooling included"):
        check_interpolable(base, other)
    other = load(encoder_path)
    other.append(Dense(32, 32))
    with pytest.raises(ModelError, match="module 2"):
        check_interpolable(base, other)
    with pytest.raises(ModelError, match="num_attention_heads is 4 and 2"):  # all shapes are equal
        check_interpolable(base, with_config(encoder_path, tmp_path / "heads", num_attention_heads=2))
    with pytest.raises(ModelError, match="layer_norm_eps"):
        check_interpolable(base, with_config(encoder_path, tmp_path / "eps", layer_norm_eps=1e-5))
    with pytest.raises(ModelError, match="module 0"):
        check_interpolable(base, SentenceTransformer(modules=[BoW(["a"])], device="cpu"))
    swapped = load(encoder_path)
    files = tmp_path / "swapped"
    swapped.save_pretrained(str(files))
    words = json.loads((files / "tokenizer.json").read_text())
    vocabulary = words["model"]["vocab"]
    vocabulary["ba"], vocabulary["bo"] = vocabulary["bo"], vocabulary["ba"]
    (files / "tokenizer.json").write_text(json.dumps(words))
    with pytest.raises(ModelError, match="vocabulary"):
        check_interpolable(base, load(files))


def test_buffers_of_integers_are_equal_or_refused(base: SentenceTransformer, adapted: SentenceTransformer) -> None:
    for model in (base, adapted):
        model[1].register_buffer("table", torch.tensor([1, 2]))
    assert torch.equal(interpolate(base, adapted, 0.5)[1].table, torch.tensor([1, 2]))
    adapted[1].table[0] = 5
    with pytest.raises(ModelError, match=r"value of 1.table is \[1, 2\] and \[5, 2\]"):
        interpolate(base, adapted, 0.5)


def test_what_training_changes_is_no_difference(
    base: SentenceTransformer, adapted: SentenceTransformer, encoder_path: Path, tmp_path: Path
) -> None:
    adapted.max_seq_length = 20
    adapted.train()
    set_dropout(adapted, 0.4)
    adapted.requires_grad_(False)
    check_interpolable(base, adapted)
    check_interpolable(base, with_config(encoder_path, tmp_path / "dropout", hidden_dropout_prob=0.4))
    adapted.transformers_model.config.use_cache = False
    check_interpolable(base, adapted.to(torch.bfloat16))
    check_interpolable(load(encoder_path), SentenceTransformer(
        str(encoder_path), device="cpu", model_kwargs={"attn_implementation": "eager"}
    ))  # fmt: skip
