"""Contrastive Tension (Carlsson et al., ICLR 2021): two encoders tell pairs of equal and different texts apart."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer.losses import ContrastiveTensionDataLoader, ContrastiveTensionLoss
from torch.utils.data import SequentialSampler

from benchmarks.rivals.stock import RivalJob, prepare_rival, train_and_save
from simlte_st.data import DocSplitTransform
from simlte_st.errors import ConfigurationError, EmptyCorpusError
from simlte_st.views.corpus import from_rows

RATIO = 8
"""Pairs per positive pair, itself included: the paper's K = 7 negatives."""


@dataclass(frozen=True)
class TensionPairs:
    """Pairs of documents in training order.

    Attributes:
        first: Row of the first document of each pair, int64.
        second: Row of the second document, the same as ``first`` in a positive pair.
        label: 1 for a positive pair, 0 for a negative pair.
        turn: Number of the pass over the documents in which the pair was drawn, from 0.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    label: NDArray[np.int64]
    turn: NDArray[np.int64]


def draw_pairs(documents: int, steps: int, batch_size: int, seed: int) -> TensionPairs:
    """Draw the pairs of a run with sentence-transformers' data loader, pass after pass."""
    if batch_size % RATIO:
        raise ConfigurationError(f"batch_size={batch_size}: Contrastive Tension needs a multiple of {RATIO}.")
    needed = 2 * batch_size - batch_size // RATIO
    if documents < needed:
        raise EmptyCorpusError(
            f"{documents} usable documents, but a batch of {batch_size} pairs needs {needed}. Use a smaller batch_size."
        )
    # The loader uses Python's global generator, whose state is restored afterwards.
    numbers = list(range(documents))
    loader = ContrastiveTensionDataLoader(numbers, batch_size, pos_neg_ratio=RATIO)  # type: ignore[no-untyped-call]
    state = random.getstate()
    random.seed(seed)
    rows: list[tuple[int, int, int, int]] = []
    turn = 0
    try:
        while len(rows) < steps * batch_size:
            rows.extend((*example.texts, example.label, turn) for batch in loader for example in batch)
            turn += 1
    finally:
        random.setstate(state)
    first, second, label, turns = np.array(rows[: steps * batch_size], dtype=np.int64).T
    return TensionPairs(first, second, label, turns)


class InOrderBatchSampler(DefaultBatchSampler):
    """Batches of rows in order; the pairs are already drawn with equal shares of positives per batch."""

    def __init__(self, dataset: Dataset, *args: Any, **kwargs: Any) -> None:
        super().__init__(dataset, *args, **kwargs)
        self.sampler: SequentialSampler = SequentialSampler(dataset)


@dataclass(frozen=True)
class TensionTexts:
    """Dataset transform from pairs of row numbers to pairs of texts."""

    corpus: Dataset
    views: DocSplitTransform

    def __call__(self, pairs: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        """Return the texts of a batch of pairs with the columns of :class:`TensionPairs`."""
        sides = {name: list(map(self._text, pairs[name], pairs["turn"])) for name in ("first", "second")}
        return {**sides, "label": list(pairs["label"])}

    def _text(self, document: int, turn: int) -> str:
        [views] = self.views.draw(from_rows(self.corpus[[document]]), turn)
        return views.anchor


def train_contrastive_tension(job: RivalJob) -> None:
    """Train with the paper's objective, ``ContrastiveTensionLoss``.

    Two copies of the encoder read one text of a pair each. The loss is the binary cross-entropy of the dot product,
    with seven pairs of different texts for each pair of equal texts. (sentence-transformers' variant with in-batch
    negatives and a temperature is not the paper's.) The second text's encoder, ``model2`` of the loss, is the result.
    A pair takes two passes and counts as one document of the budget.

    The common budget replaces the paper's schedule (RMSProp, learning rate falling from 1e-5 to 2e-6).
    """
    prepared = prepare_rival(job)
    pairs = draw_pairs(len(prepared.corpus), job.steps, job.preset.batch_size, job.seed)
    texts = TensionTexts(prepared.corpus, prepared.loaded.views)
    dataset = Dataset.from_dict(vars(pairs)).with_transform(texts)
    train_and_save(job, prepared, ContrastiveTensionLoss(prepared.trained), dataset, InOrderBatchSampler)
