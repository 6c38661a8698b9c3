"""Load data sets by name: convert them once to Arrow files, memory-map and, if needed, split them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features, Value, concatenate_datasets

from benchmarks.datasets.sets import SETS, Row, table_rows
from benchmarks.papers.link_pairs import Links, number_links
from simlte_st.errors import DataError
from simlte_st.evaluation.splits import NEITHER, stratified_split
from simlte_st.files import home
from simlte_st.reading.document import text_key

PathLike = str | os.PathLike[str]

FEATURES = Features({name: Value("string") for name in ("id", "text", "label", "split")})


@dataclass(frozen=True)
class Benchmark:
    """Labelled documents, memory-mapped from disk.

    Attributes:
        rows: The documents, with string columns ``id``, ``text``, ``label`` (may be None) and ``split`` (``"train"``,
            ``"test"`` or None).
    """

    rows: Dataset

    @property
    def train(self) -> Dataset:
        """The training rows."""
        return self.part("train")

    @property
    def test(self) -> Dataset:
        """The test rows."""
        return self.part("test")

    def part(self, split: str) -> Dataset:
        """Return the rows of a split without copying them, unlike ``Dataset.filter``."""
        rows = pc.indices_nonzero(pc.equal(self.rows.data.column("split"), split))
        return self.rows.select(rows.to_numpy().astype("int64"))  # datasets rejects unsigned indices


@dataclass(frozen=True)
class CitationBenchmark:
    """Papers and their citations.

    Attributes:
        papers: The papers, with columns ``id`` and ``text``.
        links: The citations as pairs of row numbers, citing and cited, ``[links, 2]``, int64.
    """

    papers: Dataset
    links: Links


def load_benchmark(
    name: str, path: PathLike | None = None, *, test_share: float = 0.2, cache_dir: PathLike | None = None
) -> Benchmark:
    """Load one of the papers' labelled data sets from a path or an installed package.

    The set is converted once to a memory-mapped Arrow file, and again when its source changes. Unusable rows are
    skipped. A set without a split gets a stratified one that keeps equal texts together.
    """
    return Benchmark(_with_split(_load_rows(name, path, cache_dir), test_share))


def load_citations(path: PathLike | None, *, cache_dir: PathLike | None = None) -> CitationBenchmark:
    """Load the ACL Anthology Network, with each citation once and without self-citations and unknown papers."""
    papers = _load_rows("aan", path, cache_dir).select_columns(["id", "text"])
    ids = list(papers["id"])
    known_ids, citations = set(ids), table_rows(Path(str(path)).with_stem("aan_citations"))
    pairs = dict.fromkeys((row["citing"], row["cited"]) for row in citations)
    links = [pair for pair in pairs if pair[0] != pair[1] and known_ids.issuperset(pair)]
    return CitationBenchmark(papers, number_links(ids, links))


def _load_rows(name: str, path: PathLike | None, cache_dir: PathLike | None) -> Dataset:
    data_set = SETS[name]
    if path is None and data_set.packaged is not None:
        path = data_set.packaged()
    if path is None or not Path(path).exists():
        raise DataError(f"There is no {path or name}. {data_set.where_to_get()}")
    source = {"name": name, "path": str(Path(path).resolve()), "changed": Path(path).stat().st_mtime_ns}
    return Dataset.from_generator(_read_rows, FEATURES, str(cache_dir or home() / "benchmarks"), gen_kwargs=source)


def _read_rows(name: str, path: str, changed: int) -> Iterator[Row]:
    yield from SETS[name].rows(Path(path))


def _with_split(rows: Dataset, test_share: float) -> Dataset:
    """Return the rows with the data set's own split, or with a stratified one."""
    if rows.data.column("split").null_count < len(rows):
        return rows
    codes = pc.dictionary_encode(rows.data.column("label").combine_chunks())
    classes = pc.fill_null(codes.indices, -1).to_numpy(zero_copy_only=False)
    sides = stratified_split(classes, np.array([text_key(text) for text in rows["text"]]), test_share, seed=0)
    split = pc.take(pa.array(["train", "test"]), pa.array(sides.astype(np.int32), mask=sides == NEITHER))
    return concatenate_datasets([rows.remove_columns("split"), Dataset(pa.table({"split": split}))], axis=1)
