from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import Tensor
from transformers import AutoModel, BertConfig, BertModel
from transformers.modeling_outputs import BaseModelOutput

from simlte_st.compat import checkpoint_name, with_encoder
from simlte_st.losses.mlm_head import encoder_of


def test_the_checkpoint_of_an_encoder_is_known(encoder_path: Path, bert_path: Path) -> None:
    for path in (encoder_path, bert_path):
        assert checkpoint_name(encoder_of(SentenceTransformer(str(path), device="cpu"))) == str(path)


def test_a_model_made_from_nothing_has_none() -> None:
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    assert checkpoint_name(BertModel(config)) == ""


class _Curious(BertModel):
    """Takes a feature that sentence-transformers keeps to itself, unless a model asks for it by name."""

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, prompt_length: int | None = None, **kwargs: Any
    ) -> BaseModelOutput:
        self.seen = {"prompt_length": prompt_length, **kwargs}
        return BaseModelOutput(last_hidden_state=torch.zeros(*input_ids.shape, 8))


def test_another_encoder_gets_the_features_that_it_asks_for(bert_path: Path) -> None:
    transformer = Transformer(str(bert_path))
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    encoder = _Curious(config)
    made = with_encoder(transformer, encoder)
    assert made.auto_model is encoder
    made.max_seq_length = 7
    assert transformer.max_seq_length == 64, "the tokenizer is another one"
    features = made.preprocess(["ba bei bo bun bis"], prompt="bo ")
    assert features["input_ids"].shape == (1, 7)
    assert made(features)["token_embeddings"].shape == (1, 7, 8)
    assert encoder.seen["prompt_length"] == 2
    assert "attention_mask" in encoder.seen
    assert "modality" not in encoder.seen
    assert type(transformer.auto_model) is type(AutoModel.from_pretrained(bert_path))
    assert transformer(transformer.preprocess(["ba"]))["token_embeddings"].shape[2] == 32
