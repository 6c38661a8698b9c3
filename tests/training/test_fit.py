"""The Trainer of a run: its arguments, batches and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator

import simlte_st
from simlte_st.compat import get_encoder, is_fused
from simlte_st.data import read_documents
from simlte_st.training import callbacks
from simlte_st.training import fit as fitting
from simlte_st.training.callbacks import last_complete_checkpoint
from simlte_st.training.fit import MAX_EAGER_TOKENS, faster_attention, fit, training_arguments
from simlte_st.training.load_corpus import load_corpus
from simlte_st.training.prepare_model import prepare_model
from simlte_st.training.run import Run, RunFolder


def test_arguments_follow_from_the_steps() -> None:
    arguments = training_arguments(Path("out"), batch_size=4, epochs=2, steps=100, learning_rate=1e-4, warmup=0.15)
    assert (arguments.warmup_steps, arguments.logging_steps, arguments.max_steps) == (15, 5, -1)
    assert (arguments.weight_decay, arguments.bf16, arguments.report_to) == (0.0, False, [])
    stopped = training_arguments(Path("out"), batch_size=4, epochs=2, steps=3, learning_rate=1e-4, max_steps=3)
    assert (stopped.max_steps, stopped.logging_steps, stopped.warmup_steps) == (3, 1, 0)


def test_trainer_is_stock_and_checkpoints_hold_no_documents(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    original = fitting.make_trainer
    monkeypatch.setattr(fitting, "make_trainer", lambda *args: made.append(original(*args)) or made[-1])
    run = Run(RunFolder(tmp_path / "model"))
    loaded = prepare_model(run, str(encoder_path), None, {"batch_size": 8, "steps": 3})
    corpus = load_corpus(run, read_documents(documents), loaded, held_out=0.0, probe=None)
    fitted = fit(run, loaded, corpus)
    [trainer] = made
    assert type(trainer.data_collator) is SentenceTransformerDataCollator
    assert set(trainer.train_dataset[0]) == {"anchor", "positive"}
    assert fitted.steps == 3
    assert [line["step"] for line in fitted.log if "loss" in line] == [1, 2, 3]
    assert not loaded.model.training
    checkpoint = last_complete_checkpoint(run.folder.checkpoints)
    assert checkpoint is not None
    card = (checkpoint / "README.md").read_text()
    assert not any(sentence in card for text in documents for sentence in text.split(". "))
    assert "A long document ..." in card


@pytest.mark.parametrize(
    ("bf16", "length", "fused"),
    [
        (True, 64, False), (True, MAX_EAGER_TOKENS, False), (True, MAX_EAGER_TOKENS + 1, True), (True, None, True),
        (False, 9, True),
    ],
)  # fmt: skip
def test_eager_attention_only_for_short_bfloat16_views(
    model: SentenceTransformer, bf16: bool, length: int | None, fused: bool
) -> None:
    encoder = get_encoder(model)
    model.max_seq_length = length
    assert is_fused(encoder)
    with faster_attention(model, bf16=bf16):
        assert is_fused(encoder) is fused
    assert is_fused(encoder)


def test_gradients_match_fused_attention(model: SentenceTransformer) -> None:
    features = model.preprocess(["ba da " * 20, "ga", "ma na ba " * 9])
    model.eval()

    def gradients() -> torch.Tensor:
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(dict(features))["sentence_embedding"].float().square().sum().backward()
        return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])

    expected = gradients()
    with faster_attention(model, bf16=True):
        found = gradients()
    assert not torch.equal(found, expected)
    assert torch.linalg.vector_norm(found - expected) < 0.02 * torch.linalg.vector_norm(expected)


def test_eager_attention_is_not_saved_with_the_model(
    documents: list[str], encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    note = lambda self, *_, **__: seen.append(is_fused(get_encoder(self.model)))  # noqa: E731
    monkeypatch.setattr(callbacks.DivergenceCallback, "on_save", note)
    options: dict[str, Any] = {"max_steps": 2, "bf16": True, "max_length": "base", "progress": False}
    simlte_st.train(documents, tmp_path / "m", base=str(encoder_path), **options)
    assert seen == [False]
    assert is_fused(get_encoder(SentenceTransformer(str(tmp_path / "m"), device="cpu")))
