"""The loss with its MLM term on documents beyond the encoder's limit."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document
from torch.nn import functional
from transformers import BertForMaskedLM

from simlte_st.chunk_mean import SimlteChunkMeanModel, to_chunk_mean
from simlte_st.errors import ModelError
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.losses.masked_language_model import IGNORE, make_mlm_head
from simlte_st.training.load_model import set_dropout


def chunked(bert_path: Path) -> SentenceTransformer:
    """A chunk mean of the tiny BERT, whose checkpoint has an MLM head, in chunks of 32 tokens."""
    transformer = Transformer(str(bert_path))
    original = SentenceTransformer(modules=[transformer, Pooling(32, "mean")], device="cpu")
    set_dropout(original, 0.0)
    return to_chunk_mean(original, max_length=200, chunk_length=32)


def test_the_encoders_head_is_found(bert_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = chunked(bert_path)
    head = make_mlm_head(model, "pretrained")
    masked_lm = BertForMaskedLM.from_pretrained(bert_path).eval()
    ids = torch.randint(5, 100, (1, 30))
    reader = model[0].auto_model
    assert isinstance(reader, SimlteChunkMeanModel)
    hidden = reader(input_ids=ids).last_hidden_state
    logits = head(hidden[0, 1:], reader.get_input_embeddings().weight)
    assert torch.allclose(logits, masked_lm(input_ids=ids).logits[0, 1:], atol=1e-5)
    # Saving a SentenceTransformer drops heads, and the folder names no path of this machine.
    model.save_pretrained(str(tmp_path / "saved"))
    loaded = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    with caplog.at_level(logging.INFO), pytest.raises(ModelError, match="not loaded from"):
        make_mlm_head(loaded, "pretrained")
    assert make_mlm_head(loaded).dense.weight.shape == (32, 32)


def test_the_mlm_term_is_that_of_the_chunks(bert_path: Path) -> None:
    model = chunked(bert_path).train()
    loss = MultipleNegativesRankingMLMLoss(model, mlm_probability=0.3)
    texts = [make_document(number, sentences=sentences) for number, sentences in enumerate((12, 2, 7))]
    assert loss.masker is not None
    columns = [model.preprocess(texts), model.preprocess(texts)]
    masked = [loss.masker(features, (0, number)) for number, features in enumerate(columns)]
    found = loss(columns, None)["mlm"] / loss.mlm_weight

    masked_lm = BertForMaskedLM.from_pretrained(bert_path).eval()
    lengths = model.preprocess(texts)["attention_mask"].sum(1).tolist()
    total, count = torch.zeros(()), 0
    for ids, labels in masked:
        for row, length in enumerate(lengths):
            body, targets = ids[row, 1 : length - 1], labels[row, 1 : length - 1]
            for start in range(0, max(1, len(body)), 30):
                whole = torch.cat([ids[row, :1], body[start : start + 30], ids[row, length - 1 : length]])
                logits = masked_lm(input_ids=whole[None]).logits[0, 1:-1]
                wanted = targets[start : start + 30]
                total = total + functional.cross_entropy(logits, wanted, ignore_index=IGNORE, reduction="sum")
                count += int((wanted != IGNORE).sum())
    assert count > 50
    assert torch.allclose(found, total / count, atol=1e-5)
