"""Build, search and extend an index of up to a million vectors, compared with FAISS.

    pip install ".[benchmarks]"
    python -m benchmarks.index_scale --vectors 1000000

Vectors are derived from real sentences (BBC News, MiniLM): each lies between a sentence and one of its ten nearest
neighbours, plus noise, so that they cluster as real ones do. Queries are other sentences of the same articles. Each
library runs in its own process. Our index probes the number of partitions set in ``simlte_st.search.store``; FAISS has
4 sqrt(n) lists, as its guidelines recommend, and probes the smallest power of two with a recall of .97. Exact search
defines the nearest neighbours. Our index stores ids, hashes and columns with the vectors, is on disk after each
commit, and deletes replaced rows; FAISS keeps vectors in memory and writes one file on request.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.datasets.bbc import packaged_corpus_path
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import process_memory, run_module, side_by_side
from simlte_st.data import read_documents
from simlte_st.files import atomic_path
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.vectors import unit_rows
from simlte_st.search.encoder import BATCH
from simlte_st.search.store import Store
from simlte_st.words.sentences import make_segmenter

K = 10
NEIGHBOURS = 10
NOISE = 0.3
"""Length of the noise added to a vector of length 1."""

MIN_RECALL = 0.97
"""Recall that FAISS must reach."""

Vectors = NDArray[np.float32]


class SimlteIndex:
    """The store behind ``simlte index``: full vectors, with approximate search for many rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(self, vectors: Vectors) -> None:
        """Build the index."""
        self.store = Store.create(self.folder, vectors.shape[1])
        self.count = 0
        self.add(vectors, 10_000)

    def add(self, vectors: Vectors, size: int = BATCH) -> None:
        """Add vectors in batches, as ``simlte index`` does."""
        for start in range(0, len(vectors), size):
            part = vectors[start : start + size]
            ids = [str(number) for number in range(self.count, self.count + len(part))]
            self.count += len(part)
            columns = {
                "id": ids,
                "part": pa.array([0] * len(part), pa.int32()),
                "hash": ids,
                "tokens": pa.array([0] * len(part), pa.int32()),
                "searched": [True] * len(part),
                "text": pa.nulls(len(part), pa.string()),
                "passage": pa.nulls(len(part), pa.string()),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(part.reshape(-1)), part.shape[1]),
            }
            self.store.merge(pa.table(columns))
        self.store.tidy()

    def search(self, queries: Vectors) -> list[list[int]]:
        """Find the row numbers of each query's nearest vectors, in one call."""
        return [[int(row) for row in ids] for ids in self.store.nearest_many(queries, "searched", K)]


class FaissIndex:
    """FAISS's inverted file of full vectors."""

    def __init__(self, folder: Path) -> None:
        self.path = folder

    def build(self, vectors: Vectors) -> None:
        """Build the index, and probe enough lists for the required recall."""
        import faiss

        faiss.omp_set_num_threads(2)
        lists = round(4 * len(vectors) ** 0.5)
        self.index = faiss.index_factory(vectors.shape[1], f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
        self.index.train(vectors[: 50 * lists])
        self.add(vectors)
        queries, nearest = (np.load(self.path.parent / name) for name in ("queries.npy", "nearest.npy"))
        while recall(self.search(queries), nearest) < MIN_RECALL:
            self.index.nprobe *= 2

    def add(self, vectors: Vectors) -> None:
        """Add vectors."""
        import faiss

        self.index.add(vectors)
        faiss.write_index(self.index, str(self.path))

    def search(self, queries: Vectors) -> list[list[int]]:
        """Find the row numbers of each query's nearest vectors, in one call."""
        neighbours: list[list[int]] = self.index.search(queries, K)[1].tolist()
        return neighbours


SIDES = {"simlte_st (LanceDB)": SimlteIndex, "FAISS, IVF": FaissIndex}


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--vectors", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--more", type=int, default=10_000, metavar="N", help="vectors to add later")
    parser.add_argument("--queries", type=int, default=500, metavar="N")
    parser.add_argument("--sentences", type=int, default=20_000, metavar="N", help="real sentences to sample from")
    parser.add_argument("--base", default=PACKAGED_BASE, help="model that encodes sentences (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="turns of all queries")
    parser.add_argument("--work", type=Path, default=Path("index_scale.work"), help="folder of vectors and indices")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)  # in a side's own process
    options = parser.parse_args(argv)
    if options.side:
        print(json.dumps(measure_side(options)))
        return
    options.work.mkdir(parents=True, exist_ok=True)
    vectors, later, queries = make_vectors(options)
    np.save(options.work / "nearest.npy", nearest_rows(vectors, queries))
    np.save(options.work / "nearest_of_all.npy", nearest_rows(np.concatenate([vectors, later]), queries))
    del vectors, later
    shared = {"work": options.work, "repeats": options.repeats}
    rows = {side: run_module("benchmarks.index_scale", side=side, **shared) for side in SIDES}
    settings = {key: getattr(options, key) for key in ("vectors", "more", "queries", "sentences", "repeats")}
    packages = {name: version(name) for name in ("lancedb", "faiss-cpu")}
    record = {"settings": settings, "packages": packages, "environment": environment(), "sides": rows}
    write_results(f"index_scale_{options.vectors}", record, options.output)


def measure_side(options: argparse.Namespace) -> dict[str, Any]:
    """Measure a library in this process: build, search, add, and search again."""
    target = options.work / options.side.partition(" ")[0].strip(",")
    shutil.rmtree(target, ignore_errors=True)
    target.unlink(missing_ok=True)
    before = process_memory()
    side, queries = SIDES[options.side](target), np.load(options.work / "queries.npy")
    row: dict[str, Any] = {}

    def time_job(name: str, job: Callable[[], object]) -> None:
        began, computed = time.perf_counter(), time.process_time()
        job()
        row[f"{name}seconds"], row[f"{name}cpu_seconds"] = time.perf_counter() - began, time.process_time() - computed

    def time_search(prefix: str, file: str) -> None:
        nearest = np.load(options.work / file)
        jobs = {"": lambda: [side.search(query[None])[0] for query in queries], "many_": lambda: side.search(queries)}
        for way, job in jobs.items():
            row[f"{prefix}{way}recall"] = recall(job(), nearest)
            for clock, title in ((time.perf_counter, "second"), (time.process_time, "cpu_second")):
                turns = side_by_side({"search": job}, options.repeats, clock=clock)["search"]
                row[f"{prefix}{way}queries_per_{title}"] = [len(queries) / seconds for seconds in turns]

    time_job("build_", lambda: side.build(np.load(options.work / "vectors.npy", mmap_mode="r")))
    time_search("", "nearest.npy")
    time_job("add_", lambda: side.add(np.load(options.work / "more.npy")))
    time_search("after_", "nearest_of_all.npy")
    files = [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]
    sizes = {"memory_bytes": process_memory() - before, "peak_bytes": process_memory(peak=True) - before}
    return {**row, **sizes, "disk_bytes": sum(path.stat().st_size for path in files)}


def make_vectors(options: argparse.Namespace) -> tuple[Vectors, Vectors, Vectors]:
    """Return vectors, vectors to add, and queries; real sentences are encoded only once."""
    path = options.work / f"sentences {options.sentences} {options.queries}.npy"
    if not path.exists():
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, encode_sentences(options.base, options.sentences + options.queries))
    real = np.load(path)
    queries, real = real[: options.queries], real[options.queries :]
    near = np.concatenate([nearest_rows(real, part, NEIGHBOURS + 1) for part in np.array_split(real, 20)])[:, 1:]
    generator = np.random.default_rng(0)
    count = options.vectors + options.more
    vectors = np.empty((count, real.shape[1]), dtype=np.float32)
    for rows in np.array_split(np.arange(count), max(1, count // 50_000)):
        sentence = generator.integers(len(real), size=len(rows))
        neighbour = near[sentence, generator.integers(near.shape[1], size=len(rows))]
        share = generator.uniform(0, 0.5, size=(len(rows), 1))
        noise = generator.normal(size=(len(rows), real.shape[1])) * NOISE / np.sqrt(real.shape[1])
        vectors[rows] = unit_rows((1 - share) * real[sentence] + share * real[neighbour] + noise)
    first, later = vectors[: options.vectors], vectors[options.vectors :]
    for name, array in (("vectors", first), ("more", later), ("queries", queries)):
        np.save(options.work / f"{name}.npy", array)
    return first, later, queries


def encode_sentences(base: str, count: int) -> Vectors:
    """Encode distinct sentences of BBC News, in random order."""
    texts = [document.text for document in read_documents(packaged_corpus_path(), encoding="latin-1")]
    segment = make_segmenter("punkt", lambda: texts)
    sentences = sorted({sentence for text in texts for sentence in segment(text) if len(sentence.split()) >= 5})
    order = np.random.default_rng(0).permutation(len(sentences))[:count]
    model = load_model(base).model
    vectors = model.encode([sentences[row] for row in order], batch_size=64, show_progress_bar=True)
    return np.asarray(unit_rows(vectors), dtype=np.float32)


def nearest_rows(vectors: Vectors, queries: Vectors, k: int = K) -> NDArray[np.int64]:
    """Find the nearest vectors by exact search; row numbers, ``[queries, k]``."""
    best, scores = np.zeros((len(queries), 0), dtype=np.int64), np.zeros((len(queries), 0), dtype=np.float32)
    for start in range(0, len(vectors), 100_000):
        products = queries @ vectors[start : start + 100_000].T
        top = np.argpartition(-products, min(k, products.shape[1] - 1), axis=1)[:, :k]
        best = np.concatenate([best, start + top], axis=1)
        scores = np.concatenate([scores, np.take_along_axis(products, top, axis=1)], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(best, order, axis=1)


def recall(results: list[list[int]], nearest: NDArray[np.int64]) -> float:
    """Return the share of the nearest vectors among the results."""
    hits = [len({*names} & {*expected}) for names, expected in zip(results, nearest.tolist(), strict=True)]
    return float(np.mean(hits)) / nearest.shape[1]


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    settings = record["settings"]

    def rate(values: list[float]) -> str:
        return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"

    return document(
        f"# {settings['vectors']:,} vectors",
        explanation(__doc__),
        f"{settings['queries']} queries, one at a time and all in one batch. Queries per second, by wall and by "
        f"CPU time, are medians (lowest to highest) of {settings['repeats']} turns. Times for building and "
        "adding include writing to disk. Memory is the process's increase, mapped vectors included; peak is "
        "its maximum.",
        table(
            {
                "": name,
                "build, s": f"{row['build_seconds']:,.0f}",
                "queries / s": rate(row["queries_per_second"]),
                "queries / CPU s": rate(row["queries_per_cpu_second"]),
                f"recall@{K}": f"{row['recall']:.3f}",
                "batched queries / s": rate(row["many_queries_per_second"]),
                "batched queries / CPU s": rate(row["many_queries_per_cpu_second"]),
                f"add {settings['more']:,}, s": f"{row['add_seconds']:,.1f}",
                "queries / s after adding": rate(row["after_queries_per_second"]),
                f"recall@{K} after adding": f"{row['after_recall']:.3f}",
                "disk, MB": f"{row['disk_bytes'] / 1e6:,.0f}",
                "memory, MB": f"{row['memory_bytes'] / 1e6:,.0f}",
                "peak, MB": f"{row['peak_bytes'] / 1e6:,.0f}",
            }
            for name, row in record["sides"].items()
        ),
        machines=[{**record["environment"], **record["packages"]}],
        command=f"python -m benchmarks.index_scale --vectors {settings['vectors']} --more {settings['more']} "
        f"--queries {settings['queries']} --repeats {settings['repeats']}",
    )


if __name__ == "__main__":
    main()
