"""What the ways to make batches do: how much is padding, and how hard the negatives are.

    python -m benchmarks.batching padding --data folder-or-file
    python -m benchmarks.batching hardness --data folder-or-file

Nothing is trained. ``padding`` draws the views of an epoch and counts tokens; ``hardness`` embeds both views of each
document with the base model and gives the contrastive loss (tau = 0.05) that batches would begin with, and how often
documents that share a batch share one in the next epoch.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset

from benchmarks.records import add_bf16, dtype_of, environment, write_results
from simlte_st.data import DocSplitTransform, read_documents
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training.batching import (
    DocumentEmbeddings,
    SeededBatchSampler,
    SimilarBatchSampler,
    TokenBudgetBatchSampler,
    ViewLengths,
    measure_padding,
)

Batches = Sequence[np.ndarray]
LENGTHS = (256, 512)
"""Tokens a view, for the padding."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["padding", "hardness"])
    parser.add_argument("--data", required=True, help="any source of documents")
    parser.add_argument("--documents", type=int, help="use no more than so many; default: all for padding, else 2,600")
    add_bf16(parser)
    arguments = parser.parse_args(argv)
    name, dtype = Path(arguments.data).name, dtype_of(arguments.bf16)
    model = load_model(PACKAGED_BASE, max_seq_length=64, dtype=dtype).model
    views = DocSplitTransform(model=model)
    limit = arguments.documents or (2_600 if arguments.part == "hardness" else None)
    corpus = views.attach(read_documents(arguments.data, limit=limit))
    rows = padding_rows(corpus, model) if arguments.part == "padding" else hardness_rows(corpus, model, views)
    table = markdown_table(list(rows[0]), [[shown(value) for value in row.values()] for row in rows])
    what = {"padding": "Padding", "hardness": "How hard batches are"}[arguments.part]
    text = [f"# {what}", "", f"{name}, {len(corpus)} documents, DocSplit, all-MiniLM-L6-v2's tokens.", "", table, ""]
    text += [f"    python -m benchmarks.batching {arguments.part} --data {name}", ""]
    record = {"documents": len(corpus), "environment": environment(dtype), "rows": rows}
    write_results(f"batching_{arguments.part}", text, record)


def shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


# Padding.


def padding_rows(corpus: Dataset, model: Any) -> list[dict[str, Any]]:
    rows = []
    for tokens in LENGTHS:
        model.max_seq_length = tokens
        lengths = ViewLengths(corpus, DocSplitTransform(model=model))(0)
        halves = np.array([min(sum(row) // 2 + 2, tokens) for row in corpus.with_format(None)["tokens"][:]])
        ways: dict[str, Any] = {
            "random, 32": SeededBatchSampler(corpus, 32, False),
            "tokens, half of each document": by_tokens(corpus, np.stack([halves, halves], axis=1)),
            **{f"tokens, ratio {ratio}": by_tokens(corpus, lengths, ratio=ratio) for ratio in (1.1, 1.25, 1.5, 2.0)},
            "tokens, packed": by_tokens(corpus, lengths, packed=True),
        }
        for way, sampler in ways.items():
            batches = list(sampler)
            padding = measure_padding(batches, lengths, packed="packed" in way)
            rows.append(
                {
                    "tokens a view": tokens,
                    "batches": way,
                    "number": len(batches),
                    "smallest": min(map(len, batches)),
                    "largest": max(map(len, batches)),
                    "most tokens": padding.largest,
                    "padding": padding.share,
                    "found by length / chance": found_by_length(batches, lengths),
                }
            )
    return rows


def by_tokens(corpus: Dataset, lengths: np.ndarray, **settings: Any) -> TokenBudgetBatchSampler:
    return TokenBudgetBatchSampler(corpus, 1, False, lengths=lengths, batch_tokens=16_384, **settings)


def found_by_length(batches: Sequence[Sequence[int]], lengths: np.ndarray) -> float:
    """How often the view most similar in length is the right one, in terms of chance."""
    rng = np.random.default_rng(0)
    right = 0
    for batch in batches:
        first, second = lengths[batch].T
        distances = abs(first[:, None] - second[None]) + rng.random((len(batch), len(batch))) / 2
        right += int((distances.argmin(axis=1) == np.arange(len(batch))).sum())
    return right / len(batches)


# Hardness.


def hardness_rows(corpus: Dataset, model: Any, views: DocSplitTransform) -> list[dict[str, Any]]:
    pairs = views.draw(corpus.with_format(None)[:])
    texts = [text for pair in pairs for text in (pair.anchor, pair.positive)]
    vectors = model.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=True)
    first, second = vectors[::2], vectors[1::2]
    embeddings = DocumentEmbeddings(len(corpus))
    embeddings.update(first + second)
    assert embeddings.codes is not None
    similarity = embeddings.codes.astype(np.float32) @ embeddings.codes.astype(np.float32).T
    rows = []
    for size in (32, 128):
        ways: dict[str, Any] = {"random": lambda epoch, size=size: plan(corpus, size, embeddings, 0.0, epoch)}
        for hardness in (0.125, 0.25, 0.5, 1.0):
            ways[f"similar, hardness {hardness}"] = lambda epoch, size=size, hardness=hardness: plan(
                corpus, size, embeddings, hardness, epoch
            )
        ways["nearest neighbours in turn"] = lambda epoch, size=size: nearest_in_turn(similarity, size, epoch)
        for way, batches_of in ways.items():
            epochs = [batches_of(epoch) for epoch in range(3)]
            rows.append(
                {
                    "batch": size,
                    "batches": way,
                    "loss": float(np.mean([loss(batches, first, second) for batches in epochs])),
                    "pairs again in the next epoch": again(epochs[0], epochs[1], len(corpus)),
                }
            )
    return rows


def plan(corpus: Dataset, size: int, embeddings: DocumentEmbeddings, hardness: float, epoch: int) -> Batches:
    return SimilarBatchSampler(corpus, size, False, embeddings=embeddings, hardness=hardness).plan(epoch)


def nearest_in_turn(similarity: np.ndarray, size: int, epoch: int) -> Batches:
    """The obvious rival: a random document and its nearest that are left, until none are."""
    left = np.ones(len(similarity), dtype=bool)
    batches = []
    for row in np.random.default_rng(epoch).permutation(len(similarity)):
        if left[row]:
            order = np.argsort(-np.where(left, similarity[row], -np.inf), kind="stable")
            batches.append(order[: min(size, int(left.sum()))])
            left[batches[-1]] = False
    return batches


def loss(batches: Batches, first: np.ndarray, second: np.ndarray) -> float:
    values = []
    for batch in batches:
        scores = 20 * torch.from_numpy(first[batch] @ second[batch].T)
        values.append(torch.nn.functional.cross_entropy(scores, torch.arange(len(batch)), reduction="none"))
    return float(torch.cat(values).mean())


def again(one: Batches, other: Batches, documents: int) -> float:
    places = []
    for batches in (one, other):
        place = np.zeros(documents, dtype=int)
        for number, batch in enumerate(batches):
            place[batch] = number
        together = place[:, None] == place[None]
        np.fill_diagonal(together, False)
        places.append(together)
    return float((places[0] & places[1]).sum() / places[0].sum())


if __name__ == "__main__":
    main()
