"""Search quality: BM25, vectors, and both combined.

    python -m benchmarks.search --shared SHARED_DATA --clones peps EIPs rfcs contrib-versions enhancements

Each query has known relevant documents: a title or first line and the text below it, a claim or tweet and the articles
that check it, a paper and the papers it cites (``link``, filtered to cited papers), or a user's question and the
documents that answer it. Sets have up to 500 documents and 150 queries, except that questions search all documents and
600 papers query all cited ones. Titles of proposals and questions need clones of github.com/python/peps,
ethereum/EIPs, rust-lang/rfcs, OpenTermsArchive/contrib-versions (terms of service) and kubernetes/enhancements; the
questions about all five form one set. Half of those about the last four are answered in the middle or at the end of a
document.

MRR is over the first 100 hits, with the number of queries in parentheses. "ranks" fuses the ranks of BM25 and vectors
as 1 / (10 + rank). "trained" is a static model trained on the documents of the set. With ``rerank=``, an encoder reads
passages of the first hits of 24 queries per set, in bfloat16 where the CPU has it; seconds are the median CPU time of a
query on one core.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import torch

from benchmarks.grid.work import Work
from benchmarks.pages import explanation, fill, write_results
from benchmarks.records import environments, make_parser
from simlte_st import Index, train
from simlte_st.data import Document
from simlte_st.files import read_json
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.search.hits import Mode
from simlte_st.words.languages import LanguageFinder

QUESTIONS = Path(__file__).parent / "datasets" / "questions.json"
"""Users' questions by the name of a clone, the documents that answer them, and in which third of the first one."""

CLONES = {
    "rfcs": ("rfcs", "text/*.md"),
    "contrib-versions": ("terms", "*/*.md"),
    "enhancements": ("enhancements", "keps/**/README.md"),
}
"""Names of sets, and the files that are documents, by the name of a clone; other clones hold proposals with titles.

The clones are of github.com/rust-lang/rfcs, OpenTermsArchive/contrib-versions (terms of service) and
kubernetes/enhancements.
"""

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

MODES = {"text": "BM25", "dense": "vectors", "ranks": "ranks", "hybrid": "hybrid", "rerank": "hybrid, rerank"}
"""Titles of the columns."""

RERANKED = 24
"""Queries to rerank per set."""


class SearchSet(NamedTuple):
    """Documents, and queries with the ids of their relevant documents."""

    documents: list[Document]
    queries: list[tuple[str, set[str]]]


def draw_rows(rows: Iterable[Any], count: int) -> list[Any]:
    """Draw at most ``count`` rows, in their original order."""
    rows = list(rows)
    return [rows[row] for row in sorted(np.random.default_rng(0).permutation(len(rows))[:count])]


def title_set(pairs: Iterable[tuple[str, str]]) -> SearchSet:
    """Make a document of each text and a query of its title."""
    pairs = draw_rows((pair for pair in pairs if len(pair[1].split()) >= 50), DOCUMENTS)
    queries = [(title, {str(number)}) for number, (title, _) in enumerate(pairs)]
    documents = [Document(str(number), text) for number, (_, text) in enumerate(pairs)]
    return SearchSet(documents, draw_rows(queries, QUERIES))


def load_sets(shared: Path, clones: list[Path]) -> dict[str, SearchSet]:
    """Return all sets by name."""

    def rows(name: str) -> list[dict[str, Any]]:
        return list(pq.read_table(shared / f"{name}.parquet").to_pylist())

    mails = (row["text"].strip().partition("\n") for row in rows("20newsgroups"))
    quotes = re.compile(r"\W|.*(writes|:\s*$)|(\S+\s*){1,3}$")  # or at most three words
    articles, wikipedia, cited = rows("politifact_articles"), rows("enwiki2014"), dict[str, set[str]]()
    for row in rows("aan_citations"):
        cited.setdefault(row["citing"], {row["cited"]}).add(row["cited"])
    citing, targets = draw_rows(cited.items(), 4 * QUERIES), set().union(*cited.values())
    papers = [
        Document(row["id"], row["text"], metadata={"cited": row["id"] in targets})
        for row in rows("aan_papers")
        if row["id"] in targets | dict(citing).keys()
    ]
    checks = [Document(str(row["id"]), row["text"]) for row in articles]
    tweets = ((row["text"], {*map(str, row["article_ids"])}) for row in rows("politifact_tweets"))
    sets = {
        "arXiv, titles": title_set((row["title"], row["abstract"]) for row in rows("arxiv_abstracts")),
        "Wikipedia, titles": title_set((row["title"], row["text"].removeprefix(row["title"])) for row in wikipedia),
        "e-mails, first lines": title_set((line, text) for line, _, text in mails if not quotes.match(line)),
        "PolitiFact, claims": title_set((row["claim"], row["text"]) for row in articles),
        "PolitiFact, tweets": SearchSet(checks, draw_rows(tweets, QUERIES)),
        "AAN, cited papers": SearchSet(papers, citing),
    }
    questions = read_json(QUESTIONS)
    for clone in clones:
        name, pattern = CLONES.get(clone.name, (clone.name, None))
        if pattern is None:
            proposals = read_proposals(clone)
            sets[f"{name}, titles"] = title_set(proposals.values())
            documents = [Document(number, text) for number, (_, text) in proposals.items()]
        else:
            documents = read_english(clone, pattern)
        if rows := questions.get(clone.name):
            queries = [(row["query"], {*row["documents"]}) for row in rows]
            sets[f"{name}, questions"] = SearchSet(documents, queries)
    return sets


def read_english(clone: Path, pattern: str) -> list[Document]:
    """Return the English documents of a clone without HTML comments; ids are paths without the suffix."""
    paths = sorted(clone.glob(pattern))
    texts = [re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in paths]
    find_language = LanguageFinder(texts)
    return [
        Document(path.relative_to(clone).with_suffix("").as_posix(), text)
        for path, text in zip(paths, texts, strict=True)
        if text.strip() and find_language(text) == "en"
    ]


def read_proposals(clone: Path) -> dict[str, tuple[str, str]]:
    """Return titles and texts of enhancement proposals by number."""
    proposals = {}
    for path in sorted(clone.glob("*/[ep]*p-*.[rm][sd]*")):
        head, _, text = path.read_text(encoding="utf-8").partition("\n\n")
        if text.strip() and (title := re.search(r"^title:\s*(.+)", head, re.IGNORECASE | re.MULTILINE)):
            proposals[path.stem.partition("-")[2]] = title[1], text
    return proposals


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--work", work="search.work")
    parser.add_argument("--clones", type=Path, nargs="*", default=[], help="clones of documents (default: none)")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    work, cells = Work(options.work), dict[str, dict[str, Any]]()
    for system in SYSTEMS:
        for name, data in load_sets(options.shared, options.clones).items():
            cell, job = f"{system}/{name}", partial(measure, data, system, options.work / "indices" / name)
            work.finish_aloud(cell, {}, job)
            cells.setdefault(system, {})[name] = work.find(cell, {})
    write_results("search", {"systems": cells}, options.output)


def measure(data: SearchSet, system: str, folder: Path) -> dict[str, Any]:
    """Return the rank of the first relevant hit by search mode and query (0 for none), and seconds of reranking."""
    model, parts = SYSTEMS[system]
    if model is None:
        model = str(folder / "model")
        train(data.documents, model, static=True, bf16=False, keep="trained", progress=False, overwrite=True)
    index = Index.create(folder / system, model, parts=parts, overwrite=True)
    index.add(data.documents, progress=False)
    search: Any = partial(index.link, where="cited") if "cited" in index.columns else index.search
    encoder = load_model(PACKAGED_BASE, dtype=torch.float32).model if system.endswith("rerank") else None
    ranks: dict[str, list[int]] = {}
    seconds: list[float] = []
    for query, relevant in data.queries[: RERANKED if encoder else None]:
        hits = {mode: [hit.id for hit in search(query, top_k=FIRST, mode=mode)] for mode in get_args(Mode)}
        fused = Counter[str]()
        for mode in ("dense", "text"):
            fused.update({name: 1 / (10 + rank) for rank, name in enumerate(hits[mode], start=1)})  # type: ignore[misc]
        hits["ranks"] = sorted(fused, key=lambda name: (-fused[name], name))[:FIRST]
        if encoder:
            start = time.process_time()
            hits["rerank"] = [hit.id for hit in search(query, top_k=FIRST, rerank=encoder)]
            seconds.append(time.process_time() - start)
        for mode, names in hits.items():
            rank = next((rank for rank, name in enumerate(names, start=1) if name in relevant), 0)
            ranks.setdefault(mode, []).append(rank)
    return {"ranks": ranks, "seconds": seconds}


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    tables, firsts, asked = {}, [], []
    for system, cells in record["systems"].items():
        ranks = read_ranks(cells)
        scores = mean_reciprocal_ranks(ranks)
        gaps = scores["hybrid"] - scores[["BM25", "vectors"]].max(axis=1)
        lines = scores.map("{:.3f}".format).assign(**{"hybrid - better half": gaps.map("{:+.3f}".format)})
        titles = {name: f"{name} ({count})" for name, count in ranks.groupby("set").size().items()}
        lines["seconds"] = median_seconds(cells).map("{:.1f}".format)
        tables[system] = lines.rename(titles).rename_axis("MRR")
        for first in (1, 3, 10):
            shares = 100 * (ranks <= first).groupby("set").mean().mean()
            firsts.append({"": f"{system}, top {first}", **shares.map("{:.1f}".format)})
        if "questions" in titles:
            first_ranks = ranks.loc["questions"]
            numbers = {mode: " / ".join(str((first_ranks[mode] <= top).sum()) for top in (1, 3, 10)) for mode in ranks}
            asked.append({"": f"{system} ({len(first_ranks)})", **numbers})
    machines = environments(cell for cells in record["systems"].values() for cell in cells.values())
    return fill(
        "search.md", explanation=explanation(__doc__), tables=tables, firsts=firsts, asked=asked, environments=machines
    )


def read_ranks(cells: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rank of the first relevant hit by set and query, infinite for none, with a column for each mode.

    Modes that some set lacks are left out. All questions form one set.
    """
    sets = {name: pd.DataFrame(cell["result"]["ranks"]) for name, cell in cells.items()}
    ranks = pd.concat(sets, names=["set", "query"]).replace(0, np.inf).dropna(axis=1).rename(pooled_name, level="set")
    return ranks[[mode for mode in MODES if mode in ranks]].rename(columns=MODES)


def mean_reciprocal_ranks(ranks: pd.DataFrame) -> pd.DataFrame:
    """Return MRR by set and mode, and the mean over the sets."""
    scores = (1 / ranks).groupby("set", sort=False).mean()
    return pd.concat([scores, scores.mean().to_frame("mean").T])


def median_seconds(cells: Mapping[str, Any]) -> pd.Series:
    """Return the median seconds of reranking by set, if it was measured."""
    seconds = pd.Series({name: cell["result"]["seconds"] for name, cell in cells.items()}).explode().dropna()
    return seconds.astype(float).groupby(pooled_name, sort=False).median()


def pooled_name(name: str) -> str:
    """Return the name of a set on the page."""
    return "questions" if name.endswith(", questions") else name


if __name__ == "__main__":
    main()
