from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from longformer_support import randomise, stock_config
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import WORDS, make_document, make_tokenizer
from transformers import LongformerModel

from simlte_st.analysis.attention_rows import cls_attention
from simlte_st.analysis.readings import read_texts
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer import SimlteLongformerModel

TEXTS = [make_document(1, sentences=2), "Ba bei.", make_document(2, sentences=20), "unheard"]


@pytest.fixture
def model(bert_path: Path) -> SentenceTransformer:
    model = SentenceTransformer(modules=[Transformer(str(bert_path)), Pooling(32, "cls")], device="cpu").eval()
    randomise(model)
    return model


def test_a_model_reads_what_its_encode_reads(model: SentenceTransformer) -> None:
    for text, reading in zip(TEXTS, read_texts(model, TEXTS), strict=True):
        features = {name: value for name, value in model.preprocess([text]).items() if torch.is_tensor(value)}
        expected = cls_attention(model[0].auto_model, features)[0].mean(0)
        assert np.abs(reading.weights - expected.numpy()).max() < 1e-6
        assert len(reading.spans) == len(reading.special) == features["input_ids"].shape[1]
        tokens = [text[start:stop].lower() for start, stop in reading.spans[~reading.special]]
        known = make_tokenizer().convert_ids_to_tokens(features["input_ids"][0][1:-1])
        assert [token if token in WORDS or token == "." else "[UNK]" for token in tokens] == known
        assert reading.special.tolist() == [True] + [False] * len(tokens) + [True]
        assert reading.weights.sum() == pytest.approx(1)


def test_what_is_cut_is_known(model: SentenceTransformer) -> None:
    for limit, read in ((None, 62), (10, 8), (1000, 62)):
        short, _, long, _ = read_texts(model, TEXTS, max_seq_length=limit)
        assert (long.length, long.cut) == (180, 180 - read)
        assert (short.length, short.cut) == (18, max(0, 18 - read))
        assert len(TEXTS[2][: long.extent[1]].replace(".", " . ").split()) == read


def test_readings_do_not_depend_on_the_batch(model: SentenceTransformer) -> None:
    together, alone = (read_texts(model, TEXTS, batch_size=size) for size in (4, 1))
    for one, other in zip(together, alone, strict=True):
        assert np.array_equal(one.spans, other.spans)
        assert np.abs(one.weights - other.weights).max() < 1e-6
    assert read_texts(model, []) == []


def test_a_prompt_is_read_and_is_no_part_of_the_text(model: SentenceTransformer) -> None:
    model.prompts = {"passage": "bo bun: "}
    model.default_prompt_name = "passage"
    reading = read_texts(model, ["Ba bei."])[0]
    assert reading.special.tolist() == [True] * 4 + [False] * 3 + [True]
    assert reading.spans[~reading.special].tolist() == [[0, 2], [3, 6], [6, 7]]
    assert (reading.length, reading.cut) == (3, 0)


def test_the_layer_is_the_one_asked_for(model: SentenceTransformer) -> None:
    first, last, named = (read_texts(model, TEXTS[:1], layer=layer)[0].weights for layer in (0, -1, 1))
    assert np.array_equal(last, named)
    assert np.abs(first - last).max() > 0.005


def test_a_longformer(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    stock = LongformerModel(stock_config(8, vocab_size=len(tokenizer), pad_token_id=0))
    randomise(stock)
    tokenizer.model_max_length = 1000
    SimlteLongformerModel.from_longformer(stock).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = SentenceTransformer(modules=[Transformer(str(tmp_path)), Pooling(32, "cls")], device="cpu")
    reading = read_texts(model, TEXTS)[2]
    assert (reading.length, reading.cut) == (180, 0)
    assert reading.weights[20:-1].sum() > 0.1


def test_models_that_cannot_be_analysed(model: SentenceTransformer) -> None:
    with pytest.raises(ConfigurationError, match="leaves no room"):
        read_texts(model, TEXTS, max_seq_length=2)
    with pytest.raises(ConfigurationError, match="layer=2"):
        read_texts(model, TEXTS, layer=2)
    with pytest.raises(ModelError, match="begins with Pooling"):
        read_texts(SentenceTransformer(modules=[Pooling(32)], device="cpu"), TEXTS)
    tokenizer = model.tokenizer
    tokenizer.cls_token = "ba"
    with pytest.raises(ModelError, match=r"puts '\[CLS\]' first, not 'ba'"):
        read_texts(model, TEXTS)
    tokenizer.cls_token = None
    with pytest.raises(ModelError, match=r"no \[CLS\] token"):
        read_texts(model, TEXTS)
