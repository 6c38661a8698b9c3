"""How much a model reads, and how much of a document fits a view."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import (
    BertConfig,
    BertModel,
    MPNetConfig,
    MPNetModel,
    PretrainedConfig,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
)

from simlte_st.chunk_mean import SimlteChunkMeanConfig
from simlte_st.limits import readable_length, readable_tokens, view_budget


def test_the_tiny_model_reads_what_its_positions_allow(model: SentenceTransformer) -> None:
    assert readable_tokens(model) == 64
    assert readable_length(model) == 64
    assert view_budget(model) == 62  # [CLS] and [SEP]


@pytest.mark.parametrize(("own", "wanted", "reads"), [(64, None, 64), (64, 20, 20), (64, 500, 64), (30, None, 30)])
def test_the_readable_length_is_the_smallest_bound(
    model: SentenceTransformer, own: int, wanted: int | None, reads: int
) -> None:
    model.max_seq_length = own
    assert readable_length(model, wanted) == reads


def test_a_wanted_length_may_exceed_the_models_setting(model: SentenceTransformer) -> None:
    model.max_seq_length = 30
    assert readable_length(model, 50) == 50
    assert readable_length(model, 500) == 64


def test_a_setting_beyond_the_positions_is_cut(model: SentenceTransformer) -> None:
    model.max_seq_length = 4096
    assert readable_length(model) == 64
    assert view_budget(model) == 62


def test_the_budget_leaves_room_for_the_prompt(model: SentenceTransformer) -> None:
    assert view_budget(model, "ba bei: ") == 59
    assert view_budget(model, "") == view_budget(model, None) == 62
    # a view that fills the budget is read to its end
    encoded = model.tokenizer("ba bei: " + "bo " * 59)["input_ids"]
    assert len(encoded) == 64
    assert len(model.tokenizer("bo " * 62)["input_ids"]) == 64


def test_the_budget_is_never_less_than_one_token(model: SentenceTransformer) -> None:
    model.max_seq_length = 4
    assert view_budget(model, "ba bei bo bun bis") == 1
    model.max_seq_length = 2
    assert view_budget(model) == 1


def stub(transformer: Any, max_seq_length: int | None = None) -> SentenceTransformer:
    """What the limits look at, without a tokenizer that each architecture would need."""
    return SimpleNamespace(transformers_model=transformer, max_seq_length=max_seq_length)  # type: ignore[return-value]


SMALL = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 20}


@pytest.mark.parametrize(
    ("transformer", "reads"),
    [
        (lambda: BertModel(BertConfig(**SMALL, max_position_embeddings=40)), 40),
        (lambda: RobertaModel(RobertaConfig(**SMALL, max_position_embeddings=40, pad_token_id=1)), 38),
        (lambda: MPNetModel(MPNetConfig(**SMALL, max_position_embeddings=40)), 38),
        (lambda: T5EncoderModel(T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)), None),
        (lambda: None, None),
    ],
    ids=["BERT", "RoBERTa", "MPNet", "T5", "no transformer"],
)
def test_positions_that_can_be_used(transformer: Any, reads: int | None) -> None:
    encoder = transformer()
    assert readable_tokens(stub(encoder)) == reads
    if encoder is not None and reads is not None:
        encoder.eval()
        with torch.no_grad():
            encoder(input_ids=torch.full((1, reads), 5))
            with pytest.raises((IndexError, RuntimeError)):
                encoder(input_ids=torch.full((1, reads + 1), 5))


def test_no_limit_is_none() -> None:
    unlimited = stub(SimpleNamespace(config=SimpleNamespace(max_position_embeddings=-1), modules=list))
    assert readable_tokens(unlimited) is None
    assert readable_length(unlimited) is None
    assert view_budget(unlimited) is None
    assert readable_length(unlimited, 100) == 100
    assert readable_length(stub(None, 300)) == 300


def test_our_own_architectures_say_it_themselves() -> None:
    # Around an encoder with positions from padding_idx + 1, which are no concern of the whole.
    encoder = RobertaModel(RobertaConfig(**SMALL, max_position_embeddings=40, pad_token_id=1))
    config = SimlteChunkMeanConfig(encoder.config, chunk_length=20, max_position_embeddings=1000)
    assert readable_tokens(stub(SimpleNamespace(config=config, modules=encoder.modules))) == 1000


def test_the_text_part_of_a_configuration_counts() -> None:
    text = PretrainedConfig(max_position_embeddings=77)
    config = SimpleNamespace(get_text_config=lambda: text, max_position_embeddings=1000)
    assert readable_tokens(stub(SimpleNamespace(config=config, modules=list))) == 77


def test_the_length_survives_saving(bert_path: Path, tmp_path: Path) -> None:
    transformer = Transformer(str(bert_path))
    transformer.max_seq_length = 24
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save_pretrained(str(tmp_path / "saved"))
    loaded = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert (readable_length(loaded), view_budget(loaded)) == (24, 22)
