"""The Trainer of a run: its arguments, its batches, and what its checkpoints tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from transformers import TrainerCallback

import simlte_st
from simlte_st.compat import encoder_of, is_fused
from simlte_st.training import TrainConfig
from simlte_st.training import fit as fitting
from simlte_st.training.fit import MOST_TOKENS, faster_attention, fit, training_arguments
from simlte_st.training.load_corpus import load_corpus
from simlte_st.training.load_model import load_model
from simlte_st.training.run import TrainingRun


def begin(base: Path, documents: list[str], folder: Path, **settings: Any) -> TrainingRun:
    settings = {"base": base, "batch_size": 8, "held_out": 0.0, "bf16": False, "progress": False, **settings}
    run = TrainingRun(documents, folder / "model", TrainConfig.make(None, settings))
    with run.open():
        return load_corpus(load_model(run))


def test_arguments_follow_from_the_steps() -> None:
    arguments = training_arguments(Path("out"), batch_size=4, epochs=2, steps=100, learning_rate=1e-4, warmup=0.15)
    assert (arguments.warmup_steps, arguments.logging_steps, arguments.max_steps) == (15, 5, -1)
    assert (arguments.weight_decay, arguments.bf16, arguments.report_to) == (0.0, False, [])
    stopped = training_arguments(Path("out"), batch_size=4, epochs=2, steps=3, learning_rate=1e-4, max_steps=3)
    assert (stopped.max_steps, stopped.logging_steps, stopped.warmup_steps) == (3, 1, 0)


@pytest.mark.parametrize(
    ("told", "steps"),
    [({}, 5), ({"epochs": 1.0}, 2), ({"max_steps": 3}, 3), ({"steps": 1}, 1)],
    ids=["few documents", "epochs", "max_steps", "many documents"],
)
def test_a_preset_has_its_steps_however_many_the_documents(
    told: dict[str, Any], steps: int, encoder_path: Path, documents: list[str], tmp_path: Path
) -> None:
    assert fit(begin(encoder_path, documents[:16], tmp_path, **{"steps": 5, **told})).steps == steps


def test_the_trainer_is_stock_and_its_checkpoints_hold_no_document(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    original = fitting.make_trainer
    monkeypatch.setattr(fitting, "make_trainer", lambda *args: made.append(original(*args)) or made[-1])
    run = fit(begin(encoder_path, documents, tmp_path, max_steps=3))
    [trainer] = made
    assert type(trainer.data_collator) is SentenceTransformerDataCollator
    assert set(trainer.train_dataset[0]) == {"anchor", "positive"}
    assert run.steps == 3
    assert [line["step"] for line in run.log if "loss" in line] == [1, 2, 3]
    assert not run.model.training
    checkpoint = run.folder.checkpoint
    assert checkpoint is not None
    card = (checkpoint / "README.md").read_text()
    assert not any(sentence in card for text in documents for sentence in text.split(". "))
    assert "A long document ..." in card


@pytest.mark.parametrize(
    ("dtype", "length", "fused"),
    [
        (torch.bfloat16, 64, False),
        (torch.bfloat16, MOST_TOKENS, False),
        (torch.bfloat16, MOST_TOKENS + 1, True),
        (torch.bfloat16, None, True),
        (torch.float32, 64, True),
    ],
)
def test_only_short_views_in_bfloat16_are_attended_to_in_parts(
    model: SentenceTransformer, dtype: torch.dtype, length: int | None, fused: bool
) -> None:
    encoder = encoder_of(model)
    model.max_seq_length = length
    assert is_fused(encoder)
    with faster_attention(model, dtype):
        assert is_fused(encoder) is fused
    assert is_fused(encoder)


def test_gradients_are_those_of_fused_attention(model: SentenceTransformer) -> None:
    features = model.preprocess(["ba da " * 20, "ga", "ma na ba " * 9])
    model.eval()

    def gradients() -> torch.Tensor:
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(dict(features))["sentence_embedding"].float().square().sum().backward()
        return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])

    expected = gradients()
    with faster_attention(model, torch.bfloat16):
        found = gradients()
    assert not torch.equal(found, expected)
    assert torch.linalg.vector_norm(found - expected) < 0.02 * torch.linalg.vector_norm(expected)


def test_a_run_takes_it_and_its_model_does_not_keep_it(
    documents: list[str], encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    class Look(TrainerCallback):
        def on_step_begin(self, *arguments: object, model: SentenceTransformer, **options: object) -> None:
            seen.append(is_fused(encoder_of(model)))

    make = fitting.trainer_callbacks
    monkeypatch.setattr(fitting, "trainer_callbacks", lambda *arguments: [*make(*arguments), Look()])
    for bf16, name in ((True, "bfloat16"), (False, "float32")):
        simlte_st.train(documents, tmp_path / name, base=str(encoder_path), max_steps=2, bf16=bf16, progress=False)
        assert is_fused(encoder_of(SentenceTransformer(str(tmp_path / name), device="cpu")))
    assert seen == [False, False, True, True]
