from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from training_support import stock_trainer
from transformers import TrainerCallback

from simlte_st.data import DocSplit, DocSplitTransform, write_corpus
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.training.dropout import set_dropout


@pytest.fixture(scope="session")
def corpus(documents: list[str], encoder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The 48 documents and 5 longer ones, segmented, with the tiny model's tokens."""
    texts = [*documents, *(" ".join(documents[start : start + 3]) for start in range(0, 15, 3))]
    count = tokenizer_counter(SentenceTransformer(str(encoder_path), device="cpu").tokenizer)
    folder = tmp_path_factory.mktemp("corpus")
    return write_corpus(texts, folder, view=DocSplit(), count_tokens=count)[0]


class RecordingTransform(DocSplitTransform):
    """Notes the documents of the batches that come by."""

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
        self.batches.append(list(batch["id"]))  # type: ignore[attr-defined]
        return super().__call__(batch)


Train = Callable[..., tuple[SentenceTransformerTrainer, list[list[str]]]]


@pytest.fixture
def train(encoder_path: Path, corpus: Dataset, tmp_path: Path) -> Train:
    """Train the tiny model on the corpus; gives the trainer and the ids of the documents of each batch."""

    def run(
        make: Callable[[SentenceTransformer, DocSplitTransform], tuple[Any, list[TrainerCallback]]],
        resume: int | None = None,
        **settings: Any,
    ) -> tuple[SentenceTransformerTrainer, list[list[str]]]:
        torch.manual_seed(0)
        model = SentenceTransformer(str(encoder_path), device="cpu")
        set_dropout(model, 0.1)
        views = RecordingTransform(model=model)
        sampler, callbacks = make(model, views)
        batches: list[list[str]] = []
        views.batches = batches  # type: ignore[attr-defined]
        options = {"num_train_epochs": 3, "per_device_train_batch_size": 8, "learning_rate": 3e-3, "save_steps": 5}
        options |= {"batch_sampler": sampler, **settings}
        loss, dataset = MultipleNegativesRankingLoss(model), corpus.with_transform(views)
        trainer = stock_trainer(model, loss, dataset, tmp_path / "run", [views.callback, *callbacks], **options)
        batches.clear()  # the Trainer may look at some for its model card
        checkpoint = None if resume is None else str(tmp_path / "run" / f"checkpoint-{resume}")
        trainer.train(resume_from_checkpoint=checkpoint)
        return trainer, batches

    return run
