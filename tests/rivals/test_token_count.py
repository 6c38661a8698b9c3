from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertLMHeadModel

from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.rivals.token_count import count_tokens

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


def test_what_is_read_in_chunks_is_counted_with_the_special_tokens_of_each(model: SentenceTransformer) -> None:
    chunks = to_chunk_mean(model, max_length=64, chunk_length=6).train()
    with count_tokens() as count:
        chunks(chunks.preprocess(["ba bei bo bun bis bet"]))
    assert count.encoder == 6 + 2 * 2, "six words in two chunks of four or fewer"
