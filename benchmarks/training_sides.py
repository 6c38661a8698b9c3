"""The sides of ``benchmarks.training``: what makes a training step on either of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.token_cache import tokenize_corpus
from simlte_st.training.batching.token_rows import TokenRows, TokenViewLengths
from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling

from simlte_st.compat import quiet_transformers, view_budget
from simlte_st.data import Document, PunktSegmenter, SegmentedDocument, TokenCollator, TokenPreprocessor
from simlte_st.data.views import DocSplit, draw_views
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path
from simlte_st.training.batching import TokenBudgetBatchSampler
from simlte_st.training.dropout import set_dropout


class Step:
    """A training step of a side.

    Args:
        batches: Batches without end, each a list of columns.
        loss: Gives the loss of a batch.
        model: What is trained.

    Attributes:
        tokens: Tokens of their views, padding not counted.
        outside: Seconds spent on making batches.
        seconds: Seconds of all steps.
    """

    def __init__(self, batches: Iterator[Any], loss: Callable[[Any], Any], model: torch.nn.Module) -> None:
        self.batches, self.loss = batches, loss
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
        for parameter in model.parameters():  # so that the optimizer's state is there before anything is measured
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad()
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
        self.loss(columns).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.seconds += time.perf_counter() - began
        self.outside += made - began
        self.tokens += sum(int(column["attention_mask"].sum()) for column in columns)


def obvious(documents: list[SegmentedDocument], length: int, batch_size: int, dropout: float | None = None) -> Step:
    """What a user would put together today: stock losses on texts that are tokenized in the loop, all logits.

    Args:
        documents: The documents, in sentences: segmenting them is not counted, to this side's favour.
        length: Tokens a view may have.
        batch_size: Documents of a batch.
        dropout: Dropout of the encoder; None leaves it as the checkpoint has it.
    """
    model = plain_model(length)
    with quiet_transformers():
        masked_lm = AutoModelForMaskedLM.from_pretrained(packaged_base_path())
    masked_lm.bert = model[0].auto_model
    masked_lm.tie_weights()
    masked_lm.train()
    if dropout is not None:
        set_dropout(model, dropout)
    contrastive = MultipleNegativesRankingLoss(model)
    mask = DataCollatorForLanguageModeling(model.tokenizer, mlm_probability=0.15)
    budget = view_budget(model)

    def batches() -> Iterator[Any]:
        generator = torch.Generator().manual_seed(0)
        while True:
            order = torch.randperm(len(documents), generator=generator).tolist()
            for start in range(0, len(order) - batch_size + 1, batch_size):
                chosen = [documents[number] for number in order[start : start + batch_size]]
                pairs = [draw_views(document, DocSplit(), budget=budget) for document in chosen]
                yield [
                    model.preprocess([getattr(pair, name) for pair in pairs if pair is not None])
                    for name in ("anchor", "positive")
                ]

    def loss(columns: Any) -> Any:
        total = contrastive([dict(column) for column in columns], None)
        for column in columns:
            ids, labels = mask.torch_mask_tokens(column["input_ids"].clone())
            masked = masked_lm(input_ids=ids, attention_mask=column["attention_mask"], labels=labels)
            total = total + 0.1 / len(columns) * masked.loss
        return total

    return Step(batches(), loss, masked_lm)


def ours(
    documents: list[SegmentedDocument],
    length: int,
    batch_size: int,
    mlm_share: float = 1.0,
    mini_batch_tokens: int | None = None,
    exactly: bool = False,
) -> Step:
    """This package: token-level views, both in one pass, logits at masked positions, batches of like lengths.

    Args:
        documents: The documents, in sentences.
        length: Tokens a view may have.
        batch_size: Documents of a batch; batches by tokens have so many on average.
        mlm_share: Share of the views that the MLM pass sees.
        mini_batch_tokens: Tokens that pass through the model at a time, by gradient caching; None for all.
        exactly: Take random batches of exactly so many documents, instead of batches by tokens.
    """
    model = plain_model(length)
    set_dropout(model, 0.0)
    rows, drawer = tokenized(documents, model, tempfile.mkdtemp())
    corpus = rows.corpus
    collator = TokenCollator(preprocess_fn=TokenPreprocessor(model), corpus=corpus, drawer=drawer)
    dataset = corpus.dataset(rows.rows)
    combined: CachedMultipleNegativesRankingMLMLoss | MultipleNegativesRankingMLMLoss
    if mini_batch_tokens is None:
        combined = MultipleNegativesRankingMLMLoss(model, mlm_share=mlm_share)
    else:
        combined = CachedMultipleNegativesRankingMLMLoss(
            model, mini_batch_num_tokens=mini_batch_tokens, mlm_share=mlm_share
        )

    def numbers() -> Iterator[Any]:
        if exactly:
            for epoch in count():
                order = np.random.default_rng(epoch).permutation(len(rows))
                yield from (order[at : at + batch_size] for at in range(0, len(order) - batch_size + 1, batch_size))
        lengths = TokenViewLengths(rows, drawer)
        mean = float(lengths(0).sum()) / len(rows)
        # An eighth for the padding that is left: the batches then have batch_size documents on average.
        budget = max(6 * length, int(1.125 * mean * batch_size))  # three of the longest at least
        sampler = TokenBudgetBatchSampler(rows, batch_size, False, lengths=lengths, batch_tokens=budget, seed=0)
        for epoch in count():
            sampler.set_epoch(epoch)
            yield from sampler

    def batches() -> Iterator[Any]:
        for batch in numbers():
            yield _columns(collator([dataset[int(number)] for number in batch]))

    def loss(columns: Any) -> torch.Tensor:
        terms = combined(columns, None)
        assert isinstance(terms, dict)
        return torch.stack(list(terms.values())).sum()

    return Step(batches(), loss, torch.nn.ModuleList([model, combined]))


SIDES: dict[str, Callable[[list[SegmentedDocument], int, int], Step]] = {
    "obvious": obvious,
    "obvious, no dropout": partial(obvious, dropout=0.0),
    "simlte_st, every view masked": ours,
    "simlte_st": partial(ours, mlm_share=0.25),
    "simlte_st, mini-batches": partial(ours, mlm_share=0.25, mini_batch_tokens=4096),
}
"""How each side is set up, by name."""


def tokenized(
    documents: Iterable[SegmentedDocument], model: SentenceTransformer, directory: str
) -> tuple[TokenRows, PairDrawer]:
    """Tokenize documents for a model; gives those that make two views, and what draws them."""
    texts = [Document(document.id, " ".join(document.sentences)) for document in documents]
    corpus = tokenize_corpus(texts, model.tokenizer, segmenter=segmenter(texts), directory=directory)
    return TokenRows(corpus, corpus.usable(DocSplit())[0]), PairDrawer(DocSplit(), 0, view_budget(model))


def segmenter(documents: Iterable[Document]) -> PunktSegmenter:
    """Give the segmenter that is installed, else one learned from the documents."""
    return PunktSegmenter.installed() or PunktSegmenter.learn(document.text for document in documents)


def plain_model(length: int) -> SentenceTransformer:
    """Load the model that all sides train, in training mode."""
    torch.manual_seed(0)
    model = load_model(PACKAGED_BASE, max_seq_length=length, dtype=torch.float32).model
    return model.train()


def _columns(features: dict[str, Any]) -> list[dict[str, Any]]:
    """Part a batch into its columns, as the Trainer does."""
    return [
        {key.removeprefix(f"{name}_"): value for key, value in features.items() if key.startswith(f"{name}_")}
        for name in ("anchor", "positive")
    ]
