"""A run whose numbers are no numbers any more makes no model, and keeps what was good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from training_support import OPTIONS

from simlte_st import train
from simlte_st.errors import TrainingDiverged
from simlte_st.training import fit as fitting
from simlte_st.training.batching import SeededBatchSampler
from simlte_st.training.callbacks import last_complete_checkpoint
from simlte_st.training.divergence import check_embeddings, check_weights
from simlte_st.training.fit import Batches


def test_a_loss_that_is_no_number_stops_the_run(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    rows = [{"id": f"d{index}", "text": text} for index, text in enumerate(documents)]
    with pytest.raises(TrainingDiverged, match=r"step \d: .*loss.* (nan|inf).*lower learning rate") as caught:
        train(rows, tmp_path / "m", base=encoder_path, epochs=3, learning_rate=1e30, **OPTIONS)
    assert set(caught.value.documents) <= {row["id"] for row in rows}
    assert caught.value.documents[0] in str(caught.value)
    assert not (tmp_path / "m").exists()
    assert not (tmp_path / "m.trained").exists()


def test_the_last_good_checkpoint_is_kept(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Breaks(fitting.DivergenceCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 4:
                with torch.no_grad():
                    next(self.model.parameters())[0, 0] = float("nan")

    monkeypatch.setattr(fitting, "DivergenceCallback", Breaks)
    with pytest.raises(TrainingDiverged, match="after step 4, 1 of"):
        train(documents, tmp_path / "m", base=encoder_path, epochs=3, save_steps=1, **OPTIONS)
    checkpoint = last_complete_checkpoint(tmp_path / "m.run" / "checkpoints")
    assert checkpoint is not None
    assert checkpoint.name == "checkpoint-3"
    check_weights(SentenceTransformer(str(checkpoint), device="cpu"), "there")
    assert not (tmp_path / "m").exists()


def test_the_batch_of_a_step_is_found_again() -> None:
    dataset = Dataset.from_dict({"id": list(range(10))})
    batches = Batches(SeededBatchSampler, SeededBatchSampler(dataset, batch_size=4, drop_last=False, seed=5), 4)
    sampler = SeededBatchSampler(dataset, batch_size=4, drop_last=False, seed=5)
    step = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for rows in sampler:
            assert batches.rows_of(step) == rows
            step += 1
    assert step == 9


def test_a_model_that_only_its_vectors_give_away(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    """After such a step all weights are finite, and what they compute is not."""
    options: dict[str, Any] = {"learning_rate": 1e30, "warmup": 0.0, "max_steps": 1, "held_out": 0.0, "progress": False}
    with pytest.raises(TrainingDiverged, match=r"(not finite|all the same).*lower learning rate"):
        train(documents, tmp_path / "model", base=encoder_path, **options)
    assert not (tmp_path / "model").exists()


def test_embeddings_are_checked(model: SentenceTransformer) -> None:
    texts = ["ba bun", "cis ka bei"]
    check_embeddings(model, texts)
    check_embeddings(model, texts[:1])
    with torch.no_grad():
        model[0].auto_model.encoder.layer[-1].output.LayerNorm.weight.zero_()
    with pytest.raises(TrainingDiverged, match="2 documents are all the same"):
        check_embeddings(model, texts)
    with torch.no_grad():
        model[0].auto_model.encoder.layer[-1].output.LayerNorm.bias.fill_(3e38)
        model.append(Dense(32, 8).float())
    with pytest.raises(TrainingDiverged, match="embeddings are not finite"):
        check_embeddings(model, texts)
