"""Documents in shards that are never all in memory: parquet files anywhere, or a streamed data set."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from simlte_st.data.arrow import dataset_table, in_short, is_hub, is_instance, open_hub
from simlte_st.data.document import Document
from simlte_st.data.reader import DocumentReader, ReadReport
from simlte_st.data.rows import BrokenSourceError, Columns, Event, Reading, Row
from simlte_st.data.sources import Source
from simlte_st.data.tables import choose_columns, read_table
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError

_ROWS = 64
"""Rows that are read at once; ``datasets`` would read a row group of parquet, which may be all of a file."""

KINDS = (
    "parquet files (a path, a folder, a pattern, or an address that fsspec knows, such as s3://bucket/*.parquet or "
    "hf://datasets/OWNER/NAME/*.parquet), several of these, hub:NAME, or a datasets.IterableDataset"
)
"""The sources of :func:`open_shards`, in words."""


@dataclass(frozen=True)
class Shards:
    """A source of documents in shards, each of which can be read from any row on."""

    name: str
    dataset: Any  # a datasets.IterableDataset
    names: Sequence[str]  # of its shards: their files, if it is made of files
    reading: Reading  # the columns to read
    given: Any = None  # the source that it was opened from ...
    asked: Reading | None = None  # ... and the options

    def with_options(self, **options: Any) -> Shards:
        """Open the same source with some options of :func:`~simlte_st.data.read_documents` replaced."""
        return open_shards(self.given, replace(self.asked or Reading(), **options))

    def first(self, limit: int, order: Sequence[int]) -> DocumentReader:
        """Return the reader of the first documents, with the shards in an order."""
        return DocumentReader(Source(self.name, ShardReader(self, order).events), Reading(limit=limit))

    def events(self, shard: int, row: int) -> Iterator[Event]:
        """Read a shard from a row on."""
        name = self.names[shard]
        part = self.dataset.shard(num_shards=len(self.names), index=shard)
        try:
            yield from read_table(dataset_table(part, name, row, _ROWS), self.reading)
        except DataError:
            raise
        except Exception as error:  # each library, and each version of it, has its own
            raise BrokenSourceError(f"{name} is truncated, corrupt or unreadable ({in_short(error)})") from error


class ShardReader:
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
        """The report of the rows so far."""
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


def open_shards(source: Any, reading: Reading) -> Shards:
    """Open documents in shards; the columns are those of the first file."""
    columns = {**asdict(Reading()), **reading.named_columns()}
    if other := [name for name, value in asdict(reading).items() if value != columns[name]]:
        raise ConfigurationError(f"{other[0]}= does not work with stream=True, which reads the columns of tables.")
    if is_instance(source, "datasets", "IterableDataset"):
        opened = _of_dataset(source, "the IterableDataset", reading)
    elif is_hub(source):
        opened = _of_dataset(open_hub(source), source, reading)
    else:
        opened = _of_parquet(source, reading)
    return replace(opened, given=source, asked=reading)


def _of_dataset(dataset: Any, name: str, reading: Reading) -> Shards:
    if dataset.features is None:
        raise DataError(f"{name} does not say which columns it has: give it features=, or cast it to some.")
    number = dataset.num_shards
    names = [name] if number == 1 else [f"shard {shard + 1:,} of {number:,} of {name}" for shard in range(number)]
    return Shards(name, dataset, names, _chosen(reading, dataset, name))


def _of_parquet(source: Any, reading: Reading) -> Shards:
    places = source if isinstance(source, (list, tuple)) else [source]
    if not places or not all(isinstance(place, (str, os.PathLike)) for place in places):
        raise DataError(f"A {type(source).__name__} is not read as a stream. A stream is read from {KINDS}.")
    import datasets

    places = [os.fspath(place) for place in places]
    name = places[0] if len(places) == 1 else f"{len(places):,} sources"
    patterns = [os.path.join(place, "**", "*.parquet") if os.path.isdir(place) else place for place in places]
    options: dict[str, Any] = {"data_files": patterns, "batch_size": _ROWS}
    try:
        builder = datasets.load_dataset_builder("parquet", **options)
        files = [str(file) for file in builder.config.data_files["train"]]
        dataset = builder.as_streaming_dataset("train") if files else None
        if dataset is None or dataset.features is None:
            raise DataError(f"There is no parquet file at {name}.")
        reading = _chosen(reading, dataset, files[0])
        # Once more, to read no other columns: they may be most of the bytes.
        table = dataset_table(dataset, files[0])
        columns = list(dict.fromkeys(table.column_of(each) for each in reading.named_columns().values()))
        dataset = datasets.load_dataset_builder("parquet", columns=columns, **options).as_streaming_dataset("train")
    except DataError:
        raise
    except Exception as error:  # no such place, no right to it, no library for it, no network, no parquet file
        raise DataError(f"{name} cannot be opened ({in_short(error)}). A stream is read from {KINDS}.") from error
    return Shards(name, dataset, files, reading)


def _chosen(reading: Reading, dataset: Any, name: str) -> Reading:
    """Return the options with the columns of a data set that are to be read."""
    text, id, label = choose_columns(reading, dataset_table(dataset, name))
    return replace(reading, text_column=text, id_column=id, label_column=label)
