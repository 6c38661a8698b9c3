from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from transformers import DataCollatorWithFlattening

from benchmarks.papers.layers import (
    layers_table,
    measure_layers,
    successive_cosines,
    token_layers,
    write_layer_lines,
    write_token_lines,
)
from simlte_st.compat import encoder_of
from simlte_st.errors import DataError


def test_cosines_are_those_of_the_hidden_states(model: SentenceTransformer, documents: list[str]) -> None:
    texts = [documents[0][:40], documents[1][:90]]
    found = successive_cosines(model, texts)
    rows = []
    for text in texts:  # one by one: without padding
        ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
        states = encoder_of(model)(input_ids=ids, output_hidden_states=True).hidden_states
        for place in range(ids.shape[1]):
            pairs = [(one[0, place], two[0, place]) for one, two in itertools.pairwise(states)]
            rows.append([float((torch.dot(a, b) / (a.norm() * b.norm())).detach()) for a, b in pairs])
    np.testing.assert_allclose(found, rows, atol=1e-5)
    assert found.shape[1] == 2


def test_a_layer_that_changes_nothing_has_cosine_one(model: SentenceTransformer, documents: list[str]) -> None:
    other = SentenceTransformer(modules=list(model), device="cpu")
    before = measure_layers({"before": model}, documents[:5], batch_size=2)["before"]
    last = encoder_of(model).encoder.layer[-1]
    with torch.no_grad():
        for weights in (last.attention.output.dense, last.output.dense):
            weights.weight.zero_()
            weights.bias.zero_()
    after = measure_layers({"after": other}, documents[:5], batch_size=5)["after"]
    assert after.mean[-1] == pytest.approx(1.0, abs=1e-5)
    assert before.mean[-1] < after.mean[-1] - 1e-5
    assert after.mean[0] == pytest.approx(before.mean[0])
    assert before.tokens == after.tokens
    assert all(low <= mean <= high for low, mean, high in zip(before.low, before.mean, before.high, strict=True))


def test_they_are_laid_out_and_drawn(model: SentenceTransformer, documents: list[str], tmp_path: Path) -> None:
    found = measure_layers({"a $model": model}, documents[:2])
    assert [line.split("|")[1].strip() for line in layers_table(found).splitlines()[2:]] == ["1", "2"]
    for name in ("lines.svg", "again.svg"):
        write_layer_lines(tmp_path / name, found)
    assert (tmp_path / "lines.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()
    with pytest.raises(DataError, match="no usable document"):
        measure_layers({"a": model}, [])


def test_each_token_of_a_text_has_its_cosines(model: SentenceTransformer) -> None:
    read, cosines = token_layers(model, "Ca ba di")
    assert read.tokens == ["Ca", "ba", "di"]
    np.testing.assert_allclose(cosines, successive_cosines(model, ["Ca ba di"])[1:-1])
    model.prompts, model.default_prompt_name = {"query": "bo bun "}, "query"
    read, prompted = token_layers(model, "Ca ba di")
    assert read.tokens == ["Ca", "ba", "di"]
    del model.prompts["query"]
    model.default_prompt_name = None
    np.testing.assert_allclose(prompted, successive_cosines(model, ["bo bun Ca ba di"])[3:-1])
    assert not np.allclose(prompted, cosines)


def test_texts_that_the_model_would_read_in_one_row(
    model: SentenceTransformer, documents: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [documents[0][:40], documents[1][:90]]
    padded = successive_cosines(model, texts)
    monkeypatch.setattr(Transformer, "_can_flatten_inputs", lambda self: True)
    flattening = DataCollatorWithFlattening(
        return_seq_idx=True, return_flash_attn_kwargs=True, return_position_ids=True
    )
    monkeypatch.setattr(model[0], "data_collator", flattening, raising=False)
    monkeypatch.setattr(model[0], "_flatten_position_offset", 0, raising=False)
    model[0].unpad_inputs = None
    assert "cu_seq_lens_q" in model.preprocess(texts)
    np.testing.assert_array_equal(successive_cosines(model, texts), padded)
    assert "cu_seq_lens_q" in model.preprocess(texts), "the model is left as it was"


def test_a_line_is_drawn_for_each_token(model: SentenceTransformer, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra figures)")
    found = {name: token_layers(model, "Ca ba _ di $ka ca") for name in ("a $model", "other_$")}
    for name in ("lines.svg", "again.svg"):
        write_token_lines(tmp_path / name, found)
    drawn = (tmp_path / "lines.svg").read_text()
    assert drawn == (tmp_path / "again.svg").read_text()
    labels = [line.strip()[5:-4] for line in drawn.splitlines() if line.strip().startswith("<!-- ")]
    tokens = [f"{number} {token}" for number, token in enumerate(found["other_$"][0].tokens, start=1)]
    assert [label for label in labels if label in tokens] == 2 * tokens
    assert "3 _" in tokens
    assert {"a $model", "other_$"} <= set(labels)
