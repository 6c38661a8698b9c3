from __future__ import annotations

from pathlib import Path

from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel

from simlte_st.compat import checkpoint_name, enable_checkpointing
from simlte_st.losses.mlm_head import encoder_of


def test_the_checkpoint_of_an_encoder_is_known(encoder_path: Path, bert_path: Path) -> None:
    for path in (encoder_path, bert_path):
        assert checkpoint_name(encoder_of(SentenceTransformer(str(path), device="cpu"))) == str(path)


def test_a_model_made_from_nothing_has_none() -> None:
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    assert checkpoint_name(BertModel(config)) == ""


def test_checkpointing_is_switched_on(bert_path: Path) -> None:
    encoder = encoder_of(SentenceTransformer(str(bert_path), device="cpu"))
    assert not encoder.encoder.layer[0].gradient_checkpointing
    enable_checkpointing(encoder)
    assert encoder.encoder.layer[0].gradient_checkpointing
