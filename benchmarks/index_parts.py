r"""Whole documents against passages: what an index finds of long documents, and what it costs.

    python -m benchmarks.index_parts --shared SHARED_DATA --set "Podcasts=FOLDER" --set "AAN=aan_papers.parquet" ...

Each set is a source of documents; those of at least so many words are drawn at random. An index of them is searched

- by nine words in a row that stand at a random place of one document and in no other, a fourth of the queries from each
  quarter of the document;
- by titles (``--title``, a column of the source), which are taken out of the text.

With ``--shared``, the links of ``benchmarks.index_links`` are looked for too: cited papers by the papers that cite
them, and articles by tweets.

Each model makes an index without and with passages; those of a static model, which reads any number of tokens, have
256. Seconds are those of the process. Means over sets have intervals over sets.
"""

from __future__ import annotations

import functools
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.grid.work import Work
from benchmarks.index_links import papers, tweets
from benchmarks.pages import document, explanation, write_results
from benchmarks.records import difference, dtype_of, environment, make_parser
from simlte_st.data import Document, read_documents
from simlte_st.errors import DataError
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.search import Hits, Index

WORDS = 9
"""Words of a query."""

TOP = 100
"""Hits that are looked at."""

Ask = Callable[[Index, Any], Hits]
Queries = dict[str, list[tuple[Ask, set[str]]]]
"""By their kind: what asks an index in a mode, and the ids of what is to be found."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output", "--bf16")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=SOURCE", help="documents of one kind")
    parser.add_argument("--shared", type=Path, metavar="FOLDER", help="folder of the data sets of links")
    parser.add_argument("--model", nargs="+", default=[OWN_STATIC, PACKAGED_BASE], metavar="NAME")
    parser.add_argument("--title", default="title", metavar="COLUMN")
    parser.add_argument("--words", type=int, default=2000, metavar="N", help="of a document (default: %(default)s)")
    parser.add_argument("--documents", type=int, default=100, metavar="N", help="of a set (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=200, metavar="N", help="of a set (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("index_parts.work"), help="folder of results")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    work = Work(options.work, dtype_of(options.bf16))
    drawn = {name: getattr(options, name) for name in ("words", "documents", "queries", "bf16")}
    rows = []
    for name, documents, queries in collections(options):
        for model in options.model:
            for parts in (False, True):
                cell = f"{name}, {Path(model).name}, {'passages' if parts else 'whole'}"
                place = options.work / f"{cell}.index"
                make = functools.partial(measure, documents, queries, model, parts, place, options)
                work.finish_aloud(cell, drawn, make)
                found = work.find(cell, drawn)
                rows += [{"set": name, "model": Path(model).name, "parts": parts, **found["result"]}] if found else []
    write_results("index_parts", {**drawn, "environment": environment(work.dtype), "rows": rows}, options.output)


def collections(options: Any) -> Iterator[tuple[str, list[Document], Queries]]:
    """Yield the documents and the queries of each set."""
    for each in options.set:
        name, _, source = each.partition("=")
        documents, titles = draw(source, options)
        yield name, documents, passages_of(documents, options.queries) | ({"titles": titles} if titles else {})
    for links in (papers, tweets) if options.shared else ():
        data = links(options.shared)
        wanted: dict[int, set[str]] = {}
        for seed, other in data.links.tolist():
            wanted.setdefault(seed, set()).add(str(other))
        asked = [(_linked(data.ask, seed), ids) for seed, ids in wanted.items()]
        yield data.name, data.documents, {"links": random.Random(0).sample(asked, min(options.queries, len(asked)))}


def _linked(ask: Callable[..., Hits], seed: int) -> Ask:
    return lambda index, mode: ask(index, seed, mode, TOP)


def _searched(query: str) -> Ask:
    return lambda index, mode: index.search(query, top_k=TOP, mode=mode)


def draw(source: str, options: Any) -> tuple[list[Document], list[tuple[Ask, set[str]]]]:
    """Draw long documents, and take their titles out of them."""
    long = [each for each in read_documents(source, metadata=True) if len(each.text.split()) >= options.words]
    documents, titles = [], []
    for each in random.Random(0).sample(long, min(options.documents, len(long))):
        title = str((each.metadata or {}).get(options.title) or "")
        documents.append(Document(each.id, each.text.replace(title, "").strip() if title else each.text))
        titles += [(_searched(title), {each.id})] if title else []
    return documents, titles


def passages_of(documents: Sequence[Document], number: int) -> Queries:
    """Return queries by the quarter of the document that they are from: words in a row that no other document has."""
    plain = {each.id: " ".join(each.text.split()) for each in documents}
    rng, queries = random.Random(1), Queries()
    for quarter in range(4):
        asked = queries.setdefault(f"quarter {quarter + 1}", [])
        for _ in range(100 * number):
            if len(asked) == number // 4:
                break
            name = rng.choice([*plain])
            words = plain[name].split()
            start = int((quarter + rng.random()) / 4 * (len(words) - WORDS))
            query = " ".join(words[start : start + WORDS])
            if sum(query in text for text in plain.values()) == 1:
                asked.append((_searched(query), {name}))
        else:
            raise DataError(f"Too few of {len(plain)} documents have {WORDS} words in a row that no other one has.")
    return queries


def measure(
    documents: Sequence[Document], queries: Queries, name: str, parts: bool, place: Path, options: Any
) -> dict[str, Any]:
    """Make an index, and ask it everything by vectors, and by vectors and words together."""
    model = load_model(name, dtype=torch.float32).model
    if options.bf16 and not is_static(model):  # whose sum over a long document would lose what bfloat16 lacks
        model = model.to(torch.bfloat16)
    shutil.rmtree(place, ignore_errors=True)
    index = Index.create(place, model, parts=parts)
    began = time.process_time()
    report = index.add(list(documents), progress=True)
    seconds = time.process_time() - began
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    found: dict[str, Any] = {}
    for mode in ("dense", "hybrid"):
        began = time.process_time()
        for kind, asked in queries.items():
            found[f"{mode}, {kind}"] = scores([(ask(index, mode), ids) for ask, ids in asked])
        found[f"{mode}, seconds"] = (time.process_time() - began) / sum(map(len, queries.values()))
    shutil.rmtree(place)
    return {
        **{"documents": report.documents, "vectors": report.vectors, "tokens": report.truncation.tokens},
        **{"seconds": seconds, "bytes": size, "found": found},
    }


def scores(asked: Sequence[tuple[Hits, set[str]]]) -> dict[str, float]:
    """Return in percent what is found first and among ten, and the mean reciprocal rank of the first one found."""
    ranks = [[rank for rank, hit in enumerate(hits, start=1) if hit.id in ids] for hits, ids in asked]
    among = [sum(rank <= 10 for rank in each) / len(ids) for each, (_, ids) in zip(ranks, asked, strict=True)]
    return {
        "first": 100 * float(np.mean([1 in each for each in ranks])),
        "ten": 100 * float(np.mean(among)),
        "mrr": 100 * float(np.mean([1 / each[0] if each else 0 for each in ranks])),
    }


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    quality, cost = [], []
    gains: dict[tuple[str, str], dict[str, list[float]]] = {}  # and by the set
    for whole, parts in zip(record["rows"][::2], record["rows"][1::2], strict=True):
        for kind in whole["found"]:
            if not kind.endswith("seconds"):
                both = [each["found"][kind] for each in (whole, parts)]
                values = (f"{one[key]:.1f}" for one in both for key in ("first", "ten", "mrr"))
                quality.append([whole["model"], whole["set"], kind, *values])
                about = kind.partition("quarter")[0] + "words" if "quarter" in kind else kind
                own = gains.setdefault((whole["model"], about), {}).setdefault(whole["set"], [])
                own.append(both[1]["mrr"] - both[0]["mrr"])
        for each in (whole, parts):
            how, size = "passages" if each["parts"] else "whole", f"{each['bytes'] / 1e6:.1f}"
            searches = [f"{1000 * each['found'][f'{mode}, seconds']:.0f}" for mode in ("dense", "hybrid")]
            seconds = f"{each['seconds']:.1f}"
            cost.append([each["model"], each["set"], how, f"{each['vectors']:,}", seconds, size, *searches])
    means = []
    for key, sets in gains.items():
        own_means = np.array([np.mean(values) for values in sets.values()])
        gain = difference(own_means) if len(sets) > 1 else f"{own_means[0]:+.1f}"
        means.append([*key, str(len(sets)), gain])
    heads = [f"{name}, {how}" for how in ("whole", "passages") for name in ("R@1", "R@10", "MRR")]
    return document(
        "# Passages or whole documents",
        explanation(__doc__),
        f"At most {record['documents']:,} documents of {record['words']:,} words and more a set, {record['queries']:,} "
        "queries by words, and as many seeds of links. Percent; MRR is of the first 100 hits. Static models compute in "
        "float32 always.",
        "What passages add to the MRR, with intervals over sets:",
        markdown_table(["model", "mode and queries", "sets", "MRR"], means),
        markdown_table(["model", "set", "queries", *heads], quality),
        "Index: vectors, seconds of a core, megabytes. Search: milliseconds of a core for a query, with its encoding.",
        markdown_table(["model", "set", "index", "vectors", "s", "MB", "dense, ms", "hybrid, ms"], cost),
        machines=[record["environment"]],
        command='python -m benchmarks.index_parts --set "NAME=SOURCE" ...' + " --bf16" * record["bf16"],
    )


if __name__ == "__main__":
    main()
