"""Labelled documents of a table, in parts, for benchmarks that train without the labels and probe with them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.datasets import load_benchmark
from simlte_st.data.document import Document
from simlte_st.evaluation.splits import split_by_label


def read_labelled(path: Path) -> dict[str, list[Document]]:
    """Read the documents that have text.

    Args:
        path: Parquet with ``text`` and ``label``, and ``split`` ("train" or "test") or else halves by class; or the
            name of a data set of the papers.

    Returns:
        Those of ``"train"`` and of ``"test"``, each with its row's number as its id.
    """
    table = pq.read_table(path) if path.exists() else load_benchmark(path.name).rows.data.table
    splits = table["split"].to_pylist() if "split" in table.column_names else ["all"] * len(table)
    parts: dict[str, list[Document]] = {"train": [], "test": [], "all": []}
    columns = (table[name].to_pylist() for name in ("text", "label"))
    for number, (text, label, split) in enumerate(zip(*columns, splits, strict=True)):
        if text.strip() and split in parts:
            parts[split].append(Document(str(number), text, label=str(label)))
    every = parts.pop("all")
    return dict(zip(("train", "test"), split_by_label(every, 0.5, seed=0), strict=True)) if every else parts
