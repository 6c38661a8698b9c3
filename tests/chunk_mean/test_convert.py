"""A converted model against the original: the same on what fits a chunk, the mean made by hand on what does not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from chunk_mean_support import FAMILIES, by_hand, make_model
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, StaticEmbedding
from support import make_document, make_tokenizer
from tokenizers import processors
from transformers import BertModel, T5Config, T5EncoderModel

from simlte_st.chunk_mean import SimlteChunkMeanModel, to_chunk_mean
from simlte_st.chunk_mean.convert import can_read_in_chunks
from simlte_st.compat import readable_length, readable_tokens, view_budget
from simlte_st.errors import ConfigurationError, ModelError

SHORT = ["ba bei bo", "", "cun. dis, et", "ba " * 22]
LONG = [make_document(number, sentences=sentences) for number, sentences in enumerate((3, 12, 30))]


def assert_close(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    assert (found - expected).abs().max() < tolerance


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_every_pooling(tmp_path: Path, pooling: str, normalize: bool) -> None:
    model = make_model(tmp_path, pooling=pooling, normalize=normalize)
    converted = to_chunk_mean(model)
    short = model.encode(SHORT, convert_to_tensor=True)
    assert_close(converted.encode(SHORT, convert_to_tensor=True), short, 1e-6 * float(short.abs().max().clamp(min=1)))
    long = torch.stack([by_hand(model, text) for text in LONG]).detach()
    assert_close(converted.encode(LONG, convert_to_tensor=True), long, 1e-5 * float(long.abs().max().clamp(min=1)))
    assert (model.encode(LONG, convert_to_tensor=True) - long).abs().max() > 0.05, "they must be long"


@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_family_and_its_way_to_disk(tmp_path: Path, family: str) -> None:
    model = make_model(tmp_path / "base", family, length=62)
    state = torch.get_rng_state()
    converted = to_chunk_mean(model, max_length=300)
    assert torch.equal(torch.get_rng_state(), state)
    converted.save_pretrained(str(tmp_path / "converted"))
    loaded = SentenceTransformer(str(tmp_path / "converted"), device="cpu")
    assert isinstance(loaded[0].auto_model, SimlteChunkMeanModel)
    assert [type(module) for module in loaded] == [Transformer, Pooling, Normalize]
    for made in (converted, loaded):
        assert (made.max_seq_length, readable_tokens(made), view_budget(made)) == (300, 300, 298)
        assert_close(made.encode(SHORT, convert_to_tensor=True), model.encode(SHORT, convert_to_tensor=True), 1e-6)
        expected = torch.stack([by_hand(model, text, 62, max_length=300) for text in [*LONG, "bo " * 500]])
        assert_close(made.encode([*LONG, "bo " * 500], convert_to_tensor=True), expected, 1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("include_prompt", [True, False])
def test_a_prompt_stands_before_every_chunk(tmp_path: Path, include_prompt: bool, pooling: str) -> None:
    model = make_model(tmp_path / "base", pooling=pooling, include_prompt=include_prompt)
    model.prompts = {"query": "bo bei ", "document": "et "}
    to_chunk_mean(model).save_pretrained(str(tmp_path / "converted"))
    for converted in (to_chunk_mean(model), SentenceTransformer(str(tmp_path / "converted"), device="cpu")):
        short = converted.encode(SHORT[:3], prompt_name="query", convert_to_tensor=True)
        assert_close(short, model.encode(SHORT[:3], prompt_name="query", convert_to_tensor=True), 1e-6)
        long = converted.encode(LONG, prompt_name="query", convert_to_tensor=True)
        assert_close(long, torch.stack([by_hand(model, text, prompt="bo bei ") for text in LONG]), 1e-5)
        with pytest.raises(ConfigurationError, match=r"22 tokens .* chunks of 24"):
            converted.encode(LONG, prompt="ba " * 22)


def test_settings_of_the_model_come_along_and_it_stays_as_it_was(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    model.prompts, model.default_prompt_name = {"query": "bo "}, "query"
    model.similarity_fn_name, model.truncate_dim = "dot", 8
    model[0].do_lower_case = True
    model.to(torch.bfloat16).train()
    converted = to_chunk_mean(model, max_length=100)
    assert converted.prompts["query"] == "bo "
    assert (converted.default_prompt_name, converted.similarity_fn_name, converted.truncate_dim) == ("query", "dot", 8)
    assert converted[0].do_lower_case
    assert converted.training
    assert all(module.training for module in converted.modules())
    assert {weight.dtype for weight in converted.parameters()} == {torch.bfloat16}
    assert (model.max_seq_length, type(model[0].auto_model)) == (24, BertModel)
    own = {weight.data_ptr() for weight in model.parameters()}
    assert not own & {weight.data_ptr() for weight in converted.parameters()}


def test_lengths(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    assert to_chunk_mean(model)[0].auto_model.config.chunk_length == 24
    model.max_seq_length = 4096  # more than there are positions
    assert to_chunk_mean(model)[0].auto_model.config.chunk_length == 64
    converted = to_chunk_mean(model, chunk_length=16)
    converted.max_seq_length = 40
    assert readable_length(converted) == 40
    assert_close(converted.encode(LONG[1], convert_to_tensor=True), by_hand(model, LONG[1], 16, max_length=40), 1e-5)
    with pytest.raises(ConfigurationError, match=r"chunk_length=65: .* 64 tokens"):
        to_chunk_mean(model, chunk_length=65)
    with pytest.raises(ConfigurationError, match=r"max_length=50: .* 64 tokens"):
        to_chunk_mean(model, max_length=50)


def refused(model: SentenceTransformer, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        to_chunk_mean(model)


def test_what_cannot_be_wrapped_is_refused_by_name(tmp_path: Path) -> None:
    model = make_model(tmp_path / "base")
    transformer, pooling = model[0], model[1]
    refused(SentenceTransformer(modules=[StaticEmbedding(make_tokenizer(), embedding_dim=4)]), "StaticEmbedding")
    refused(SentenceTransformer(modules=[transformer, pooling, Dense(32, 8)]), "Pooling, Dense")
    refused(SentenceTransformer(modules=[transformer, Pooling(32, ("cls", "mean"))]), "cls and mean")
    refused(to_chunk_mean(model), "SimlteChunkMeanModel")

    def template(single: str) -> SentenceTransformer:
        made = make_model(tmp_path / "base")
        made.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        return made

    for single in ("$A", "[CLS] $A", "[CLS] [CLS] $A [SEP]"):
        refused(template(single), "does not put one special token before and one behind")

    class Mine(BertModel):
        pass

    mine = make_model(tmp_path / "base")
    mine[0].model = Mine(mine[0].auto_model.config)
    refused(mine, "Mine, of its configuration")


def test_half_of_an_architecture(tmp_path: Path) -> None:
    """sentence-transformers loads the encoder of a T5, AutoModel all of it: it is not advised what cannot be done."""
    config = T5Config(vocab_size=140, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=4)
    T5EncoderModel(config).save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    model = SentenceTransformer(modules=[Transformer(str(tmp_path)), Pooling(32)], device="cpu")
    refused(model, "T5EncoderModel, of its configuration")
    assert not can_read_in_chunks(model)
