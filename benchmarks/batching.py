"""How much of a batch is padding, by the way to make batches.

    python -m benchmarks.batching --data folder-or-file

Nothing is trained: the views of an epoch are drawn, and their tokens counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from benchmarks.records import environment, write_results
from simlte_st.data import DocSplitTransform, read_documents
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training.batching import SeededBatchSampler, TokenBudgetBatchSampler, ViewLengths, measure_padding

LENGTHS = (256, 512)
"""Tokens a view."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="any source of documents")
    parser.add_argument("--documents", type=int, help="use no more than so many (default: all)")
    arguments = parser.parse_args(argv)
    name = Path(arguments.data).name
    model = load_model(PACKAGED_BASE).model
    corpus = DocSplitTransform(model=model).attach(read_documents(arguments.data, limit=arguments.documents))
    rows = padding_rows(corpus, model)
    table = markdown_table(list(rows[0]), [[shown(value) for value in row.values()] for row in rows])
    text = ["# Padding", "", f"{name}, {len(corpus)} documents, DocSplit, all-MiniLM-L6-v2's tokens.", "", table, ""]
    text += [f"    python -m benchmarks.batching --data {name}", ""]
    record = {"documents": len(corpus), "environment": environment(), "rows": rows}
    write_results("batching_padding", text, record)


def shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


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


if __name__ == "__main__":
    main()
