"""What searches find: by words (BM25), by vectors, and by both together.

    python -m benchmarks.search --shared SHARED_DATA --clones PEPS EIPS

A query is known to belong to documents: a title or the first line to the text behind it, a claim or a tweet to the
articles that check it, a paper to the papers it cites (a query document of ``link``, with a filter that leaves the
cited papers), a question in a user's words to Python's enhancement proposals (PEPs). Of each set up to 1,000 documents
are drawn, or all where the right ones are several, and up to 300 queries.

MRR is of the first 100 hits. "ranks" is what fusing the ranks of both halves, by 1 / (10 + rank), would find. The PEPs
and EIPs are read from clones of github.com/python/peps and github.com/ethereum/EIPs. ``trained`` is a static model
trained on the documents of the set, by ``simlte_st.train(..., static=True)``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.grid.work import Work
from benchmarks.linking.data import load
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import environments, make_parser
from simlte_st import Index, train
from simlte_st.data import Document
from simlte_st.files import read_json
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.search.query import Mode

DOCUMENTS, QUERIES, FIRST = 1000, 300, 100
QUESTIONS = Path(__file__).parent / "datasets" / "pep_questions.json"
SYSTEMS = {
    "simlte-static": ("simlte-static", False),
    "simlte-static, passages": ("simlte-static", True),
    "trained": (None, False),
    PACKAGED_BASE: (PACKAGED_BASE, False),
}
"""The model of an index, None for one that is trained on its documents, and whether it has passages."""

WAYS = {"text": "BM25", "dense": "vectors", "ranks": "ranks", "hybrid": "hybrid"}
"""Titles of the columns."""


@dataclass(frozen=True)
class Known:
    """Documents, and queries with the ids of what they should find; ``linked`` queries are ids of documents."""

    documents: list[Document]
    queries: list[tuple[str, set[str]]]
    linked: bool = False


def drawn(rows: Iterable[Any], count: int) -> list[Any]:
    """Draw rows, and keep their order."""
    listed = list(rows)
    return [listed[row] for row in sorted(np.random.default_rng(0).permutation(len(listed))[:count])]


def titled(pairs: Iterable[tuple[str, str]]) -> Known:
    """Return texts, each with a query that stood above it."""
    few = drawn(((title, text) for title, text in pairs if title and len(text.split()) >= 50), DOCUMENTS)
    documents = [Document(str(number), text) for number, (_, text) in enumerate(few)]
    return Known(documents, drawn(((title, {str(n)}) for n, (title, _) in enumerate(few)), QUERIES))


def arxiv(folder: Path) -> Known:
    """Titles of arXiv's abstracts."""
    return titled((row["title"], row["abstract"]) for row in rows(folder / "arxiv_abstracts.parquet"))


def wikipedia(folder: Path) -> Known:
    """Titles of Wikipedia's articles; a text that begins with its title begins behind it."""
    articles = rows(folder / "enwiki2014.parquet")
    return titled((row["title"], row["text"].removeprefix(row["title"])) for row in articles)


def mails(folder: Path) -> Known:
    """First lines of e-mails, of four words and more, that quote nobody."""
    parts = (row["text"].strip().partition("\n") for row in rows(folder / "20newsgroups.parquet"))
    quotes = re.compile(r"\W|.*(writes|:\s*$)")
    return titled((line, text) for line, _, text in parts if len(line.split()) >= 4 and not quotes.match(line))


def claims(folder: Path) -> Known:
    """Claims that PolitiFact's articles check."""
    return titled((row["claim"], row["text"]) for row in rows(folder / "politifact_articles.parquet"))


def tweets(folder: Path) -> Known:
    """Tweets, and PolitiFact's articles."""
    data, right = load(folder), dict[int, set[str]]()
    for post, article in data.links.tolist():
        right.setdefault(post, set()).add(str(article))
    documents = [Document(str(number), text) for number, text in enumerate(data.articles)]
    return Known(documents, drawn(((data.posts[post], own) for post, own in right.items()), QUERIES))


def citations(folder: Path) -> Known:
    """Papers of AAN, and those that they cite."""
    right: dict[str, set[str]] = {}
    for row in rows(folder / "aan_citations.parquet"):
        if row["citing"] != row["cited"]:
            right.setdefault(row["citing"], set()).add(row["cited"])
    cited = set().union(*right.values())
    papers = rows(folder / "aan_papers.parquet")
    documents = [Document(row["id"], row["text"], metadata={"cited": row["id"] in cited}) for row in papers]
    return Known(documents, drawn(sorted(right.items()), QUERIES), linked=True)


def proposals(clone: Path) -> dict[str, tuple[str, str]]:
    """Read titles and texts of enhancement proposals, by their numbers."""
    found = {}
    for path in sorted(clone.glob("*/*ep-*.rst")) + sorted(clone.glob("*/*ip-*.md")):
        head, _, text = path.read_text(encoding="utf-8").removeprefix("---\n").partition("\n\n")
        if title := re.search(r"^title:\s*(.+)", head, re.IGNORECASE | re.MULTILINE):
            found[path.stem.partition("-")[2]] = (title[1], text)
    return found


def questions(clone: Path) -> Known:
    """Questions in a user's words, and PEPs."""
    documents = [Document(number, text) for number, (_, text) in proposals(clone).items() if len(text.split()) >= 50]
    return Known(documents, [(asked, {*numbers}) for asked, numbers in read_json(QUESTIONS)])


def rows(file: Path) -> list[dict[str, Any]]:
    """Read a table."""
    found: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return found


def load_sets(shared: Path, clones: list[Path]) -> dict[str, Callable[[], Known]]:
    """Name the sets, and how each is read; those of clones that are not there are left out."""
    made: dict[str, Callable[[], Known]] = {
        "arXiv, titles": lambda: arxiv(shared),
        "Wikipedia, titles": lambda: wikipedia(shared),
        "e-mails, first lines": lambda: mails(shared),
        "PolitiFact, claims": lambda: claims(shared),
        "PolitiFact, tweets": lambda: tweets(shared),
        "AAN, cited papers": lambda: citations(shared),
    }
    for clone in clones:
        made[f"{clone.name}, titles"] = lambda clone=clone: titled(proposals(clone).values())  # type: ignore[misc]
        if clone.name == "peps":
            made["peps, questions"] = lambda clone=clone: questions(clone)  # type: ignore[misc]
    return made


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--clones", type=Path, nargs="*", default=[], help="folders of proposals (default: none)")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=[*SYSTEMS], help="(default: all)")
    parser.add_argument("--work", type=Path, default=Path("search.work"), help="folder of indices and results")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    work, cells = Work(options.work), {}
    for name, make in load_sets(options.shared, options.clones).items():
        for system in options.systems:
            cell = f"{name}/{system}"
            work.finish_aloud(
                cell, {}, lambda make=make, s=system, n=name: measured(make(), s, options.work / "in" / n)
            )  # type: ignore[misc]
            cells.setdefault(system, {})[name] = work.find(cell, {})
    write_results("search", {"systems": cells}, options.output)


def measured(known: Known, system: str, folder: Path) -> dict[str, list[int]]:
    """Index documents; return for each way of searching the rank of the first right hit of each query, 0 for none."""
    model, parts = SYSTEMS[system]
    if model is None:
        model = str(folder / "model")
        train(known.documents, model, static=True, bf16=False, keep="trained", progress=False, overwrite=True)
    index = Index.create(folder / system, model, parts=parts, overwrite=True)
    index.add(known.documents, progress=False)
    ranks: dict[str, list[int]] = {}
    for asked, right in known.queries:
        found = {mode: ids(index, known, asked, mode) for mode in get_args(Mode)}
        for name, hits in {**found, "ranks": by_ranks(found["dense"], found["text"])}.items():
            rank = next((rank for rank, hit in enumerate(hits[:FIRST], start=1) if hit in right), 0)
            ranks.setdefault(name, []).append(rank)
    return ranks


def ids(index: Index, known: Known, asked: str, mode: Mode) -> list[str]:
    """Return the ids of the first hits."""
    if known.linked:
        return [hit.id for hit in index.link([asked], top_k=FIRST, where="cited", mode=mode)]
    return [hit.id for hit in index.search(asked, top_k=FIRST, mode=mode)]


def by_ranks(*lists: list[str]) -> list[str]:
    """Fuse lists by the reciprocal ranks of what they have."""
    scores: Counter[str] = Counter()
    for listed in lists:
        scores.update({one: 1 / (10 + rank) for rank, one in enumerate(listed, start=1)})  # type: ignore[misc]
    return sorted(scores, key=lambda one: (-scores[one], one))


def reciprocal(ranks: list[int]) -> float:
    """Return the mean reciprocal rank."""
    return float(np.mean([1 / rank if rank else 0.0 for rank in ranks]))


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    blocks = []
    for system, cells in record["systems"].items():
        lines, found = [], {name: cell["result"] for name, cell in cells.items()}
        for name, ranks in found.items():
            values = {title: reciprocal(ranks[way]) for way, title in WAYS.items()}
            lines.append({"MRR": f"{name} ({len(ranks['text'])})", **values})
        lines.append({"MRR": "mean", **{title: np.mean([line[title] for line in lines]) for title in WAYS.values()}})
        for line in lines:
            line["hybrid - the better half"] = line["hybrid"] - max(line["BM25"], line["vectors"])
        shown = [{key: value if key == "MRR" else f"{value:.3f}" for key, value in line.items()} for line in lines]
        firsts = []
        for first in (1, 3, 10):
            shares = {
                way: [np.mean([0 < rank <= first for rank in ranks[way]]) for ranks in found.values()] for way in WAYS
            }
            firsts.append(
                {"mean over the sets": f"right hits among {first}, in percent"}
                | {title: f"{100 * np.mean(shares[way]):.1f}" for way, title in WAYS.items()}
            )
        blocks += [f"## {system}", table(shown), table(firsts)]
    return document(
        "# What searches find",
        explanation(__doc__),
        *blocks,
        machines=environments(cell for cells in record["systems"].values() for cell in cells.values()),
        command="python -m benchmarks.search --shared SHARED_DATA --clones peps EIPs",
    )


if __name__ == "__main__":
    main()
