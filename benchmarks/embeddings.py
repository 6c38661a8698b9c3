"""Shared parts of the comparisons of document embeddings: cells of a set, and tables.

A comparison judges rows, such as models, on sets of documents, with one cell for each set, row and seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sentence_transformers import SentenceTransformer

from benchmarks.bank.outcomes import FEW, FULL, INVERSE_L2, means, outcomes
from benchmarks.bank.sets import BankSet
from benchmarks.grid.work import Work
from benchmarks.readers import latent_rows, tfidf_rows
from benchmarks.records import TFIDF_INVERSE_L2, environments, make_parser, mean_deviation, percent
from simlte_st.models.loading import load_model
from simlte_st.reading.document import median_words
from simlte_st.words.sentences import tokenizer_counter

WORDS = TFIDF, LSA = "TF-IDF", "LSA"
"""Rows without a model."""

OUTCOMES = {FEW: "5 labels per class", FULL: "the labels of half of the documents"}
SIZES = {
    "documents": "documents", "judged": "evaluated", "classes": "classes", "words": "words (median)",
    "tokens": "tokens (median)",
}  # fmt: skip
"""Titles of the sizes of a set."""

Result = Mapping[str, Any]
"""Measurements by name."""

Judge = Callable[[str, int], Mapping[str, Result]]
"""Judges a row with a seed; returns results by row, because a training can also give other rows."""


def make_comparison_parser(
    doc: str | None, *options: str, sets: Sequence[str], rows: Sequence[str], **defaults: Any
) -> argparse.ArgumentParser:
    """Return a parser with the options of a comparison that trains models."""
    parser = make_parser(doc, *options, "--output", "--threads", "--work")
    parser.add_argument("--sets", nargs="+", choices=sets, default=list(sets), metavar="NAME")
    parser.add_argument("--rows", nargs="+", choices=rows, default=rows, metavar="NAME", help=", ".join(rows))
    parser.add_argument("--documents", type=int, metavar="N", help="further documents per set (default: %(default)s)")
    parser.add_argument("--held-out", type=int, metavar="N", help="evaluated documents per set (default: %(default)s)")
    parser.add_argument("--seeds", type=int, metavar="N", help="training runs (default: %(default)s)")
    parser.set_defaults(**defaults)
    return parser


def compare(work: Work, settings: Result, name: str, seeds: Mapping[str, int], judge: Judge) -> None:
    """Finish the cells of a set, with some number of seeds for each row."""
    for row, count in seeds.items():
        for seed in range(count):
            work.finish_aloud(f"cells/{name}/{row}/{seed}", settings, partial(judge, row, seed))


def finished_record(work: Work, settings: Result) -> dict[str, Any]:
    """Return all finished results, one for each set, row and seed."""
    cells = list(work.cells("cells/*/*/*"))
    return {
        "settings": settings,
        "sets": {path.stem: cell["result"] for path, cell in work.cells("lengths/*")},
        "results": [
            {"set": path.parts[1], "row": row, "seed": int(path.stem), **result}
            for path, cell in cells
            for row, result in cell["result"].items()
        ],
        "environments": environments(cell for _, cell in cells),
    }


def measure_sizes(data: BankSet, base: str) -> Result:
    """Return counts of documents and classes, and the median words and tokens of a document."""
    texts = [document.text for document in (*data.train, *data.held)]
    return {
        "documents": len(texts),
        "judged": len(data.held),
        "classes": len(set(data.labels)),
        "words": float(median_words(texts)),
        "tokens": float(np.median(tokenizer_counter(load_model(base).model.tokenizer)(texts))),
    }


def judge_words(data: BankSet, row: str, inverse_l2: float | None = INVERSE_L2) -> Result:
    """Evaluate TF-IDF of the evaluated documents, or an LSA fitted on all documents."""
    texts = [document.text for document in data.held]
    if row == TFIDF:
        return means(outcomes(data, tfidf_rows(texts), TFIDF_INVERSE_L2))
    vectors = latent_rows([*(document.text for document in data.train), *texts])[len(data.train) :]
    return means(outcomes(data, vectors, inverse_l2))


def judge_model(data: BankSet, model: SentenceTransformer, inverse_l2: float | None = INVERSE_L2) -> Result:
    """Evaluate a model; ``encoding`` is its CPU time in seconds."""
    texts, start = [document.text for document in data.held], time.process_time()
    vectors = model.encode_document(texts, batch_size=16, show_progress_bar=False)
    seconds = time.process_time() - start
    return {"encoding": seconds, **means(outcomes(data, np.asarray(vectors, dtype=np.float32), inverse_l2))}


def size_cells(record: Result, sets: Sequence[str]) -> pd.DataFrame:
    """Return the cells of the sizes of sets."""
    sizes = pd.DataFrame({name: record["sets"][name] for name in sets}).reindex(list(SIZES))
    return sizes.map("{:,.0f}".format, na_action="ignore").rename(SIZES)


def score_cells(
    record: Result, rows: Sequence[str], sets: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> dict[str, pd.DataFrame]:
    """Return the cells of each outcome by row and set: mean ± deviation over seeds, and its means over groups of sets.

    A mean needs all sets of its group. A star marks results that were copied from other pages.
    """
    results = pd.DataFrame(record["results"]).reindex(columns=["row", "set", "kept", *OUTCOMES])
    copies, tables = results.groupby(["row", "set"])["kept"].count().unstack(), {}
    for outcome, title in OUTCOMES.items():
        cells = results.pivot_table(outcome, "row", "set", aggfunc=mean_deviation).reindex(index=rows, columns=sets)
        cells = cells.mask(copies.reindex_like(cells) > 0, cells + "*")
        scores = set_means(results, outcome).reindex(index=rows, columns=sets)
        for group, names in groups.items():
            cells[group] = scores[names].mean(axis=1, skipna=False).map(percent)
        tables[title] = cells.rename_axis(None)
    return tables


def set_means(results: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """Return an outcome by row and set, as the mean over seeds."""
    return results.pivot_table(outcome, "row", "set")
