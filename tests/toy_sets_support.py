"""Toy data sets named like the shared data, for benchmarks that read several sets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support import make_document

PAPERS = [make_document(number % 8, sentences=4) + " " + make_document(number, sentences=6) for number in range(24)]


def write_set(folder: Path, name: str, **columns: list[object]) -> None:
    """Write one set."""
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def write_toy_sets(folder: Path, sentences: int) -> None:
    """Write documents of two genres with the same first sentences, papers with citations, and scored sentence pairs."""
    folder.mkdir()
    rows: list[object] = [f"{make_document(row % 2, sentences=sentences)} {make_document(row)}" for row in range(80)]
    write_set(folder, "brown_genres", text=rows, label=["ab"[row % 2] for row in range(80)])
    write_set(folder, "aan_papers", id=[f"P{row}" for row in range(24)], text=[*PAPERS])
    links = [(row, (row + step) % 24) for row in range(24) for step in (8, 11)]
    write_set(folder, "aan_citations", citing=[f"P{a}" for a, _ in links], cited=[f"P{b}" for _, b in links])
    first = [make_document(row, sentences=1) for row in range(20)]
    second = [make_document(row + row % 3, sentences=1) for row in range(20)]
    scores = [float(2 - row % 3) for row in range(20)]
    write_set(folder, "stsb", sentence1=[*first], sentence2=[*second], score=[*scores], split=["test"] * 20)
