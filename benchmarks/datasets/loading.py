"""Load data sets by name: convert once to Arrow files, split if needed, and memory-map."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features, Value, concatenate_datasets

from benchmarks.datasets.sets import SETS, Row, table_rows
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
        """Return the rows of a split, without copying them as ``Dataset.filter`` would."""
        rows = pc.indices_nonzero(pc.equal(self.rows.data.column("split"), split))
        return self.rows.select(rows.to_numpy().astype("int64"))  # datasets does not accept unsigned indices


@dataclass(frozen=True)
class CitationBenchmark:
    """Papers and their citations.

    Attributes:
        papers: The papers, with columns ``id`` and ``text``.
        links: The citations, with columns ``citing`` and ``cited`` (ids of papers).
    """

    papers: Dataset
    links: Dataset


@overload
def load_benchmark(name: Literal["aan"], path: PathLike | None = None, **settings: Any) -> CitationBenchmark: ...
@overload
def load_benchmark(name: str, path: PathLike | None = None, **settings: Any) -> Benchmark: ...
def load_benchmark(
    name: str,
    path: PathLike | None = None,
    *,
    seed: int = 0,
    test_share: float = 0.2,
    cache_dir: PathLike | None = None,
) -> Benchmark | CitationBenchmark:
    """Load one of the papers' data sets from a path or from an installed package.

    The set is converted once to a memory-mapped Arrow file, and again when its source changes. Unusable rows are
    skipped. A set without a split gets a stratified one, with equal texts on one side.
    """
    known = SETS[name]
    if path is None and known.packaged is not None:
        path = known.packaged()
    if path is None or not Path(path).exists():
        raise DataError(f"There is no {path or name}. {known.where_to_get()}")
    place = Path(path)
    source = {"name": name, "path": str(place.resolve()), "changed": place.stat().st_mtime_ns}
    cache = str(cache_dir or home() / "benchmarks")
    rows = Dataset.from_generator(_rows, FEATURES, cache, gen_kwargs=source)
    if name == "aan":
        papers = set(rows["id"])
        pairs = [(row["citing"], row["cited"]) for row in table_rows(place.with_stem("aan_citations"))]
        pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1] and papers.issuperset(pair)]
        links = Dataset.from_dict({"citing": [one for one, _ in pairs], "cited": [other for _, other in pairs]})
        return CitationBenchmark(rows.select_columns(["id", "text"]), links)
    return Benchmark(_with_split(rows, test_share, seed))


def _rows(name: str, path: str, changed: int) -> Iterator[Row]:
    yield from SETS[name].rows(Path(path))


def _with_split(rows: Dataset, test_share: float, seed: int) -> Dataset:
    """Return the rows with the data set's split, or with a new one by class and text."""
    if rows.data.column("split").null_count < len(rows):
        return rows
    codes = pc.dictionary_encode(rows.data.column("label").combine_chunks())
    classes = pc.fill_null(codes.indices, -1).to_numpy(zero_copy_only=False)
    sides = stratified_split(classes, np.array([text_key(text) for text in rows["text"]]), test_share, seed)
    split = pc.take(pa.array(["train", "test"]), pa.array(sides.astype(np.int32), mask=sides == NEITHER))
    return concatenate_datasets([rows.remove_columns("split"), Dataset(pa.table({"split": split}))], axis=1)
