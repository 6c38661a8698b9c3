"""Search quality: BM25, vectors, and both combined.

    python -m benchmarks.search --shared SHARED_DATA --clones peps EIPs

Each query has known relevant documents: a title or first line and the text below it, a claim or tweet and the articles
that check it, a paper and the papers it cites (``link``, filtered to cited papers), or a user's question and a Python
enhancement proposal. Sets have up to 500 documents and 150 queries, except that questions search all proposals and 600
papers query all cited ones. The proposals come from clones of github.com/python/peps and github.com/ethereum/EIPs.

MRR is over the first 100 hits, with the number of queries in parentheses. "ranks" fuses the ranks of BM25 and vectors
as 1 / (10 + rank). "trained" is a static model trained on the documents of the set. With ``rerank=``, an encoder reads
the first hits of 24 queries per set; seconds are the median per query on one core.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.grid.work import Work
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import environments, make_parser
from simlte_st import Index, train
from simlte_st.data import Document
from simlte_st.files import read_json
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.search.query import Mode

QUESTIONS = Path(__file__).parent / "datasets" / "pep_questions.json"
DOCUMENTS, QUERIES, FIRST = 500, 150, 100

STATIC = "simlte-static"
SYSTEMS: dict[str, tuple[str | None, bool]] = {
    STATIC: (STATIC, False),
    "trained": (None, False),
    f"{STATIC}, rerank": (STATIC, False),
    PACKAGED_BASE: (PACKAGED_BASE, False),
    f"{STATIC}, with passages": (STATIC, True),
}
"""The model of an index (None for one trained on its documents), and whether the index has passages."""

WAYS = {"text": "BM25", "dense": "vectors", "ranks": "ranks", "hybrid": "hybrid", "rerank": "hybrid, rerank"}
"""Titles of the columns."""

READ = 24
"""Queries to rerank per set."""


class Known(NamedTuple):
    """Documents, and queries with the ids of their relevant documents."""

    documents: list[Document]
    queries: list[tuple[str, set[str]]]


def drawn(rows: Iterable[Any], count: int) -> list[Any]:
    """Draw at most ``count`` rows, in their original order."""
    listed = list(rows)
    return [listed[row] for row in sorted(np.random.default_rng(0).permutation(len(listed))[:count])]


def titled(pairs: Iterable[tuple[str, str]]) -> Known:
    """Make a document of each text and a query of its title."""
    few = drawn((pair for pair in pairs if len(pair[1].split()) >= 50), DOCUMENTS)
    queries = [(title, {str(number)}) for number, (title, _) in enumerate(few)]
    return Known([Document(str(number), text) for number, (_, text) in enumerate(few)], drawn(queries, QUERIES))


def load_sets(shared: Path, clones: list[Path]) -> dict[str, Known]:
    """Return all sets by name."""

    def rows(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pq.read_table(shared / f"{name}.parquet").to_pylist()
        return found

    mails = (row["text"].strip().partition("\n") for row in rows("20newsgroups"))
    quotes = re.compile(r"\W|.*(writes|:\s*$)|(\S+\s*){1,3}$")  # or at most three words
    articles, wikipedia, cited = rows("politifact_articles"), rows("enwiki2014"), dict[str, set[str]]()
    for row in rows("aan_citations"):
        cited.setdefault(row["citing"], {row["cited"]}).add(row["cited"])
    citing, targets = drawn(cited.items(), 4 * QUERIES), set().union(*cited.values())
    papers = [row for row in rows("aan_papers") if row["id"] in targets | dict(citing).keys()]
    found = {
        "arXiv, titles": titled((row["title"], row["abstract"]) for row in rows("arxiv_abstracts")),
        "Wikipedia, titles": titled((row["title"], row["text"].removeprefix(row["title"])) for row in wikipedia),
        "e-mails, first lines": titled((line, text) for line, _, text in mails if not quotes.match(line)),
        "PolitiFact, claims": titled((row["claim"], row["text"]) for row in articles),
        "PolitiFact, tweets": Known(
            [Document(str(row["id"]), row["text"]) for row in articles],
            drawn(((row["text"], {*map(str, row["article_ids"])}) for row in rows("politifact_tweets")), QUERIES),
        ),
        "AAN, cited papers": Known(
            [Document(row["id"], row["text"], metadata={"cited": row["id"] in targets}) for row in papers],
            citing,
        ),
    }  # fmt: skip
    for clone in clones:
        texts = proposals(clone)
        found[f"{clone.name}, titles"] = titled(texts.values())
        if clone.name == "peps":
            questions = [(asked, {*numbers}) for asked, numbers in read_json(QUESTIONS)]
            found["peps, questions"] = Known([Document(number, text) for number, (_, text) in texts.items()], questions)
    return found


def proposals(clone: Path) -> dict[str, tuple[str, str]]:
    """Return titles and texts of enhancement proposals by number."""
    found = {}
    for path in sorted(clone.glob("*/[ep]*p-*.[rm][sd]*")):
        head, _, text = path.read_text(encoding="utf-8").partition("\n\n")
        if text.strip() and (title := re.search(r"^title:\s*(.+)", head, re.IGNORECASE | re.MULTILINE)):
            found[path.stem.partition("-")[2]] = title[1], text
    return found


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--clones", type=Path, nargs="*", default=[], help="clones of proposals (default: none)")
    parser.add_argument("--work", type=Path, default=Path("search.work"), help="folder of indices and results")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    work, cells = Work(options.work), dict[str, dict[str, Any]]()
    for system in SYSTEMS:
        for name, known in load_sets(options.shared, options.clones).items():
            cell, folder = f"{system}/{name}", options.work / "indices" / name
            work.finish_aloud(cell, {}, lambda known=known, folder=folder: measured(known, system, folder))  # type: ignore[misc]  # noqa: B023
            cells.setdefault(system, {})[name] = work.find(cell, {})
    write_results("search", {"systems": cells}, options.output)


def measured(known: Known, system: str, folder: Path) -> dict[str, Any]:
    """Return the rank of the first relevant hit by search mode and query (0 for none), and seconds of reranking."""
    model, parts = SYSTEMS[system]
    if model is None:
        model = str(folder / "model")
        train(known.documents, model, static=True, bf16=False, keep="trained", progress=False, overwrite=True)
    index = Index.create(folder / system, model, parts=parts, overwrite=True)
    index.add(known.documents, progress=False)
    search: Any = partial(index.link, where="cited") if "cited" in index.columns else index.search
    encoder = load_model(PACKAGED_BASE, dtype=torch.float32).model if system.endswith("rerank") else None
    ranks: dict[str, list[int]] = {}
    seconds: list[float] = []
    for asked, right in known.queries[: READ if encoder else None]:
        found = {mode: [hit.id for hit in search(asked, top_k=FIRST, mode=mode)] for mode in get_args(Mode)}
        fused = Counter[str]()
        for mode in ("dense", "text"):
            fused.update({name: 1 / (10 + rank) for rank, name in enumerate(found[mode], start=1)})  # type: ignore[misc]
        found["ranks"] = sorted(fused, key=lambda name: (-fused[name], name))[:FIRST]
        if encoder:
            began = time.process_time()
            found["rerank"] = [hit.id for hit in search(asked, top_k=FIRST, rerank=encoder)]
            seconds.append(time.process_time() - began)
        for way, names in found.items():
            rank = next((rank for rank, name in enumerate(names, start=1) if name in right), 0)
            ranks.setdefault(way, []).append(rank)
    return {"ranks": ranks, "seconds": seconds}


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    blocks, firsts = [], []
    for system, cells in record["systems"].items():
        results = {name: cell["result"] for name, cell in cells.items()}
        ways = [way for way in WAYS if all(way in result["ranks"] for result in results.values())]
        ranks = {name: [np.array(result["ranks"][way]) for way in ways] for name, result in results.items()}
        found = {name: [reciprocal(own) for own in each] for name, each in ranks.items()}
        found["mean"] = np.mean([*found.values()], axis=0).tolist()
        lines = []
        for name, values in found.items():
            line = {"MRR": f"{name} ({len(ranks[name][0])})" if name in ranks else name}
            line |= {WAYS[way]: f"{value:.3f}" for way, value in zip(ways, values, strict=True)}
            line["hybrid - better half"] = f"{values[ways.index('hybrid')] - max(values[:2]):+.3f}"
            seconds = results.get(name, {}).get("seconds")
            lines.append(line | {"seconds": f"{median(seconds):.1f}" if seconds else ""})
        for first in (1, 3, 10):
            shares = [[100 * ((own > 0) & (own <= first)).mean() for own in each] for each in ranks.values()]
            means = zip(ways, np.mean(shares, axis=0), strict=True)
            firsts.append({"": f"{system}, top {first}"} | {WAYS[way]: f"{mean:.1f}" for way, mean in means})
        blocks += [f"## {system}", table(lines)]
    return document(
        "# Search quality",
        explanation(__doc__),
        *blocks,
        "## Queries with a relevant hit",
        "Percentage of queries with a relevant document in the top 1, 3 and 10, averaged over the sets.",
        table(firsts),
        machines=environments(cell for cells in record["systems"].values() for cell in cells.values()),
        command="python -m benchmarks.search --shared SHARED_DATA --clones peps EIPs",
    )


def reciprocal(ranks: np.ndarray) -> float:
    """Return the mean reciprocal rank."""
    return float(np.where(ranks, 1 / np.maximum(ranks, 1), 0).mean())


if __name__ == "__main__":
    main()
