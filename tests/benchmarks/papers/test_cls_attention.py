"""The row of ``[CLS]`` against the weights that transformers' own models give with ``output_attentions``, and texts."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from longformer_support import randomise, stock_config
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import WORDS, make_document, make_tokenizer
from torch import Tensor
from transformers import (
    AlbertConfig,
    AutoModel,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    LongformerModel,
    ModernBertConfig,
    MPNetConfig,
    PreTrainedConfig,
    PreTrainedModel,
    RobertaConfig,
    T5Config,
    T5EncoderModel,
)

from benchmarks.papers.cls_attention import cls_attention, read_texts
from simlte_st.chunk_mean import SimlteChunkMeanConfig, SimlteChunkMeanModel
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer import SimlteLongformerModel
from simlte_st.modules import BaseForm

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
}
CONFIGS: dict[str, PreTrainedConfig] = {
    "bert": BertConfig(**SIZES),
    "roberta": RobertaConfig(**SIZES),
    "electra": ElectraConfig(**SIZES, embedding_size=16),
    "distilbert": DistilBertConfig(
        vocab_size=60, dim=32, n_layers=3, n_heads=4, hidden_dim=48, max_position_embeddings=64, pad_token_id=1
    ),
    # Scores that are more than a product of projections, or one attention for all layers:
    "mpnet": MPNetConfig(**SIZES),
    "albert": AlbertConfig(**SIZES, embedding_size=16),
    "modernbert": ModernBertConfig(**SIZES, local_attention=8, bos_token_id=0, eos_token_id=2, cls_token_id=0),
}
LENGTHS = [30, 11, 2]


def batch(lengths: list[int] = LENGTHS, left: bool = False) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(7)
    ids = torch.full((len(lengths), max(lengths)), 1)
    for row, length in enumerate(lengths):
        start = ids.shape[1] - length if left else 0
        ids[row, start : start + length] = torch.randint(2, 60, (length,), generator=generator)
    return {"input_ids": ids, "attention_mask": (ids != 1).long()}


def sharpen(model: PreTrainedModel) -> None:
    """Draw weights with which attention is far from uniform: then a wrong row shows."""
    randomise(model)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name.lower() and name.endswith("weight"):
                weight += 1


def made(config: PreTrainedConfig, implementation: str | None = None) -> PreTrainedModel:
    options = {} if implementation is None else {"attn_implementation": implementation}
    model = AutoModel.from_config(config, **options).eval()
    sharpen(model)
    return model


def check(found: Tensor, expected: Tensor, mask: Tensor) -> None:
    assert found.shape == expected.shape == (len(mask), 4, mask.shape[1])
    assert found.dtype == torch.float32
    assert (found - expected).abs().max() < 1e-5
    assert (found.sum(-1) - 1).abs().max() < 1e-5
    assert found.masked_select(mask[:, None] == 0).abs().sum() == 0
    assert expected[0].max() > 1.5 / mask[0].sum(), "near uniform: a wrong row would not be told"


@pytest.mark.parametrize("name", CONFIGS)
def test_every_layer_of_stock_models(name: str) -> None:
    model, reference, features = made(CONFIGS[name]), made(CONFIGS[name], "eager"), batch()
    with torch.no_grad():
        expected = reference(**features, output_attentions=True).attentions
    assert len(expected) == 3
    for layer in (0, 1, 2, -1, -3):
        check(cls_attention(model, features, layer), expected[layer][:, :, 0], features["attention_mask"])


@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_padding_on_the_left(name: str) -> None:
    model, reference, features = made(CONFIGS[name]), made(CONFIGS[name], "eager"), batch(left=True)
    with torch.no_grad():
        weights = reference(**features, output_attentions=True).attentions[-1]
    starts = [max(LENGTHS) - length for length in LENGTHS]
    expected = torch.stack([weights[row, :, start] for row, start in enumerate(starts)])
    check(cls_attention(model, features), expected, features["attention_mask"])


def test_the_model_is_left_as_it_was() -> None:
    for name in ("bert", "modernbert"):
        model, features = made(CONFIGS[name]).train(), batch()
        implementation = model.config._attn_implementation
        before = {module: len(module._forward_pre_hooks) for module in model.modules()}
        rows = cls_attention(model, features)
        assert model.training
        assert model.config._attn_implementation == implementation
        assert {module: len(module._forward_pre_hooks) for module in model.modules()} == before
        assert not rows.requires_grad
        assert torch.equal(rows, cls_attention(model.eval(), features)), "dropout was on"


def longformers(window: int | list[int]) -> tuple[LongformerModel, SimlteLongformerModel]:
    stock = LongformerModel(stock_config(window)).eval()
    sharpen(stock)
    return stock, SimlteLongformerModel.from_longformer(stock).eval()


def stock_rows(stock: LongformerModel, features: dict[str, Tensor], layer: int) -> Tensor:
    """Put the first token's weights together from what the stock Longformer gives."""
    mask = features["attention_mask"]
    with torch.no_grad():
        output = stock(**features, output_attentions=True)
    rows = torch.zeros(len(mask), 4, mask.shape[1])
    is_global = features.get("global_attention_mask", torch.zeros_like(mask)) > 0
    most = int(is_global.sum(1).max())
    half = stock.config.attention_window[layer] // 2
    for row in range(len(mask)):
        if is_global[row, 0]:
            rows[row] = output.global_attentions[layer][row, :, : mask.shape[1], 0]
            continue
        # First the global tokens, then the window, of which the first token is the middle.
        weights = output.attentions[layer][row, :, 0]
        for number, place in enumerate(is_global[row].nonzero().squeeze(1)):
            rows[row, :, place] += weights[:, number]
        window = weights[:, most + half :][:, : mask.shape[1]]
        rows[row, :, : window.shape[1]] += window
    return rows


GLOBALS = {
    "cls": lambda mask: torch.nn.functional.one_hot(torch.zeros(len(mask), dtype=torch.int64), mask.shape[1]),
    "others": lambda mask: (torch.arange(mask.shape[1]) % 13 == 5).long() * mask,
    "cls of some": lambda mask: torch.nn.functional.one_hot(torch.tensor([0, 3, 0]), mask.shape[1]) * mask,
}


@pytest.mark.parametrize("window", [8, [4, 32]], ids=str)
@pytest.mark.parametrize("which", GLOBALS)
def test_longformers_with_global_tokens(which: str, window: int | list[int]) -> None:
    stock, ours = longformers(window)
    features = batch([70, 33, 20])
    features["global_attention_mask"] = GLOBALS[which](features["attention_mask"])
    for layer in (0, 1):
        expected = stock_rows(stock, features, layer)
        check(cls_attention(stock, features, layer), expected, features["attention_mask"])
        check(cls_attention(ours, features, layer), expected, features["attention_mask"])


def test_our_longformer_gives_cls_global_attention_by_itself() -> None:
    stock, ours = longformers(8)
    features = batch([70, 33])
    found = cls_attention(ours, features)
    told = {**features, "global_attention_mask": GLOBALS["cls"](features["attention_mask"])}
    check(found, stock_rows(stock, told, 1), features["attention_mask"])
    assert found[0, :, 20:].sum() > 0.1, "nothing outside of the window"


def test_without_global_attention_cls_sees_its_window() -> None:
    stock, ours = longformers(8)
    ours = SimlteLongformerModel.from_longformer(stock, global_tokens="none").eval()
    features = batch([70, 33, 3])
    for model in (stock, ours):
        found = cls_attention(model, features)
        check(found, stock_rows(stock, features, 1), features["attention_mask"])
        assert found[:, :, 5:].abs().sum() == 0


def test_our_longformer_with_padding_on_the_left() -> None:
    _, ours = longformers(8)
    lengths = [70, 33]
    right, left = cls_attention(ours, batch(lengths)), cls_attention(ours, batch(lengths, left=True))
    for row, length in enumerate(lengths):
        assert (right[row, :, :length] - left[row, :, 70 - length :]).abs().max() < 1e-5


@pytest.mark.parametrize("layer", [3, -4])
def test_a_layer_that_there_is_not(layer: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"layer={layer}: .*0 to 2"):
        cls_attention(made(CONFIGS["bert"]), batch(), layer)


def test_models_without_such_a_row() -> None:
    chunks = SimlteChunkMeanModel(SimlteChunkMeanConfig(encoder_config=CONFIGS["bert"]))
    with pytest.raises(ModelError, match="analyse its encoder"):
        cls_attention(chunks, batch())


def test_other_models_give_their_first_tokens_row() -> None:
    model = T5EncoderModel(T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)).eval()
    reference, features = copy.deepcopy(model), batch()
    reference.set_attn_implementation("eager")
    with torch.no_grad():
        expected = reference(**features, output_attentions=True).attentions[-1][:, :, 0]
    assert (cls_attention(model, features) - expected).abs().max() < 1e-5


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


def test_a_prompt_is_read_with_its_contractions_written_out(bert_path: Path) -> None:
    model = SentenceTransformer(modules=[BaseForm(str(bert_path)), Pooling(32, "cls")], device="cpu")
    found = []
    for prompt in ("won't ", "will not "):
        model.prompts, model.default_prompt_name = {"passage": prompt}, "passage"
        found.append(read_texts(model, ["Ba bei."])[0])
    assert found[0].special.tolist() == found[1].special.tolist()
    assert np.array_equal(found[0].weights, found[1].weights)


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
    with pytest.raises(ModelError, match=r"'\[CLS\]' first, not 'ba'"):
        read_texts(model, TEXTS)
    tokenizer.cls_token = None
    with pytest.raises(ModelError, match=r"no \[CLS\] token"):
        read_texts(model, TEXTS)
