"""The loss with its MLM term on documents beyond the encoder's limit."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from chunk_mean_support import make_model
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document
from torch.nn import functional
from training_support import stock_trainer
from transformers import BertForMaskedLM

from simlte_st.chunk_mean import SimlteChunkMeanModel, to_chunk_mean
from simlte_st.errors import ModelError
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.losses.masking import IGNORE
from simlte_st.losses.mlm_head import make_mlm_head
from simlte_st.training.dropout import set_dropout


def chunked(bert_path: Path, **settings: object) -> SentenceTransformer:
    """A chunk mean of the tiny BERT, whose checkpoint has an MLM head, in chunks of 32 tokens."""
    transformer = Transformer(str(bert_path))
    original = SentenceTransformer(modules=[transformer, Pooling(32, "mean")], device="cpu")
    set_dropout(original, 0.0)
    return to_chunk_mean(original, max_length=200, chunk_length=32, **settings)  # type: ignore[arg-type]


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


def test_a_new_head_is_built_to_the_encoders_configuration(tmp_path: Path) -> None:
    model = to_chunk_mean(make_model(tmp_path, hidden_act="relu", layer_norm_eps=1e-3))
    model[0].auto_model.encoder.config.name_or_path = ""
    head = make_mlm_head(model)
    assert type(head.activation).__name__ == "ReLU"
    assert head.norm.eps == 1e-3  # type: ignore[union-attr]


def test_the_mlm_term_is_that_of_the_chunks(bert_path: Path) -> None:
    model = chunked(bert_path, overlap=6).train()
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
            starts = list(range(0, max(1, len(body) - 6), 24)) if length > 32 else [0]
            for number, start in enumerate(starts):
                piece = body[start : start + 30]
                whole = torch.cat([ids[row, :1], piece, ids[row, length - 1 : length]])
                logits = masked_lm(input_ids=whole[None]).logits[0, 1:-1]
                # Of six tokens that two chunks share, each speaks for three.
                first = 3 if number else 0
                end = len(piece) if number == len(starts) - 1 else 27
                wanted = targets[start + first : start + end]
                total = total + functional.cross_entropy(
                    logits[first:end], wanted, ignore_index=IGNORE, reduction="sum"
                )
                count += int((wanted != IGNORE).sum())
    assert count > 50
    assert torch.allclose(found, total / count, atol=1e-5)


def test_training_end_to_end(bert_path: Path, tmp_path: Path) -> None:
    model = chunked(bert_path)
    documents = [make_document(number, sentences=24) for number in range(48)]
    views = [document.split(". ") for document in documents]
    dataset = Dataset.from_dict(
        {"anchor": [". ".join(view[::2]) for view in views], "positive": [". ".join(view[1::2]) for view in views]}
    )
    assert model.preprocess(dataset["anchor"][:1])["input_ids"].shape[1] > 64, "beyond the encoder's limit"
    loss = MultipleNegativesRankingMLMLoss(model)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    settings = {"per_device_train_batch_size": 12, "max_steps": 24, "learning_rate": 3e-3, "logging_steps": 4}
    settings |= {"save_strategy": "no", "seed": 0, "gradient_checkpointing": True}
    trainer = stock_trainer(model, loss, dataset, tmp_path / "run", **settings)
    trainer.train()
    log = [line for line in trainer.state.log_history if "contrastive" in line]
    assert log[-1]["contrastive"] < 0.7 * log[0]["contrastive"]
    assert log[-1]["mlm"] < log[0]["mlm"]
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
    assert {name for name in before if "pooler" not in name} == moved
    model.save_pretrained(str(tmp_path / "trained"))
    loaded = SentenceTransformer(str(tmp_path / "trained"), device="cpu")
    texts = documents[:3]
    model.eval()
    assert torch.allclose(
        loaded.encode(texts, convert_to_tensor=True), model.encode(texts, convert_to_tensor=True), atol=1e-6
    )
