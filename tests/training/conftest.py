"""A stock Trainer on tiny models, for tests of callbacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from training_support import stock_trainer
from transformers import TrainerCallback

from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.training.batches import SeededBatchSampler


@pytest.fixture
def make_trainer(encoder_path: Path, documents: list[str], tmp_path: Path) -> Callable[..., SentenceTransformerTrainer]:
    def make(
        callbacks: Callable[[Any], list[TrainerCallback]],
        wrap: Callable[[Any], Any] = lambda loss: loss,
        **settings: Any,
    ) -> Any:
        torch.manual_seed(0)
        model = SentenceTransformer(str(encoder_path), device="cpu")
        loss = MultipleNegativesRankingMLMLoss(
            model, mlm_weight=settings.pop("mlm_weight", 1.0), seed=settings.pop("head_seed", 0)
        )
        if loss.masker is not None:
            loss.masker.seed = 0  # whatever the head's is
        loss = wrap(loss)
        sentences = [document.split(". ") for document in documents[:24]]
        options = {"max_steps": 4, "per_device_train_batch_size": 6, "learning_rate": 1e-3, "save_steps": 2}
        options |= {"logging_steps": 1, "batch_sampler": SeededBatchSampler, **settings}
        dataset = Dataset.from_dict(
            {"anchor": [row[0] for row in sentences], "positive": [row[5] for row in sentences]}
        )
        return stock_trainer(model, loss, dataset, tmp_path / "run", callbacks(loss), **options)

    return make
