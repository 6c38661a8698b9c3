"""An index of static vectors whose first hits an encoder reads, beside an index of the encoder's own vectors.

    python -m benchmarks.index_rerank --shared SHARED_DATA --queries 300

The papers of AAN and PolitiFact's articles are in indices, as in ``benchmarks.index_links``: a paper is asked for
those that it cites, a tweet for its articles. One index has static vectors, and is asked with ``rerank=`` too; the
others have the encoder's vectors of the first tokens, and of chunks (``--tokens``). All are asked in the mode
``"hybrid"``.

Seconds are those of one core, processor time, and milliseconds are medians of a query: in an index that has kept
nothing of what the encoder has read, and in one that has all that the query needs.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.citation import ENGLISH
from benchmarks.grid.work import Work
from benchmarks.index_links import TFIDF, Collection, papers, tweets
from benchmarks.pages import document, explanation, write_results
from benchmarks.readers import readers
from benchmarks.records import difference, dtype_of, environment, make_parser
from simlte_st import Index
from simlte_st.evaluation import TfidfScores, bootstrap_interval
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.search.kept import TABLE

FIRST = 100
"""Hits of a query; MRR is of them."""

TIMED = 20
"""Queries that are timed in an index that has kept nothing."""


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--bf16")
    parser.add_argument("--static", default="simlte-static", help="static model (default: %(default)s)")
    parser.add_argument("--base", default=PACKAGED_BASE, help="encoder (default: %(default)s)")
    parser.add_argument("--tokens", type=int, metavar="N", help="that it reads in chunks of a text, in one more index")
    parser.add_argument("--queries", type=int, metavar="N", help="of each collection, drawn (default: all)")
    parser.add_argument("--work", type=Path, default=Path("index_rerank.work"), help="folder of indices and results")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    settings = {name: getattr(options, name) for name in ("tokens", "queries", "bf16")}
    settings |= {"static": Path(options.static).name, "base": Path(options.base).name}
    found = {}
    for number, collection in enumerate((papers(options.shared), tweets(options.shared))):
        work = Work(options.work / str(number), dtype_of(options.bf16))
        for name, make in systems(collection, options):
            work.finish_aloud(name, settings, make)
        found[collection.name] = {path.stem: cell["result"] for path, cell in work.cells("*")}
    write_results("index_rerank", {"settings": settings, "collections": found}, options.output)


def systems(collection: Collection, options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Name what is measured, and how."""
    dtype, static = dtype_of(options.bf16), Path(options.static).name
    folder = options.work / "indices" / collection.name.partition(",")[0]

    def fast() -> SentenceTransformer:
        return load_model(options.static).model

    yield TFIDF, lambda: lexical(collection, options)
    yield static, lambda: through_index(collection, folder / static, fast(), options)
    reader = load_model(options.base, dtype=dtype).model
    yield f"{static}, rerank", lambda: through_index(collection, folder / static, fast(), options, reader)
    truncated, chunks = readers(options.base, [], options.tokens or 1, dtype).items()
    for name, make in (truncated, chunks) if options.tokens else (truncated,):
        yield name, lambda name=name, make=make: through_index(collection, folder / name, make(), options)  # type: ignore[misc]


def lexical(collection: Collection, options: argparse.Namespace) -> dict[str, Any]:
    """Rank what can be found by TF-IDF."""
    began = time.process_time()
    scores = TfidfScores(collection.texts, **ENGLISH)
    seconds = time.process_time() - began
    pool = np.unique(collection.links[:, 1])
    found = {}
    for number in asking(collection, options.queries):
        order = np.argsort(-scores.rows(np.array([number]), pool)[0], kind="stable")
        found[number] = [each for each in pool[order].tolist() if each != number][:FIRST]
    return {"index_seconds": seconds, **quality(found, collection), "environment": environment()}


def through_index(
    collection: Collection,
    folder: Path,
    model: SentenceTransformer,
    options: argparse.Namespace,
    reader: SentenceTransformer | None = None,
) -> dict[str, Any]:
    """Index the documents, if they are not there, and ask."""
    began = time.process_time()
    index = Index.create(folder, model, exist_ok=True)
    added = index.add(collection.documents, batch_size=16).added
    record: dict[str, Any] = {"index_seconds": time.process_time() - began if added else None}
    numbers = asking(collection, options.queries)
    if reader is not None:
        record["first_milliseconds"] = median(milliseconds(folder, model, collection, numbers[:TIMED], reader))
    index = Index.open(folder, model)
    found = {number: ask(index, collection, number, reader) for number in numbers}
    again = [timed(lambda number=number: ask(index, collection, number, reader)) for number in numbers[:TIMED]]  # type: ignore[misc]
    return {
        **record,
        "milliseconds": median(again),
        **quality(found, collection),
        "environment": environment(dtype_of(options.bf16)),
    }


def milliseconds(
    folder: Path, model: SentenceTransformer, collection: Collection, numbers: list[int], reader: SentenceTransformer
) -> Iterator[float]:
    """Time queries, each in an index that has kept nothing."""
    ask(Index.open(folder, model), collection, numbers[0], reader)  # torch and LanceDB have begun
    for number in numbers:
        shutil.rmtree(folder / f"{TABLE}.lance", ignore_errors=True)
        index = Index.open(folder, model)
        ask(index, collection, number, None)
        yield timed(lambda index=index, number=number: ask(index, collection, number, reader))  # type: ignore[misc]


def timed(job: Callable[[], object]) -> float:
    """Return the milliseconds of one core that a job takes."""
    began = time.process_time()
    job()
    return 1000 * (time.process_time() - began)


def asking(collection: Collection, queries: int | None) -> list[int]:
    """Draw the numbers of those that ask."""
    every = np.unique(collection.links[:, 0])
    return np.random.default_rng(0).permutation(every)[:queries].tolist()


def ask(index: Index, collection: Collection, number: int, reader: SentenceTransformer | None) -> list[int]:
    """Return the numbers of the first hits."""
    return [int(hit.id) for hit in collection.ask(index, number, "hybrid", FIRST, reader)]


def quality(found: dict[int, list[int]], collection: Collection) -> dict[str, Any]:
    """Return recall among ten hits and the reciprocal rank of the first right one, in percent, for each query."""
    recall, ranks = [], []
    for number, hits in found.items():
        right = {*collection.links[collection.links[:, 0] == number, 1].tolist()}
        recall.append(100 * len(right.intersection(hits[:10])) / len(right))
        ranks.append(next((100 / rank for rank, hit in enumerate(hits, start=1) if hit in right), 0.0))
    return {"recall@10": recall, "mrr": ranks}


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    settings = record["settings"]
    own = f"{settings['base']}, truncated"
    blocks, machines = [], []
    for name, systems in record["collections"].items():
        rows = []
        seconds = {system: result["index_seconds"] for system, result in systems.items()}
        for system, result in sorted(systems.items(), key=lambda item: -np.mean(item[1]["recall@10"])):
            if system != TFIDF and result["environment"] not in machines:
                machines.append(result["environment"])
            recall, took = np.array(result["recall@10"]), seconds[system]
            took = took or seconds[system.removesuffix(", rerank")]
            beside = "" if system == own else difference(recall - np.array(systems[own]["recall@10"]))
            cells = [f"{result[key]:,.0f}" if result.get(key) else "" for key in ("first_milliseconds", "milliseconds")]
            numbers = [spread(result[key]) for key in ("recall@10", "mrr")]
            rows.append([system, *numbers, beside, f"{took:,.1f}", f"{seconds[own] / took:.1f}", *cells])
        blocks += [
            f"## {name}",
            f"{len(systems[own]['mrr']):,} ask; percent, with 95% intervals over those that ask. Differences (paired) "
            f"and ratios of seconds are to “{own}”.",
            markdown_table(
                ["index", "R@10", "MRR", "R@10, difference", "seconds", "times as fast", "ms, first", "ms, kept"], rows
            ),
        ]
    command = "python -m benchmarks.index_rerank --shared SHARED_DATA"
    command += f" --tokens {settings['tokens']}" if settings["tokens"] else ""
    command += f" --queries {settings['queries']}" if settings["queries"] else ""
    command += f" --static {settings['static']}" if settings["static"] != "simlte-static" else ""
    command += " --bf16" * settings["bf16"]
    title = "# An index in seconds, and what an encoder finds in it"
    return document(title, explanation(__doc__), *blocks, machines=machines, command=command)


def spread(values: list[float]) -> str:
    """Write a mean with its interval."""
    low, high = bootstrap_interval(values)
    return f"{np.mean(values):.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
