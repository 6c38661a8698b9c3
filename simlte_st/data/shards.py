"""Documents in shards that are never all in memory: parquet files anywhere, or a streamed data set."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from glob import has_magic
from typing import Any

from simlte_st.data import hub
from simlte_st.data.arrow import is_instance
from simlte_st.data.config import SourceConfig
from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader
from simlte_st.data.report import ReadReport
from simlte_st.data.sources import Source
from simlte_st.data.tables import Columns, Event, Row, choose_columns, read_table
from simlte_st.data.text_files import BrokenSourceError, file_version
from simlte_st.errors import DataError, EmptyCorpusError

_ROWS = 64
"""Rows that are read at once; ``datasets`` would read a row group of parquet, which may be all of a file."""

KINDS = (
    "parquet files (a path, a folder, a pattern, or an address that fsspec knows, such as s3://bucket/*.parquet or "
    "hf://datasets/OWNER/NAME/*.parquet), several of these, hub:NAME, or a datasets.IterableDataset"
)
"""What :func:`open_shards` takes, in words."""


@dataclass(frozen=True)
class Shards:
    """A source of documents in shards, each of which can be read from any row on."""

    name: str
    dataset: Any  # a datasets.IterableDataset
    names: Sequence[str]  # of its shards: their files, if it is made of files
    config: SourceConfig  # the columns to read
    versions: Sequence[tuple[int, int] | None] = ()  # of files of this machine, when they were opened

    def _check_unchanged(self, shard: int) -> None:
        if self.versions and file_version(self.names[shard]) != self.versions[shard]:
            raise DataError(f"{self.names[shard]} changed since the run began: run it again when nothing writes to it.")

    def first(self, limit: int, order: Sequence[int]) -> DocumentReader:
        """Return the reader of the first documents, with the shards in an order."""
        return DocumentReader(Source(self.name, Reading(self, order).events), limit=limit)

    def events(self, shard: int, row: int) -> Iterator[Event]:
        """Read a shard from a row on."""
        name = self.names[shard]
        part = self.dataset.shard(num_shards=len(self.names), index=shard)
        try:
            for event in read_table(hub.dataset_table(part, name, row, _ROWS), self.config):
                self._check_unchanged(shard)
                yield event
            self._check_unchanged(shard)
        except DataError:
            raise
        except Exception as error:  # each library, and each version of it, has its own
            raise BrokenSourceError(f"{name} is truncated, corrupt or unreadable ({hub.in_short(error)})") from error


class Reading:
    """The documents of shards, read once, with the shards in an order and from a row on.

    Ids of the source stay, even if several documents share one; a document without an id has the hash of its text. So
    ids do not depend on what was read before, and memory does not grow with what is read. After every document,
    ``shard`` is the number of shards that are read to their end, and ``row`` the number of rows read of the next one.
    """

    def __init__(self, shards: Shards, order: Sequence[int], shard: int = 0, row: int = 0) -> None:
        self.shard, self.row = shard, row
        self._shards, self._order = shards, order
        self._reader = DocumentReader(Source(shards.name, self.events), remember=False)

    @property
    def report(self) -> ReadReport:
        """What came of the rows so far."""
        return self._reader.report

    def __iter__(self) -> Iterator[Document]:
        """Continue reading."""
        at_beginning = (self.shard, self.row) == (0, 0)
        try:
            yield from self._reader
        except EmptyCorpusError:
            if at_beginning:
                raise

    def events(self) -> Iterator[Event]:
        """Return the events of the shards."""
        while self.shard < len(self._order):
            number = self._order[self.shard]
            for event in self._shards.events(number, self.row):
                if isinstance(event, Columns):
                    yield event
                    continue
                event = replace(event, where=f"{self._shards.names[number]}, row {self.row:,}")
                self.row += 1
                yield replace(event, made_id=None) if isinstance(event, Row) else event
            self.shard, self.row = self.shard + 1, 0


def open_shards(
    source: Any, text_column: str | None = None, id_column: str | None = None, label_column: str | None = None
) -> Shards:
    """Open documents in shards; the columns are those of the first file."""
    config = SourceConfig(text_column=text_column, id_column=id_column, label_column=label_column)
    if is_instance(source, "datasets", "IterableDataset"):
        return _of_dataset(source, "the IterableDataset", config)
    if hub.is_hub(source):
        place, configuration, split = hub.parse_hub(source)
        return _of_dataset(hub.load_hub(place, [split], configuration, streaming=True)[0], source, config)
    places = source if isinstance(source, (list, tuple)) else [source]
    if not places or not all(isinstance(place, (str, os.PathLike)) for place in places):
        raise DataError(f"A {type(source).__name__} is not read as a stream. What is: {KINDS}.")
    return _of_parquet([os.fspath(place) for place in places], config)


def check_places(source: Any) -> None:
    """Check, before a library is imported that opens them, that files and folders of a stream are there."""
    for place in source if isinstance(source, (list, tuple)) else [source]:
        path = os.fspath(place) if isinstance(place, (str, os.PathLike)) else ""
        if path and not hub.is_hub(place) and "://" not in path and not has_magic(path) and not os.path.exists(path):
            raise DataError(f"There is no file or folder {path!r}. A stream is read from {KINDS}.")


def _of_dataset(dataset: Any, name: str, config: SourceConfig) -> Shards:
    if dataset.features is None:
        raise DataError(f"{name} does not say which columns it has: give it features=, or cast it to some.")
    number = dataset.num_shards
    names = [name] if number == 1 else [f"shard {shard + 1:,} of {number:,} of {name}" for shard in range(number)]
    return Shards(name, dataset, names, _chosen(config, dataset, name))


def _of_parquet(places: list[str], config: SourceConfig) -> Shards:
    check_places(places)
    import datasets

    name = places[0] if len(places) == 1 else f"{len(places):,} sources"
    patterns = [os.path.join(place, "**", "*.parquet") if os.path.isdir(place) else place for place in places]
    options: dict[str, Any] = {"data_files": patterns, "batch_size": _ROWS}
    try:
        builder = datasets.load_dataset_builder("parquet", **options)
        files = [str(file) for file in builder.config.data_files["train"]]
        dataset = builder.as_streaming_dataset("train") if files else None
        if dataset is None or dataset.features is None:
            raise DataError(f"There is no parquet file at {name}.")
        config = _chosen(config, dataset, files[0])
        # Once more, to read no other columns: they may be most of the bytes.
        table = hub.dataset_table(dataset, files[0])
        columns = list(dict.fromkeys(table.column_of(each) for each in config.named_columns().values()))
        dataset = datasets.load_dataset_builder("parquet", columns=columns, **options).as_streaming_dataset("train")
    except DataError:
        raise
    except Exception as error:  # no such place, no right to it, no library for it, no network, no parquet file
        raise DataError(f"{name} cannot be opened ({hub.in_short(error)}). A stream is read from {KINDS}.") from error
    return Shards(name, dataset, files, config, list(map(file_version, files)))


def _chosen(config: SourceConfig, dataset: Any, name: str) -> SourceConfig:
    """Return the config with the columns of a data set that are to be read."""
    text, id, label = choose_columns(config, hub.dataset_table(dataset, name))
    return replace(config, text_column=text, id_column=id, label_column=label)
