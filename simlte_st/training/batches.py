"""Which batches a run has: the preset's choice, made into what the stock Trainer takes."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sentence_transformers import SentenceTransformer
from transformers import TrainerCallback

from simlte_st.compat import encoder_of
from simlte_st.data.pairs import PairDrawer
from simlte_st.training.batching import (
    ConfiguredBatchSampler,
    DocumentEmbeddings,
    EmbeddingRefreshCallback,
    SeededBatchSampler,
    SimilarBatchSampler,
    TokenBudgetBatchSampler,
)
from simlte_st.training.batching.token_rows import TokenRows, TokenViewLengths
from simlte_st.training.presets import Preset

logger = logging.getLogger(__name__)

REFRESH_TOKENS = 128
"""Tokens of a document that are read to find out which ones are alike: as many make batches as hard as
``benchmarks/results/batching_hardness.md`` says, and a pass over more costs a good part of an epoch."""


@dataclass(frozen=True)
class Batches:
    """How documents come to batches.

    Attributes:
        sampler: For ``batch_sampler=`` of the training arguments.
        size: Documents in a batch; for batches of tokens, on average.
        steps: Batches of an epoch.
        callbacks: What has to be told to the Trainer.
    """

    sampler: Callable[..., Any]
    size: int
    steps: int
    callbacks: list[TrainerCallback] = field(default_factory=list)


def make_batches(
    rows: TokenRows, model: SentenceTransformer, drawer: PairDrawer, preset: Preset, seed: int, progress: bool
) -> Batches:
    """Choose the documents of batches as the preset says.

    Args:
        rows: The documents.
        model: The model to train.
        drawer: What the collator draws with.
        preset: Its ``batching``, and what goes with that.
        seed: The run's seed.
        progress: Show progress bars.

    Raises:
        ConfigurationError: A budget of tokens that is too small.
        MissingExtraError: ``duplicates="near"`` without the library for it.
    """
    size = min(preset.batch_size, len(rows))
    if preset.batching == "tokens":
        assert preset.batch_tokens is not None  # the preset has checked it
        special = int(model.tokenizer.num_special_tokens_to_add(pair=False))
        sampler = ConfiguredBatchSampler(
            TokenBudgetBatchSampler,
            lengths=TokenViewLengths(rows, drawer, special),
            batch_tokens=preset.batch_tokens,
            packed=encoder_of(model).config.model_type == "simlte_longformer",
        )
        steps = len(sampler(rows, batch_size=size, drop_last=False, seed=seed))
        return Batches(sampler, max(1, round(len(rows) / steps)), steps)
    if preset.batching == "random" and preset.duplicates == "keep":
        return Batches(SeededBatchSampler, size, math.ceil(len(rows) / size))

    groups = None
    if preset.duplicates != "keep":
        copies = rows.duplicates(near=preset.duplicates == "near", seed=seed)
        logger.info("%s", copies.report.summary())
        groups = copies.groups if copies.report.groups else None
    if preset.batching == "random":
        sampler = ConfiguredBatchSampler(SimilarBatchSampler, hardness=0.0, max_similarity=None, groups=groups)
        callbacks: list[TrainerCallback] = []
    else:
        embeddings = DocumentEmbeddings(len(rows))
        sampler = ConfiguredBatchSampler(
            SimilarBatchSampler, embeddings=embeddings, hardness=preset.hardness, groups=groups
        )
        callbacks = [
            EmbeddingRefreshCallback(model, rows, embeddings, max_seq_length=REFRESH_TOKENS, progress=progress)
        ]
    steps = len(sampler(rows, batch_size=size, drop_last=False, seed=seed))
    return Batches(sampler, size, steps, callbacks)
