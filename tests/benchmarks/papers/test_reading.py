"""Compare the tokens that a model reads, and their attention, layers and weights, with the stock models."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from chunk_mean_support import make_config
from paper_support import load_random
from sentence_transformers import SentenceTransformer
from support import WORDS, make_document, make_tokenizer
from transformers import AutoModel

from benchmarks.papers.layers import successive_cosines
from benchmarks.papers.reading import cls_attention, read_text
from benchmarks.papers.weights import token_weights
from simlte_st.compat import get_encoder
from simlte_st.modules import BaseForm, TokenAttention


@pytest.mark.parametrize("modern", [False, True])
def test_cls_attention_matches_the_stock_model(modern: bool, bert_path: Path, tmp_path: Path) -> None:
    if modern:
        tokenizer = make_tokenizer()
        AutoModel.from_config(make_config("modernbert", len(tokenizer), local_attention=8)).save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
    model = load_random(tmp_path if modern else bert_path)
    reference = copy.deepcopy(get_encoder(model))
    reference.set_attn_implementation("eager")
    before = get_encoder(model).config._attn_implementation
    read = read_text(model, make_document(1, sentences=3))
    with torch.no_grad():
        expected = reference(**read.features, output_attentions=True).attentions
    for layer in (0, 1, -1):
        found = cls_attention(model, read, layer)
        assert found == pytest.approx(expected[layer][0, :, 0].mean(0).tolist(), abs=1e-6)
        assert sum(found) == pytest.approx(1, abs=1e-5)
    if not (modern and transformers.__version__.startswith("5.0")):  # which makes a ModernBERT eager by default
        assert get_encoder(model).config._attn_implementation == before


def test_tokens_of_the_text_exclude_special_tokens_and_prompt(bert_path: Path) -> None:
    model = load_random(bert_path)
    text = make_document(2, sentences=20)
    read = read_text(model, text)
    ids = model.preprocess([text])["input_ids"]
    assert torch.equal(read.features["input_ids"], ids)
    assert (len(read.positions), read.positions[0], len(ids[0])) == (62, 1, 64)
    known = model.tokenizer.convert_ids_to_tokens(ids[0][1:-1])
    assert [token.lower() for token in read.tokens] == known
    assert set(known) <= {*WORDS, "."}
    assert len(read_text(model, text, max_seq_length=10).tokens) == 8
    model.prompts, model.default_prompt_name = {"passage": "bo bun: "}, "passage"
    prompted = read_text(model, "Ba bei.")
    assert prompted.tokens == ["Ba", "bei", "."]
    assert prompted.positions == [4, 5, 6]


def test_cosines_match_the_hidden_states(model: SentenceTransformer, documents: list[str]) -> None:
    read = read_text(model, documents[0][:90])
    states = get_encoder(model)(**read.features, output_hidden_states=True).hidden_states
    expected = [
        [float(torch.cosine_similarity(one[0, place], two[0, place], dim=0)) for one, two in itertools.pairwise(states)]
        for place in range(read.features["input_ids"].shape[1])
    ]
    np.testing.assert_allclose(successive_cosines(model, read), expected, atol=1e-5)
    layer = get_encoder(model).encoder.layer[-1]
    with torch.no_grad():
        for part in (layer.attention.output.dense, layer.output.dense):
            part.weight.zero_()
            part.bias.zero_()
    assert successive_cosines(model, read)[:, -1] == pytest.approx(1, abs=1e-5), "a layer that changes nothing"


@pytest.mark.parametrize("include", [False, True])
def test_weights_match_the_embedding(bert_path: Path, include: bool) -> None:
    # In training, where dropout would give other weights each time.
    model = SentenceTransformer(modules=[BaseForm(str(bert_path)), TokenAttention(32)], device="cpu").train()
    read, weights = token_weights(model, "Ca ba won't di")
    assert model.training
    assert read.text == "Ca ba will not di"
    model.prompts, model.default_prompt_name = {"query": "it's bun: "}, "query"
    model[1].include_prompt = include
    prompted, found = token_weights(model, "Ca ba won't di")
    given = model.encode(["Ca ba won't di"], output_value=None)[0]["token_attention"]
    assert prompted.tokens == read.tokens
    assert found == pytest.approx((100 * given[-1 - len(found) : -1]).tolist(), rel=1e-4)
    assert found != pytest.approx(weights, rel=1e-3)
