"""What searches find: by words (BM25), by vectors, and by both together.

    python -m benchmarks.search --shared SHARED_DATA --clones peps EIPs

A query is known to belong to documents: a title or a first line to the text below it, a claim or a tweet to the
articles that check it, a paper to the papers that it cites (``link``, with a filter that leaves the cited ones), a
question in a user's words to Python's enhancement proposals. Of each set up to 1,000 documents and 300 queries are
drawn (all papers, all articles of tweets). The proposals are those of clones of github.com/python/peps and
github.com/ethereum/EIPs.

MRR is that of the first 100 hits, with the number of queries in parentheses. "ranks" is what is found where the ranks
of both halves are fused, as 1 / (10 + rank). "trained" is a static model trained on the documents of the set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
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
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.search.query import Mode

QUESTIONS = Path(__file__).parent / "datasets" / "pep_questions.json"
FIRST = 100
SYSTEMS = {
    "simlte-static": ("simlte-static", False),
    "simlte-static, with passages": ("simlte-static", True),
    "trained": (None, False),
    PACKAGED_BASE: (PACKAGED_BASE, False),
}
"""The model of an index, None for one that is trained on its documents, and whether it has passages."""

WAYS = {"text": "BM25", "dense": "vectors", "ranks": "ranks", "hybrid": "hybrid"}
"""Titles of the columns."""


class Known(NamedTuple):
    """Documents, and queries with the ids of the documents that they should find."""

    documents: list[Document]
    queries: list[tuple[str, set[str]]]


def drawn(rows: Iterable[Any], count: int) -> list[Any]:
    """Draw rows, and keep their order."""
    listed = list(rows)
    return [listed[row] for row in sorted(np.random.default_rng(0).permutation(len(listed))[:count])]


def titled(pairs: Iterable[tuple[str, str]]) -> Known:
    """Return texts as documents, and what stood above each as a query."""
    few = drawn((pair for pair in pairs if len(pair[1].split()) >= 50), 1000)
    queries = [(title, {str(number)}) for number, (title, _) in enumerate(few)]
    return Known([Document(str(number), text) for number, (_, text) in enumerate(few)], drawn(queries, 300))


def load_sets(shared: Path, clones: list[Path]) -> dict[str, Known]:
    """Read all sets by their names."""

    def rows(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pq.read_table(shared / f"{name}.parquet").to_pylist()
        return found

    mails = (row["text"].strip().partition("\n") for row in rows("20newsgroups"))
    quotes = re.compile(r"\W|.*(writes|:\s*$)|(\S+\s*){1,3}$")  # and lines of three words and fewer
    articles, wikipedia, cited = rows("politifact_articles"), rows("enwiki2014"), dict[str, set[str]]()
    for row in rows("aan_citations"):
        cited.setdefault(row["citing"], {row["cited"]}).add(row["cited"])
    targets = set().union(*cited.values())
    found = {
        "arXiv, titles": titled((row["title"], row["abstract"]) for row in rows("arxiv_abstracts")),
        "Wikipedia, titles": titled((row["title"], row["text"].removeprefix(row["title"])) for row in wikipedia),
        "e-mails, first lines": titled((line, text) for line, _, text in mails if not quotes.match(line)),
        "PolitiFact, claims": titled((row["claim"], row["text"]) for row in articles),
        "PolitiFact, tweets": Known(
            [Document(str(row["id"]), row["text"]) for row in articles],
            drawn(((row["text"], {*map(str, row["article_ids"])}) for row in rows("politifact_tweets")), 300),
        ),
        "AAN, cited papers": Known(
            [Document(row["id"], row["text"], metadata={"cited": row["id"] in targets}) for row in rows("aan_papers")],
            drawn(cited.items(), 300),
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
    """Return titles and texts of enhancement proposals by their numbers."""
    found = {}
    for path in sorted(clone.glob("*/[ep]*p-*.*")):
        head, _, text = path.read_text(encoding="utf-8").partition("\n\n")
        if title := re.search(r"^title:\s*(.+)", head, re.IGNORECASE | re.MULTILINE):
            found[path.stem.partition("-")[2]] = title[1], text
    return found


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--clones", type=Path, nargs="*", default=[], help="folders of proposals (default: none)")
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


def measured(known: Known, system: str, folder: Path) -> dict[str, list[int]]:
    """Return for each way of searching the rank of the first right hit of each query, 0 for none."""
    model, parts = SYSTEMS[system]
    if model is None:
        model = str(folder / "model")
        train(known.documents, model, static=True, bf16=False, keep="trained", progress=False, overwrite=True)
    index = Index.create(folder / system, model, parts=parts, overwrite=True)
    index.add(known.documents, progress=False)
    ranks: dict[str, list[int]] = {way: [] for way in WAYS}
    for asked, right in known.queries:
        found: dict[str, list[str]] = {}
        for mode in get_args(Mode):
            if "cited" in index.columns:
                hits = index.link(asked, top_k=FIRST, mode=mode, where="cited")
            else:
                hits = index.search(asked, top_k=FIRST, mode=mode)
            found[mode] = [hit.id for hit in hits]
        fused = Counter[str]()
        for mode in ("dense", "text"):
            fused.update({name: 1 / (10 + rank) for rank, name in enumerate(found[mode], start=1)})  # type: ignore[misc]
        found["ranks"] = sorted(fused, key=lambda name: (-fused[name], name))[:FIRST]
        for way, names in found.items():
            ranks[way].append(next((rank for rank, name in enumerate(names, start=1) if name in right), 0))
    return ranks


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    blocks, means = [], []
    for system, cells in record["systems"].items():
        ranks = {name: [np.array(cell["result"][way]) for way in WAYS] for name, cell in cells.items()}
        found = {
            name: [np.where(own, 1 / np.maximum(own, 1), 0).mean() for own in each] for name, each in ranks.items()
        }
        found["mean"] = np.mean(list(found.values()), axis=0)
        lines = []
        for name, values in found.items():
            title = f"{name} ({len(ranks[name][0])})" if name in ranks else name
            lines.append(
                {"MRR": title, **{way: f"{value:.3f}" for way, value in zip(WAYS.values(), values, strict=True)}}
            )
            lines[-1]["hybrid - better half"] = f"{values[3] - max(values[:2]):+.3f}"
        for first in (1, 3, 10):
            shares = np.mean([[((own > 0) & (own <= first)).mean() for own in each] for each in ranks.values()], axis=0)
            cells = {way: f"{100 * share:.1f}" for way, share in zip(WAYS.values(), shares, strict=True)}
            means.append({"percent found": f"{system}, among {first}", **cells})
        blocks += [f"## {system}", table(lines)]
    return document(
        "# What searches find",
        explanation(__doc__),
        *blocks,
        "## A right hit among the first 1, 3 and 10, mean over the sets",
        table(means),
        machines=environments(cell for cells in record["systems"].values() for cell in cells.values()),
        command="python -m benchmarks.search --shared SHARED_DATA --clones peps EIPs",
    )


if __name__ == "__main__":
    main()
