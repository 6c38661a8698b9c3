"""Benchmarks by name: found, read once, and opened memory-mapped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, concatenate_datasets

from simlte_st.data.documents import DocumentReader
from simlte_st.datasets.benchmark import Benchmark, CitationBenchmark
from simlte_st.datasets.citations import CitationSet
from simlte_st.datasets.places import ReadOptions
from simlte_st.datasets.registry import find_set
from simlte_st.datasets.splits import split_strings, stratified_split
from simlte_st.datasets.store import (
    PAIRS,
    store_documents,
    store_folder,
    stored,
    stored_report,
    watched,
    write_documents,
    write_rows,
)
from simlte_st.datasets.textset import Found, TextSet
from simlte_st.errors import ConfigurationError, EmptyCorpusError
from simlte_st.files import atomic_path, write_json

PAIRS_WITHOUT_TEXT = "pair of which a text is missing"

PathLike = str | os.PathLike[str]


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
    limit: int | None = None,
    seed: int = 0,
    test_share: float = 0.2,
    text_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    encoding: str | None = None,
    max_characters: int | None = None,
    cache_dir: PathLike | None = None,
    progress: bool = False,
    **own: Any,
) -> Benchmark | CitationBenchmark:
    """Load a data set of the papers.

    It is looked for at the path, else in an installed package, else on the Hub. What is found is read once, document
    by document, into an Arrow file on disk that is memory-mapped from then on; a file that changes, or other options,
    are read anew. A row that cannot be used is skipped and counted in the report, never fatal.

    Args:
        name: ``fakenews``, ``20news``, ``arxiv``, ``nyt``, ``bbc`` or ``aan``.
        path: The data set in the form it comes in (``simlte data list`` tells it), a table (``.parquet``, ``.jsonl``,
            ``.csv``, ``.tsv``) with the columns text and label, and split and id where it has them, or a folder with
            such tables named after the splits (``train.jsonl``, ``test.jsonl``).
        limit: Read the first so many usable documents only; for ``aan`` so many pairs of each file, or links.
        seed: Decides the split of a data set that has none, and the pairs of ``aan`` made of papers and links.
        test_share: Share of each class that goes to the test, where the data set has no split.
        text_column: Column of the text, where a table has it under another name; likewise the next three.
        label_column: Column of the class.
        id_column: Column of the ids.
        split_column: Column of the splits.
        encoding: Encoding of text files and tables, where it is another one than the data set comes in.
        max_characters: Longer texts are skipped and counted (default: 20 million; 2 million for ``fakenews``).
        cache_dir: Folder of the Arrow files (default: ``benchmarks`` in the user's place, see ``SIMLTE_ST_HOME``).
        progress: Show a progress bar while reading.
        own: Options of the data set. ``arxiv``: ``text="title+abstract"`` or ``"abstract"``, ``classes="archive"`` (the
            papers' 38) or ``"category"``. ``20news`` as a folder: ``remove="headers"``, of headers, footers and quotes.

    Returns:
        A :class:`CitationBenchmark` for ``aan``, else a :class:`Benchmark`.

    Raises:
        ConfigurationError: There is no data set of that name, or an option is out of its range.
        DataError: The data set is nowhere (the message says where to get it and under which licence), or what is at
            the path is something else, truncated or corrupt.
        EmptyCorpusError: It holds no usable document.
    """
    found_set = find_set(name)
    options = _read_options(found_set, text_column, label_column, id_column, split_column, encoding, max_characters)
    _check_limit(limit)
    if not 0 < test_share < 1:
        raise ConfigurationError(f"test_share must be above 0 and below 1, not {test_share}.")
    place = Path(path).expanduser() if path is not None else None
    if isinstance(found_set, CitationSet):
        return _load_citations(found_set, place, options, own, limit, seed, cache_dir, progress)
    found = found_set.find(place, options, own)
    reader = _reader(found, options, limit)
    folder = store_folder(name, [found.key, repr(options), sorted(own.items()), limit], cache_dir)
    store_documents(reader, folder, progress)
    rows, origin = _with_split(stored(folder), test_share, seed)
    labels = pc.unique(rows.data.column("label")).to_pylist()
    return Benchmark(
        card=found_set.card,
        rows=rows,
        label_names=tuple(sorted(label for label in labels if label is not None)),
        split_origin=origin,
        source=found.name,
        report=stored_report(folder),
        notes=(*found_set.card.notes, *found.notes),
    )


def read_benchmark(
    name: str,
    path: PathLike | None = None,
    *,
    limit: int | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    encoding: str | None = None,
    max_characters: int | None = None,
    **own: Any,
) -> DocumentReader:
    """Read a data set of labelled documents one by one, storing nothing: for a look, or for counting.

    Args:
        name: As for :func:`load_benchmark`, without ``aan``.
        path: As for :func:`load_benchmark`, and so the others.
        limit: Stop after so many usable documents.
        text_column: Column of the text.
        label_column: Column of the class.
        id_column: Column of the ids.
        split_column: Column of the splits.
        encoding: Encoding of text files and tables.
        max_characters: Longer texts are skipped and counted.
        own: Options of the data set.

    Returns:
        A reader that can be iterated any number of times; a document's ``split`` is set where the source has one.

    Raises:
        ConfigurationError: As :func:`load_benchmark`; also for ``aan``, which has pairs.
        DataError: As :func:`load_benchmark`.
    """
    found_set = find_set(name)
    if not isinstance(found_set, TextSet):
        raise ConfigurationError(f"{name!r} has pairs of papers: load it with load_benchmark({name!r}).")
    options = _read_options(found_set, text_column, label_column, id_column, split_column, encoding, max_characters)
    _check_limit(limit)
    found = found_set.find(Path(path).expanduser() if path is not None else None, options, own)
    return _reader(found, options, limit)


def _reader(found: Found, options: ReadOptions, limit: int | None) -> DocumentReader:
    return DocumentReader(found.name, found.events, options.max_characters, limit, once=False)


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit must be at least 1, or None for all documents, not {limit}.")


def _read_options(
    found_set: TextSet | CitationSet,
    text: str | None,
    label: str | None,
    id_: str | None,
    split: str | None,
    encoding: str | None,
    max_characters: int | None,
) -> ReadOptions:
    default = found_set.max_characters if isinstance(found_set, TextSet) else ReadOptions().max_characters
    if max_characters is not None and max_characters < 1:
        raise ConfigurationError(f"max_characters must be at least 1, not {max_characters}.")
    return ReadOptions(text, label, id_, split, encoding, max_characters or default)


def _with_split(rows: Dataset, test_share: float, seed: int) -> tuple[Dataset, str]:
    """Give the rows without their keys and with a split, and say where that is from."""
    table = rows.data
    public = rows.remove_columns("key")
    if table.column("split").null_count < len(rows):
        return public, "of the data set"
    codes = pc.dictionary_encode(table.column("label").combine_chunks())
    classes = pc.fill_null(codes.indices, -1).to_numpy(zero_copy_only=False)
    keys = table.column("key").to_numpy()
    sides = stratified_split(classes, keys, test_share, seed)
    column = Dataset(pa.table({"split": split_strings(sides)}))
    public = concatenate_datasets([public.remove_columns("split"), column], axis=1)
    return public, f"made here: {test_share:.0%} of each class for the test, seed {seed}, copies on one side"


def _load_citations(
    found_set: CitationSet,
    path: Path | None,
    options: ReadOptions,
    own: Mapping[str, Any],
    limit: int | None,
    seed: int,
    cache_dir: PathLike | None,
    progress: bool,
) -> CitationBenchmark:
    found = found_set.find(path, options, own, limit, seed)
    folder = store_folder(found_set.card.name, found.key, cache_dir)
    if not (folder / "report.json").exists():
        reader = DocumentReader(found.name, found.papers.events, options.max_characters, None, once=False)
        known: set[str] = set()
        with atomic_path(folder) as temporary:
            temporary.mkdir()

            def papers() -> Any:
                for document in watched(reader, progress):
                    known.add(document.id)
                    yield document

            write_documents(temporary / "papers.arrow", papers())
            pairs, missing = found.papers.pairs(known)
            if not pairs:
                raise EmptyCorpusError(f"{found.name} holds no pair of papers: {reader.report.summary()}")
            write_rows(
                temporary / "pairs.arrow",
                PAIRS,
                ({"citing": a, "cited": b, "label": label, "split": split} for a, b, label, split in pairs),
            )
            if missing:
                reader.report.ignored[PAIRS_WITHOUT_TEXT] = missing
            write_json(temporary / "report.json", reader.report.to_dict())
    return CitationBenchmark(
        card=found_set.card,
        papers=stored(folder, "papers").select_columns(["id", "text"]),
        pairs=stored(folder, "pairs"),
        split_origin=found.origin,
        source=found.name,
        report=stored_report(folder),
        notes=found_set.card.notes,
    )
