"""Helpers for tests of the losses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor

from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.training.prepare_model import set_dropout

Columns = list[dict[str, Any]]
Results = dict[str, Tensor | None]
Scaling = Callable[[dict[str, Tensor]], Tensor]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"scale": 7.5},
    {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"},
    {"directions": ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")},
    {"hardness_mode": "in_batch_negatives", "hardness_strength": 3.0, "scale": 10.0},
    {"hardness_mode": "all_negatives", "hardness_strength": 2.0},
]
"""Sets of options for the stock loss."""


def cut(documents: list[str], rows: int = 6) -> tuple[list[str], ...]:
    """Make three columns of texts of varying lengths: two parts of a document and a hard negative."""
    sentences = [document.split(". ") for document in documents[: rows + 1]]
    return (
        [". ".join(row[: 1 + number % 3]) for number, row in enumerate(sentences[:rows])],
        [". ".join(row[3 : 5 + number % 2]) for number, row in enumerate(sentences[:rows])],
        [". ".join(row[6:8]) for row in sentences[1:]],
    )


def columns_of(model: SentenceTransformer, documents: list[str], columns: int = 2) -> Columns:
    return [model.preprocess(texts) for texts in cut(documents)[:columns]]


class Flattened(Transformer):
    """Accepts the tokens of all rows as one row, as Transformer does with flash attention."""

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        rows = features["input_ids"][0].split(features["cu_seq_lens_q"].diff().tolist())
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
        mask = ids >= 0
        padded = super().forward({"input_ids": ids.clamp(min=0), "attention_mask": mask.long()})
        features["token_embeddings"] = padded["token_embeddings"][mask].unsqueeze(0)
        return features


def mean_model(path: Path, kind: type[Transformer] = Transformer) -> SentenceTransformer:
    """Make a model with mean pooling in training mode, without dropout."""
    model = SentenceTransformer(modules=[kind(str(path)), Pooling(32, "mean")], device="cpu")
    set_dropout(model, 0.0)
    return model.train()


def flattening(path: Path) -> SentenceTransformer:
    """Make a model like ``mean_model`` for flattened columns."""
    return mean_model(path, Flattened)


def total(value: dict[str, Tensor] | Tensor) -> Tensor:
    return torch.stack(list(value.values())).sum() if isinstance(value, dict) else value


def gradients(module: torch.nn.Module) -> dict[str, Tensor | None]:
    return {name: value.grad for name, value in module.named_parameters()}


def compare(first: Results, second: Results, rtol: float, atol: float) -> None:
    """Compare values or gradients by name; None equals zeros."""
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        pair = [value for value in (tensor, second[name]) if value is not None]
        if len(pair) == 2:
            torch.testing.assert_close(*pair, rtol=rtol, atol=atol, msg=lambda text, name=name: f"{name}: {text}")
        assert len(pair) == 2 or not any(value.any() for value in pair), name


def first_batch(loss: Any) -> None:
    """Reset the batch counter so that the next batch is masked like the first one."""
    if hasattr(loss, "batches"):
        loss.batches.zero_()


def step(loss: Any, columns: Columns, scaling: Scaling = total) -> Results:
    """Return the values and the gradients of model and head for one step."""
    loss.model.zero_grad()
    first_batch(loss)
    torch.manual_seed(7)
    terms = loss(columns, None)
    scaling(terms).backward()
    values = {name: term.detach() for name, term in terms.items()}
    return {**values, **gradients(loss.model), **{f"head.{name}": g for name, g in gradients(loss.mlm_head).items()}}


def both(
    model: SentenceTransformer, columns: Columns, *, scaling: Scaling = total, mini_batch_size: int = 4, **options: Any
) -> tuple[Results, Results]:
    """Return the results of the plain and the cached loss."""
    plain = MultipleNegativesRankingMLMLoss(model, **options)
    cached = CachedMultipleNegativesRankingMLMLoss(model, mini_batch_size=mini_batch_size, **options)
    return step(plain, columns, scaling), step(cached, columns, scaling)
