"""The sides of ``benchmarks.training``: what makes a training step on either of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import batch_to_device
from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling

from benchmarks.timing import TrainingStep, columns_of
from simlte_st.compat import quiet_transformers
from simlte_st.data import DocSplitTransform
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path
from simlte_st.training.batching import SeededBatchSampler
from simlte_st.training.dropout import set_dropout


class Side:
    """A side: its batches, and its training step on each.

    Attributes:
        tokens: Tokens of their views, padding not counted.
        outside: Seconds spent on making batches.
        seconds: Seconds of all steps.
    """

    def __init__(self, batches: Iterator[Any], step: TrainingStep) -> None:
        self.batches, self.step = batches, step
        self.forget()

    def forget(self) -> None:
        """Forget what was counted."""
        self.tokens = 0
        self.outside = self.seconds = 0.0

    def __call__(self) -> None:
        """Train on the next batch."""
        began = time.perf_counter()
        columns = next(self.batches)
        made = time.perf_counter()
        self.step(columns)
        self.seconds += time.perf_counter() - began
        self.outside += made - began
        self.tokens += sum(int(column["attention_mask"].sum()) for column in columns)


def obvious(corpus: Dataset, length: int, batch_size: int, bf16: bool = False, dropout: float | None = None) -> Side:
    """What a user would put together today: stock losses, all logits, random batches."""
    model = plain_model(length)
    with quiet_transformers():
        masked_lm = AutoModelForMaskedLM.from_pretrained(packaged_base_path())
    masked_lm.bert = model[0].auto_model
    masked_lm.tie_weights()
    masked_lm.to(model.device).train()
    if dropout is not None:
        set_dropout(model, dropout)
    contrastive = MultipleNegativesRankingLoss(model)
    mask = DataCollatorForLanguageModeling(model.tokenizer, mlm_probability=0.15)

    def loss(columns: Any, labels: None) -> Any:
        total = contrastive([dict(column) for column in columns], labels)
        for column in columns:
            ids, wanted = mask.torch_mask_tokens(column["input_ids"].cpu().clone())  # it draws there
            batch = {"input_ids": ids, "attention_mask": column["attention_mask"], "labels": wanted}
            masked = masked_lm(**batch_to_device(batch, model.device))
            total = total + 0.1 / len(columns) * masked.loss
        return total

    sampler = SeededBatchSampler(corpus, min(batch_size, len(corpus)), True)
    return Side(batches(corpus, model, sampler), TrainingStep(masked_lm, loss, bf16))


def ours(
    corpus: Dataset,
    length: int,
    batch_size: int,
    bf16: bool = False,
    mini_batch_num_tokens: int | None = None,
) -> Side:
    """This package: both views in one pass, logits at masked positions."""
    model = plain_model(length)
    set_dropout(model, 0.0)
    loss: CachedMultipleNegativesRankingMLMLoss | MultipleNegativesRankingMLMLoss
    if mini_batch_num_tokens is None:
        loss = MultipleNegativesRankingMLMLoss(model)
    else:
        loss = CachedMultipleNegativesRankingMLMLoss(model, mini_batch_num_tokens=mini_batch_num_tokens)
    sampler = SeededBatchSampler(corpus, min(batch_size, len(corpus)), True)
    return Side(batches(corpus, model, sampler), TrainingStep(torch.nn.ModuleList([model, loss]), loss, bf16))


SIDES: dict[str, Callable[..., Side]] = {
    "obvious": obvious,
    "obvious, no dropout": partial(obvious, dropout=0.0),
    "simlte_st": ours,
    "simlte_st, mini-batches": partial(ours, mini_batch_num_tokens=4096),
}
"""How each side is set up, by name."""


def batches(corpus: Dataset, model: SentenceTransformer, sampler: SeededBatchSampler) -> Iterator[list[dict[str, Any]]]:
    """Draw views and tokenize them, as the Trainer does, epoch after epoch."""
    views = DocSplitTransform(model=model)
    views.callback.connect()  # every pass here is the first epoch
    dataset = corpus.with_transform(views)
    collator = SentenceTransformerDataCollator(preprocess_fn=model.preprocess)
    for views.callback.epoch in count():
        sampler.set_epoch(views.callback.epoch)
        for rows in sampler:
            yield columns_of(collator(dataset.__getitems__([int(row) for row in rows])))


def plain_model(length: int | None = None) -> SentenceTransformer:
    """Load the model that all sides train, in training mode."""
    torch.manual_seed(0)
    return load_model(PACKAGED_BASE, max_seq_length=length, dtype=torch.float32).model.train()
