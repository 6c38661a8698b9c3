"""A model's identity: the same on every machine, and different if its vectors would differ."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentence_transformers
import transformers
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_static_model

from simlte_st.models.loading import load_model
from simlte_st.models.parts import model_identity
from simlte_st.models.sentence_transformers import SentenceTransformer
from simlte_st.modules import PositionPooling, to_chunk_mean

MODEL, BERT, POOLING = "config_sentence_transformers.json", "config.json", "1_Pooling/config.json"


@pytest.fixture(scope="module")
def places(bert_path: Path, encoder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of several kinds."""
    folder = tmp_path_factory.mktemp("kinds")
    encoder = Transformer(str(bert_path))
    size = encoder.get_embedding_dimension()
    modules = {
        "dense": [encoder, Pooling(size, "mean"), Dense(size, 20), Normalize()],
        "position": [encoder, PositionPooling(size)],
    }
    made = {name: sentence_transformers.SentenceTransformer(modules=own, device="cpu") for name, own in modules.items()}
    made |= {
        "chunks": to_chunk_mean(SentenceTransformer(str(encoder_path), device="cpu")),
        "static": make_static_model(),
    }
    for name, model in made.items():
        model.save_pretrained(str(folder / name))
    return folder


def swap(values: Any) -> None:
    vocabulary = values["model"]["vocab"]
    first, second = sorted(vocabulary, key=vocabulary.__getitem__)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]


@pytest.mark.parametrize("kind", ["dense", "position", "chunks", "static"])
def test_identity_does_not_depend_on_place_or_loader(places: Path, tmp_path: Path, kind: str) -> None:
    place = shutil.copytree(places / kind, tmp_path / "elsewhere")
    known = model_identity(load_model(places / kind, device="cpu").model)
    for file in place.glob("config*.json"):
        file.write_text(file.read_text().replace(transformers.__version__, "5.0.0"))
    for name in (sentence_transformers.SentenceTransformer, SentenceTransformer):
        model = name(str(place), device="cpu")
        assert model_identity(model) == known
        model.encode(["ba bei bo " * 50, "ba"], batch_size=2)  # sets the tokenizer's truncation and padding
        model.save_pretrained(str(tmp_path / "again"))
        assert model_identity(model) == model_identity(load_model(tmp_path / "again", device="cpu").model) == known


@pytest.mark.parametrize(
    ("kind", "file", "edit", "noticed"),
    [
        ("dense", POOLING, lambda values: values.update(pooling_mode="cls"), "modules"),
        ("dense", POOLING, lambda values: values.update(include_prompt=False), "modules"),
        ("dense", "modules.json", lambda values: values.pop(), "modules"),
        ("dense", BERT, lambda values: values.update(hidden_act="relu"), "modules"),
        ("dense", BERT, lambda values: values.update(num_attention_heads=1), "modules"),
        ("dense", "tokenizer.json", lambda values: values["normalizer"].update(lowercase=False), "tokenizer"),
        ("dense", "tokenizer.json", swap, "tokenizer"),
        ("dense", "tokenizer_config.json", lambda values: values.update(model_max_length=20), "max_seq_length"),
        ("dense", MODEL, lambda values: values["prompts"].update(document="bei: "), "prompts"),
        ("position", "1_PositionPooling/config.json", lambda values: values.update(power=3.0), "modules"),
        ("chunks", "sentence_bert_config.json", lambda values: values.update(chunk_length=12), "modules"),
        ("static", "tokenizer.json", swap, "tokenizer"),
        ("static", "modules.json", lambda values: values.pop(), "modules"),
    ],
)
def test_identity_changes_with_each_setting(
    places: Path, tmp_path: Path, kind: str, file: str, edit: Callable[[Any], object], noticed: str
) -> None:
    place = shutil.copytree(places / kind, tmp_path / "model")
    values = json.loads((place / file).read_text())
    edit(values)
    (place / file).write_text(json.dumps(values))
    known, now = (model_identity(load_model(each, device="cpu").model) for each in (places / kind, place))
    assert [name for name in known if known[name] != now[name]] == [noticed]
