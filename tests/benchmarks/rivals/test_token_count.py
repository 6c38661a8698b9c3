from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import nn
from transformers import BertConfig, BertLMHeadModel

from benchmarks.rivals.token_count import TokenCount, count_tokens
from simlte_st.chunk_mean import to_chunk_mean

TEXTS = ["ba bei bo", "ba"]  # 5 and 3 tokens with [CLS] and [SEP]


def test_tokens_of_training_are_counted_without_padding(model: SentenceTransformer) -> None:
    features = model.preprocess(TEXTS)
    assert features["input_ids"].shape == (2, 5)
    with count_tokens() as count:
        model.train()(dict(features))
        assert (count.encoder, count.decoder) == (8, 0)
        model.eval()(dict(features))
        assert count.encoder == 8, "nobody trains it"
        model.train()(dict(features))
    model(dict(features))
    assert (count.encoder, count.decoder) == (16, 0)


def test_a_decoder_is_counted_by_itself() -> None:
    decoder = BertLMHeadModel(
        BertConfig(
            vocab_size=9,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=8,
            is_decoder=True,
        )
    )
    with count_tokens() as count:
        decoder.train()(input_ids=torch.tensor([[2, 3, 0, 0]]))
    assert (count.encoder, count.decoder) == (0, 2)


def test_what_is_read_in_chunks_is_counted_once(model: SentenceTransformer) -> None:
    chunks = to_chunk_mean(model, max_length=64, chunk_length=6).train()
    with count_tokens() as count:
        chunks(chunks.preprocess(["ba bei bo bun bis bet", "ba"]))
    assert count.encoder == 8 + 3


def test_flattened_inputs_have_no_padding() -> None:
    count = TokenCount()
    transformer = Transformer.__new__(Transformer)
    nn.Module.__init__(transformer)
    count._see(transformer, ({"input_ids": torch.ones(1, 7), "cu_seq_lens_q": torch.tensor([0, 3, 7])},))
    assert count.encoder == 7
