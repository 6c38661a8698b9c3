"""A run whose numbers are no numbers any more makes no model, and keeps what was good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from training_support import OPTIONS

from simlte_st import train
from simlte_st.errors import TrainingDiverged
from simlte_st.training import fit as fitting
from simlte_st.training.callbacks import check_weights, last_complete_checkpoint


def test_a_loss_that_is_no_number_stops_the_run(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    with pytest.raises(TrainingDiverged, match=r"step \d: loss is (nan|inf).*lower learning rate"):
        train(documents, tmp_path / "m", base=encoder_path, epochs=3, learning_rate=1e30, **OPTIONS)
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
