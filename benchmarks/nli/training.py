"""The six rows of TA-SBERT's tables: build their models and train them on labelled sentence pairs."""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from torch.utils.data import BatchSampler
from transformers import set_seed
from transformers.trainer_pt_utils import get_length_grouped_indices

from benchmarks.nli.tasks import sample_table
from simlte_st.losses import ReconstructionLoss
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path
from simlte_st.modules import BaseForm, TokenAttention
from simlte_st.training import LossStateCallback
from simlte_st.training.fit import make_trainer, training_arguments

NLI = "snli_dev_test.parquet"
LABELS = ("entailment", "neutral", "contradiction")
BATCH = 16
WARMUP = 0.1
S_MAX = 128
"""Maximum number of tokens in a sentence, and the temperature of token attention."""

WEIGHT = 0.017
"""The paper's best weight of the reconstruction loss."""

HEAD_RATE = 1.5
"""Learning rate outside the encoder relative to the encoder's: 3e-5 / 2e-5 (section IV-A)."""


@dataclass(frozen=True)
class PaperRow:
    """The parts of TA-SBERT in one row of the tables.

    Attributes:
        form: Use base form conversion.
        attention: Use token attention in place of the mean.
        weight: Weight of the reconstruction loss; 0 for none.
    """

    form: bool = False
    attention: bool = False
    weight: float = 0.0


ROWS = {
    "none": PaperRow(),
    "+ form": PaperRow(form=True),
    "+ att": PaperRow(attention=True),
    "+ form + att": PaperRow(form=True, attention=True),
    "+ att + recon": PaperRow(attention=True, weight=WEIGHT),
    "+ form + att + recon": PaperRow(form=True, attention=True, weight=WEIGHT),
}
"""The rows of Tables 3 and 4, as the paper names them."""


@dataclass(frozen=True)
class InferencePairs:
    """Sentence pairs, with the indices of their labels in :data:`LABELS`."""

    first: list[str]
    second: list[str]
    labels: list[int]


def load_inference(folder: Path, limit: int | None) -> InferencePairs:
    """Read the development pairs; sample at most ``limit``."""
    table = pq.read_table(folder / NLI)
    table = sample_table(table.filter(pc.equal(table["split"], "dev")), limit)
    labels = [LABELS.index(label) for label in table["label"].to_pylist()]
    return InferencePairs(table["sentence1"].to_pylist(), table["sentence2"].to_pylist(), labels)


def make_model(base: str, row: PaperRow, seed: int = 0) -> SentenceTransformer:
    """Build a model from the base's encoder with mean pooling or token attention."""
    encoder = BaseForm if row.form else Transformer
    folder = packaged_base_path() if base == PACKAGED_BASE else base
    transformer = encoder(os.fspath(folder), max_seq_length=S_MAX, model_kwargs={"dtype": torch.float32})
    dimension = transformer.get_embedding_dimension()
    pooling = TokenAttention(dimension, S_MAX, seed=seed) if row.attention else Pooling(dimension, "mean")
    return SentenceTransformer(modules=OrderedDict(transformer=transformer, pooling=pooling), device="cpu")


def train_row(
    base: str, row: PaperRow, data: InferencePairs, seed: int, learning_rate: float, bf16: bool
) -> SentenceTransformer:
    """Train for one epoch with the softmax objective (Eq. 6) and the settings in section IV-A of the paper."""
    set_seed(seed)
    model = make_model(base, row, seed)
    softmax = SoftmaxLoss(model, model.get_embedding_dimension(), num_labels=len(LABELS))
    loss: nn.Module = ReconstructionLoss(softmax, row.weight, seed=seed) if row.weight else softmax
    dataset = Dataset.from_dict({"first": data.first, "second": data.second, "label": data.labels})
    with tempfile.TemporaryDirectory() as folder:
        arguments = training_arguments(
            Path(folder),
            batch_size=BATCH,
            epochs=1,
            steps=len(data.labels) // BATCH,
            learning_rate=learning_rate,
            warmup=WARMUP,
            bf16=bf16,
            seed=seed,
            save_strategy="no",
            batch_sampler=partial(by_length, data),
            learning_rate_mapping={r"^(?!(.*\.)?transformer\.)": HEAD_RATE * learning_rate},
        )
        callbacks = [LossStateCallback(loss)] if isinstance(loss, ReconstructionLoss) else []
        trainer = make_trainer(model, arguments, dataset, loss, callbacks)
        trainer.train()
    return model.eval()


def by_length(data: InferencePairs, *arguments: Any, seed: int, **options: Any) -> BatchSampler:
    """Batch pairs of similar length in random order; in other batches, nearly half of the tokens would be padding."""
    generator = torch.Generator().manual_seed(seed)
    lengths = [len(first) + len(second) for first, second in zip(data.first, data.second, strict=True)]
    order = get_length_grouped_indices(lengths, BATCH, generator=generator)
    batches = [order[start : start + BATCH] for start in range(0, len(order) - BATCH + 1, BATCH)]
    shuffled = [row for batch in torch.randperm(len(batches), generator=generator).tolist() for row in batches[batch]]
    return BatchSampler(shuffled, BATCH, drop_last=True)
