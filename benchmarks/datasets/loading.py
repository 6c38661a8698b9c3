"""Data sets by name: found, read once into Arrow files, divided where they are not, and opened memory-mapped."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features, Value, concatenate_datasets
from datasets.arrow_writer import ArrowWriter
from numpy.typing import NDArray

from benchmarks.datasets.benchmark import Benchmark, CitationBenchmark
from benchmarks.datasets.citations import CitationSet, FoundPapers
from benchmarks.datasets.labelled import MOST_CHARACTERS, Found
from benchmarks.datasets.sets import find_set
from simlte_st.data.document import text_key
from simlte_st.data.documents import DocumentReader
from simlte_st.data.report import ReadReport
from simlte_st.data.sources import Source
from simlte_st.errors import EmptyCorpusError
from simlte_st.evaluation.splits import NEITHER, stratified_split
from simlte_st.files import atomic_path, home, read_json, write_json
from simlte_st.progress import with_progress_bar

logger = logging.getLogger(__name__)

PAIRS_WITHOUT_TEXT = "pair of which a text is missing"

PathLike = str | os.PathLike[str]

_FORMAT = 3  # of what is stored; older folders are not looked at
_STRING = Value("string")
_DOCUMENTS = Features({"id": _STRING, "text": _STRING, "label": _STRING, "split": _STRING, "key": Value("int64")})
_PAIRS = Features({"citing": _STRING, "cited": _STRING, "label": Value("int8"), "split": _STRING})
_BATCH = 256  # rows in a record batch ...
_BATCH_CHARACTERS = 32_000_000  # ... or fewer, of long texts: one batch is held in memory


@overload
def load_benchmark(name: Literal["aan"], path: PathLike | None = None, **settings: Any) -> CitationBenchmark: ...
@overload
def load_benchmark(
    name: Literal["fakenews", "20news", "arxiv", "nyt", "bbc"], path: PathLike | None = None, **settings: Any
) -> Benchmark: ...
@overload
def load_benchmark(name: str, path: PathLike | None = None, **settings: Any) -> Benchmark | CitationBenchmark: ...
def load_benchmark(
    name: str,
    path: PathLike | None = None,
    *,
    seed: int = 0,
    test_share: float = 0.2,
    cache_dir: PathLike | None = None,
    progress: bool = False,
) -> Benchmark | CitationBenchmark:
    """Load a data set of the papers.

    It is looked for at the path, else in an installed package, else on the Hub. What is found is read once, document
    by document, into an Arrow file on disk that is memory-mapped from then on; a file that changes
    is read anew. A row that cannot be used is skipped and counted in the report, never fatal.
    """
    data_set = find_set(name)
    place = Path(path).expanduser() if path is not None else None
    if isinstance(data_set, CitationSet):
        papers = data_set.find(place, seed)
        folder = _stored(name, papers, MOST_CHARACTERS, cache_dir, progress)
        return CitationBenchmark(
            card=data_set.card,
            papers=Dataset.from_file(str(folder / "documents.arrow")).select_columns(["id", "text"]),
            pairs=Dataset.from_file(str(folder / "pairs.arrow")),
            split_origin=papers.origin,
            source=papers.name,
            report=ReadReport(**read_json(folder / "report.json")),
            notes=data_set.card.notes,
        )
    found = data_set.find(place)
    folder = _stored(name, found, data_set.max_characters, cache_dir, progress)
    rows, origin = _with_split(Dataset.from_file(str(folder / "documents.arrow")), test_share, seed)
    return Benchmark(
        card=data_set.card,
        rows=rows,
        split_origin=origin,
        source=found.name,
        report=ReadReport(**read_json(folder / "report.json")),
        notes=(*data_set.card.notes, *found.notes),
    )


def _stored(
    name: str,
    found: Found,
    max_characters: int,
    cache_dir: PathLike | None,
    progress: bool,
) -> Path:
    """Read a data set into a folder of this version of it, unless it is there: Arrow files and ``report.json``."""
    key = json.dumps([_FORMAT, found.key], default=str)
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    folder = (Path(cache_dir) if cache_dir is not None else home() / "benchmarks") / f"{name}-{digest}"
    if folder.exists():
        if _is_whole(folder):
            return folder
        logger.warning("What was stored in %s is damaged: it is made anew.", folder)
    reader = DocumentReader(Source(found.name, found.events), max_characters)
    ids: set[str] = set()

    def rows() -> Iterable[dict[str, Any]]:
        for document in with_progress_bar(reader, "Reading", shown=progress):
            if isinstance(found, FoundPapers):
                ids.add(document.id)
            yield {
                "id": document.id,
                "text": document.text,
                "label": document.label,
                "split": document.split,
                "key": text_key(document.text),
            }

    with atomic_path(folder) as temporary:
        temporary.mkdir()
        _write(temporary / "documents.arrow", _DOCUMENTS, rows())
        if isinstance(found, FoundPapers):
            pairs, missing = found.pairs(ids)
            if not pairs:
                raise EmptyCorpusError(f"{found.name} holds no pair of papers: {reader.report.summary()}")
            if missing:
                reader.report.ignored[PAIRS_WITHOUT_TEXT] = missing
            _write(temporary / "pairs.arrow", _PAIRS, (dict(zip(_PAIRS, pair, strict=True)) for pair in pairs))
        write_json(temporary / "report.json", reader.report.to_dict())
    logger.info("Stored in %s", folder)
    return folder


def _is_whole(folder: Path) -> bool:
    """Return whether what is stored can be read: a full disk or a copy that broke off may have cut it."""
    try:
        ReadReport(**read_json(folder / "report.json"))
        for path in (folder / "documents.arrow", *folder.glob("pairs.arrow")):
            Dataset.from_file(str(path))
    except (OSError, ValueError, TypeError):  # pyarrow's errors are among them
        return False
    return True


def _write(path: Path, features: Features, rows: Iterable[dict[str, Any]]) -> None:
    characters = 0
    with ArrowWriter(path=str(path), features=features, writer_batch_size=_BATCH) as writer:
        for row in rows:
            writer.write(row)
            characters += len(row.get("text", ""))
            if characters >= _BATCH_CHARACTERS:  # a batch is held in memory
                writer.write_examples_on_file()
                characters = 0
        writer.finalize()


def _with_split(rows: Dataset, test_share: float, seed: int) -> tuple[Dataset, str]:
    """Return the rows without their keys and with a split, and say where that is from."""
    if rows.data.column("split").null_count < len(rows):
        return rows.remove_columns("key"), "of the data set"
    codes = pc.dictionary_encode(rows.data.column("label").combine_chunks())
    classes = pc.fill_null(codes.indices, -1).to_numpy(zero_copy_only=False)
    split = _split_strings(stratified_split(classes, rows.data.column("key").to_numpy(), test_share, seed))
    made = Dataset(pa.table({"split": split}))
    rows = concatenate_datasets([rows.remove_columns(["split", "key"]), made], axis=1)
    return rows, f"made here: {test_share:.0%} of each class for the test, seed {seed}, copies on one side"


def _split_strings(sides: NDArray[np.int8]) -> pa.Array:
    """Write a split as an Arrow column of strings, null for neither."""
    names = pa.array(["train", "test"])
    return pc.take(names, pa.array(sides.astype(np.int32), mask=sides == NEITHER))
