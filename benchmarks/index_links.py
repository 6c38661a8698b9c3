"""What an index finds: the papers that a paper cites, and the fact checks that a tweet belongs to.

    python -m benchmarks.index_links --shared SHARED_DATA
    python -m benchmarks.index_links --shared SHARED_DATA --model docsplit-aan --tokens 1024

As a user would do it: the papers of AAN are in an index, and each citing paper is a seed of ``link``, with a filter
that leaves the cited papers; PolitiFact's articles are in another, and each tweet is searched for. The same for every
model and every mode; TF-IDF beside. The measures are those of ``benchmarks.citation``, over the same pool.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from tqdm.auto import tqdm

from benchmarks.citation import ENGLISH, read
from benchmarks.grid.work import Work
from benchmarks.linking.data import load
from benchmarks.pages import document, explanation, write_results
from benchmarks.papers.citation_retrieval import citation_retrieval
from benchmarks.readers import readers
from benchmarks.records import dtype_of, environment, make_parser, with_interval
from simlte_st import Index
from simlte_st.data import Document
from simlte_st.evaluation import PairScores, TfidfScores
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.search import Hits
from simlte_st.search.config import Mode

TFIDF = "TF-IDF"


@dataclass(frozen=True)
class Collection:
    """Documents of an index, and what is asked of it.

    Attributes:
        name: Its name.
        documents: What is indexed.
        texts: All texts that links number.
        links: Rows of the number that asks and of the one that belongs to it, shape ``[n, 2]``.
        ask: Asks with a number, in a mode, for so many hits, and perhaps with a model that reads them.
    """

    name: str
    documents: list[Document]
    texts: list[str]
    links: np.ndarray
    ask: Callable[..., Hits]


def papers(shared: Path) -> Collection:
    """The papers of AAN; their numbers are their ids."""
    texts, links = read(shared / "aan_papers.parquet", shared / "aan_citations.parquet")
    cited = {*links[:, 1].tolist()}
    documents = [Document(str(number), text, metadata={"cited": number in cited}) for number, text in enumerate(texts)]

    def ask(index: Index, number: int, mode: Mode, top: int, rerank: Any = None) -> Hits:
        return index.link([str(number)], top_k=top, where="cited", mode=mode, rerank=rerank)

    return Collection("AAN, papers to the papers they cite", documents, texts, links, ask)


def tweets(shared: Path) -> Collection:
    """Tweets, and PolitiFact's articles after them."""
    data = load(shared)
    first = len(data.posts)
    documents = [Document(str(first + row), article) for row, article in enumerate(data.articles)]

    def ask(index: Index, number: int, mode: Mode, top: int, rerank: Any = None) -> Hits:
        return index.search(data.posts[number], top_k=top, mode=mode, rerank=rerank)

    texts = [*data.posts, *data.articles]
    return Collection("PolitiFact, tweets to articles", documents, texts, data.links + np.array([0, first]), ask)


class Ranks:
    """The order in which an index gives its hits, as scores; what it does not give comes last."""

    tolerance = unrelated = 0.0

    def __init__(self, size: int) -> None:
        self.size = size
        self.given: dict[int, list[int]] = {}

    def rows(self, queries: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Look up some against others."""
        table = np.full((len(queries), self.size), -np.inf)
        for row, query in zip(table, queries.tolist(), strict=True):
            row[self.given[query]] = -np.arange(len(self.given[query]))
        return table[:, others]

    def pairs(self, pairs: np.ndarray) -> np.ndarray:
        """Look up pairs."""
        return np.array([self.rows(pair[:1], pair[1:])[0, 0] for pair in pairs])


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--bf16")
    parser.add_argument("--base", default=PACKAGED_BASE, help="base model (default: %(default)s)")
    parser.add_argument("--model", nargs="+", default=[], metavar="NAME", help="other models")
    parser.add_argument("--tokens", type=int, default=1024, metavar="N", help="that chunk-mean and they read of a text")
    parser.add_argument("--parts", action="store_true", help="the base with a vector for each passage too")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("index_links.work"), help="folder of indices and results")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {"tokens": options.tokens, "bf16": options.bf16}
    found: dict[str, dict[str, Any]] = {}
    for number, collection in enumerate((papers(options.shared), tweets(options.shared))):
        work = Work(options.work / str(number), dtype_of(options.bf16))
        for name, make in measures(collection, options):
            work.finish_aloud(name, settings, make)
        found[collection.name] = {path.stem: cell["result"] for path, cell in work.cells("*")}
    given = {**settings, "models": [Path(name).name for name in options.model], "parts": options.parts}
    write_results("index_links", {"settings": given, "collections": found}, options.output)


def measures(collection: Collection, options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Name what is measured, and how."""
    yield TFIDF, lambda: result(TfidfScores(collection.texts, **ENGLISH), collection)
    models = readers(options.base, options.model, options.tokens, dtype_of(options.bf16))
    for name, model in models.items():
        yield name, lambda model=model, name=name: through_index(collection, model(), name, False, options)  # type: ignore[misc]
    if options.parts:
        name, model = next(iter(models.items()))
        yield f"{name}, parts", lambda: through_index(collection, model(), f"{name}, parts", True, options)


def through_index(
    collection: Collection, model: SentenceTransformer, name: str, parts: bool, options: argparse.Namespace
) -> dict[str, Any]:
    """Index the documents, and ask in every mode."""
    folder = options.work / "indices" / f"{collection.name.partition(',')[0]}, {name}"
    index = Index.create(folder, model, parts=parts, exist_ok=True)
    index.add(collection.documents, batch_size=16, progress=True)
    asking = np.unique(collection.links[:, 0]).tolist()
    record: dict[str, Any] = {"environment": environment(dtype_of(options.bf16))}
    for mode in get_args(Mode):
        ranks, seconds = Ranks(len(collection.texts)), []
        for number in tqdm(asking, desc=mode):
            began = time.perf_counter()
            hits = collection.ask(index, number, mode, 100)
            seconds.append(time.perf_counter() - began)
            ranks.given[number] = [int(hit.id) for hit in hits]
        record[mode] = {**result(ranks, collection), "median_seconds": median(seconds)}
    return record


def result(scores: PairScores, collection: Collection) -> dict[str, Any]:
    """Measure, in percent."""
    found = citation_retrieval(scores, collection.links).metrics()
    keys = [key for key in found if not key.startswith("ndcg") and key not in ("queries", "pool")]
    return {**{key: 100 * found[key] for key in keys}, "queries": found["queries"], "pool": found["pool"]}


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    blocks, machines = [], []
    for name, records in record["collections"].items():
        rows = []
        for reader, found in records.items():
            modes = {"": found} if reader == TFIDF else {mode: found[mode] for mode in ("dense", "text", "hybrid")}
            if reader != TFIDF and found["environment"] not in machines:
                machines.append(found["environment"])
            for mode, values in modes.items():
                cells = [with_interval(values, key, 1) for key in ("recall@10", "recall@100", "mrr")]
                took = f"{1000 * values['median_seconds']:.0f}" if mode else ""
                rows.append([(values["recall@10"]), [reader, mode, *cells, took]])
        first = records[TFIDF]
        blocks += [
            f"## {name}",
            f"{first['queries']:,.0f} ask, {first['pool']:,.0f} can be found; percent, with 95% intervals over those "
            "that ask. MRR is of the first 100 hits for an index. Milliseconds are medians of one question.",
            markdown_table(
                ["model", "mode", "R@10", "R@100", "MRR", "ms"],
                [row for _, row in sorted(rows, key=lambda item: -item[0])],
            ),
        ]
    settings = record["settings"]
    more = f" --model {' '.join(settings['models'])}" if settings["models"] else ""
    more += " --parts" * settings["parts"] + " --bf16" * settings["bf16"]
    return document(
        "# What an index finds",
        explanation(__doc__),
        *blocks,
        f"    python -m benchmarks.index_links --shared SHARED_DATA --tokens {settings['tokens']}{more}",
        machines=machines,
    )


if __name__ == "__main__":
    main()
