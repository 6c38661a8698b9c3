"""An index of static vectors whose first hits an encoder reads, beside an index of the encoder's own vectors.

    python -m benchmarks.index_rerank --shared SHARED_DATA --queries 300

The papers of AAN are in an index, and each citing paper is a query document of ``link``, with a filter that leaves the
cited papers; PolitiFact's articles are in another, and each tweet is searched for. One index has static vectors, and is
asked with ``rerank=`` too; the other has the encoder's vectors of the first tokens. All are asked in the mode
``"hybrid"``. In percent, with 95% intervals over the queries; MRR is of the first 100 hits.

Seconds are those of one core, processor time, and milliseconds are medians of a query: in an index that has kept
nothing of what the encoder has read, and in one that has all that the query needs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.citation import ENGLISH, read
from benchmarks.grid.work import Work
from benchmarks.linking.data import load
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import difference, dtype_of, environment, make_parser
from simlte_st import Index
from simlte_st.data import Document
from simlte_st.evaluation import TfidfScores, bootstrap_interval
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.search import Hit

TFIDF = "TF-IDF"
FIRST = 100
"""Hits of a query; MRR is of them."""

TIMED = 20
"""Queries that are timed in an index that was just opened."""


@dataclass(frozen=True)
class Collection:
    """Documents of an index, and the queries to it.

    Attributes:
        name: Its name.
        documents: What is indexed.
        texts: All texts that links number.
        links: Rows of the number of a query and of the text that belongs to it, shape ``[n, 2]``.
        ask: Asks with a number, and perhaps with a model that reads the first hits.
    """

    name: str
    documents: list[Document]
    texts: list[str]
    links: np.ndarray
    ask: Callable[[Index, int, SentenceTransformer | None], list[Hit]]


def papers(shared: Path) -> Collection:
    """The papers of AAN; their numbers are their ids."""
    texts, links = read(shared / "aan_papers.parquet", shared / "aan_citations.parquet")
    cited = {*links[:, 1].tolist()}
    documents = [Document(str(number), text, metadata={"cited": number in cited}) for number, text in enumerate(texts)]

    def ask(index: Index, number: int, rerank: Any) -> list[Hit]:
        return index.link([str(number)], top_k=FIRST, where="cited", mode="hybrid", rerank=rerank)

    return Collection("AAN, papers to the papers they cite", documents, texts, links, ask)


def tweets(shared: Path) -> Collection:
    """Tweets, and PolitiFact's articles after them."""
    data = load(shared)
    first = len(data.posts)
    documents = [Document(str(first + row), article) for row, article in enumerate(data.articles)]

    def ask(index: Index, number: int, rerank: Any) -> list[Hit]:
        return index.search(data.posts[number], top_k=FIRST, mode="hybrid", rerank=rerank)

    texts = [*data.posts, *data.articles]
    return Collection("PolitiFact, tweets to articles", documents, texts, data.links + np.array([0, first]), ask)


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--bf16")
    parser.add_argument("--static", default="simlte-static", help="static model (default: %(default)s)")
    parser.add_argument("--base", default=PACKAGED_BASE, help="encoder (default: %(default)s)")
    parser.add_argument("--queries", type=int, metavar="N", help="of each collection, drawn (default: all)")
    parser.add_argument("--work", type=Path, default=Path("index_rerank.work"), help="folder of indices and results")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    settings = {name: getattr(options, name) for name in ("queries", "bf16")}
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
    own = f"{Path(options.base).name}, truncated"
    yield own, lambda: through_index(collection, folder / own, reader, options)


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
    """Time queries, each in an index that was just opened."""
    ask(Index.open(folder, model), collection, numbers[0], reader)  # torch and LanceDB have begun
    for number in numbers:
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
    return [int(hit.id) for hit in collection.ask(index, number, reader)]


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
    blocks: list[str] = []
    for name, systems in record["collections"].items():
        seconds = {system: result["index_seconds"] for system, result in systems.items()}
        rows = []
        for system, result in sorted(systems.items(), key=lambda item: -np.mean(item[1]["recall@10"])):
            recall = np.array(result["recall@10"])
            took = seconds[system] or seconds[system.removesuffix(", rerank")]
            rows.append(
                {
                    "index": system,
                    "R@10": spread(recall),
                    "MRR": spread(result["mrr"]),
                    "R@10, difference": ""
                    if system == own
                    else difference(recall - np.array(systems[own]["recall@10"])),
                    "seconds": f"{took:,.1f}",
                    "times as fast": f"{seconds[own] / took:.1f}",
                    "ms, first": f"{result['first_milliseconds']:,.0f}" if "first_milliseconds" in result else "",
                    "ms, kept": f"{result['milliseconds']:,.0f}" if "milliseconds" in result else "",
                }
            )
        blocks += [
            f"## {name}",
            f"{len(systems[own]['mrr']):,} queries. Differences (paired) and ratios of seconds are to “{own}”.",
            table(rows),
        ]
    queries = f" --queries {settings['queries']}" * bool(settings["queries"])
    return document(
        "# An index in seconds, and what an encoder finds in it",
        explanation(__doc__),
        *blocks,
        machines=[systems[own]["environment"]],
        command=f"python -m benchmarks.index_rerank --shared SHARED_DATA{queries}{' --bf16' * settings['bf16']}",
    )


def spread(values: Any) -> str:
    """Write a mean with its interval."""
    low, high = bootstrap_interval(values)
    return f"{np.mean(values):.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
