"""Documents from any source, one by one, or in shards: the functions that every other begins with."""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from simlte_st.arguments import Count, checked
from simlte_st.data.arrow import dataset_table, in_short, is_hub, is_instance, open_hub
from simlte_st.data.document import Document
from simlte_st.data.reader import DocumentReader
from simlte_st.data.rows import BrokenSourceError, Columns, Event, Reading, Row
from simlte_st.data.sources import Source
from simlte_st.data.tables import choose_columns, read_table
from simlte_st.errors import ConfigurationError, DataError

__all__ = ["DocumentReader", "ShardReader", "Shards", "list_documents", "read_documents"]

logger = logging.getLogger(__name__)

_ROWS = 64
"""Rows that are read at once; ``datasets`` would read a row group of parquet, which may be all of a file."""

KINDS = (
    "parquet files (a path, a folder, a pattern, or an address that fsspec knows, such as s3://bucket/*.parquet or "
    "hf://datasets/OWNER/NAME/*.parquet), several of these, hub:NAME, or a datasets.IterableDataset"
)
"""The sources of :func:`open_shards`, in words."""


@checked
def read_documents(
    source: Any,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    encoding: str = "utf-8",
    limit: Count | None = None,
    mails: bool = False,
    drop_quotes: bool = False,
    html: bool = False,
    metadata: bool = False,
    max_characters: Count = 20_000_000,
    stream: bool = False,
) -> DocumentReader:
    """Read documents, one by one.

    A row or file that cannot be used is skipped and counted in the reader's report; none is lost silently.

    Args:
        source: One of: a folder of files that hold a document each (with its subfolders; the id is the path in the
            folder), such a file, or any other file of text; a file that is a table; ``hub:NAME``, ``hub:NAME:SPLIT`` or
            ``hub:NAME:CONFIG:SPLIT`` for a data set of the Hugging Face Hub; a ``datasets.Dataset`` or
            ``IterableDataset``; a pandas or polars ``DataFrame`` or a ``pyarrow.Table``; an iterable of strings (a
            list, a generator, a column of the former), of mappings, or of :class:`Document`, which keep their id, label
            and split, whatever columns are named; a list of paths and ``hub:`` names, which are read one after the
            other. A reader that this function made is returned as it is.
            :data:`simlte_st.data.formats.FORMATS` lists the files that can be read: text, Markdown, e-mails, notebooks,
            HTML, XML, PDF, DOCX, ODT, RTF and EPUB hold a document each; JSON (an array of objects or of strings, or
            JSON lines), CSV, TSV and mailboxes, also compressed by gzip or Zstandard, and parquet are tables. Those
            from HTML to EPUB need the extra ``documents``; in a folder, they are skipped and counted without it. Of
            several sources, the ids that are made name the source: ``b.csv:17``, ``folder/a.txt``.
        text_column: Column of the text, or its path in a struct, such as ``article.body`` (default: text; else the
            first of content, body, document, article, abstract, full_text, raw and message; else the only column of
            strings, or the one with by far the longest). Of several columns of one name, the second is ``NAME_2``.
        id_column: Column of the ids, or its path (default: id, doc_id, document_id or _id; else the row's number from
            0, or the text's hash for texts without rows, and in an index). A second document with the same id gets
            ``#2`` after it.
        label_column: Column of the classes, or its path; read only when named. For Markdown and e-mails, the name of a
            header.
        encoding: Encoding of text, JSON, CSV and HTML files that are not valid UTF-8. A byte order mark, or the
            encoding that an HTML file declares, takes precedence.
        limit: Maximum number of documents to read (default: all).
        mails: Parse raw e-mails: text files, files without a known suffix, and texts that begin with e-mail headers.
        drop_quotes: Leave quoted text and signatures out of e-mails.
        html: Turn texts with HTML tags, such as tickets in a table, into what a browser shows.
        metadata: Keep the values of all other columns, the label's too, as the documents' metadata. Folders such as
            ``year=2020`` are columns.
        max_characters: Maximum length of a text in characters; longer texts are skipped and counted.
        stream: Read shards in random order without holding them, to train on a corpus larger than the disk. The source
            must be parquet files (also at an address such as ``s3://bucket/*.parquet``), ``hub:NAME`` or a
            ``datasets.IterableDataset``.

    Returns:
        The reader: iterate it for the documents, as often as wanted; see its ``report`` afterwards. With ``stream=``,
        the :class:`~simlte_st.data.documents.Shards`, for :func:`~simlte_st.train`.

    Raises:
        DataError: The source does not exist or is of no known form, or there is no such encoding. Iterating raises it
            too, for missing columns and for broken files, and ``EmptyCorpusError`` if nothing is usable.
        MissingExtraError: The source is a file that needs the extra ``documents``, which is not installed.
        ConfigurationError: An argument is out of its range, a reader is given with further arguments, or ``stream=``
            with one that streams do not know.
    """
    options = {name: value for name, value in locals().items() if name not in ("source", "stream")}
    reading = Reading(**options)
    if isinstance(source, (DocumentReader, Shards)):
        if stream or reading != Reading():
            raise ConfigurationError("A reader is read as it was made: pass the options to its with_options().")
        return cast(DocumentReader, source)
    # Only training takes shards, and recognises them by their type.
    return cast(DocumentReader, open_shards(source, reading)) if stream else DocumentReader(source, reading)


def list_documents(source: Any) -> list[Document]:
    """Return all documents of a source; what could not be used is logged."""
    reader = read_documents(source)
    documents = list(reader)
    if reader.report.skipped:
        logger.warning("%s", reader.report.summary())
    return documents


@dataclass(frozen=True)
class Shards:
    """A source of documents in shards, each of which can be read from any row on."""

    name: str
    dataset: Any  # a datasets.IterableDataset
    names: Sequence[str]  # of its shards: their files, if it is made of files
    reading: Reading  # the columns to read
    given: Any  # the source that it was opened from

    def with_options(self, **options: Any) -> Shards:
        """Open the same source with some options of :func:`~simlte_st.data.read_documents` replaced."""
        return open_shards(self.given, replace(self.reading, **options))

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
            if "Multiple matches for FieldRef" in str(error):
                raise DataError(
                    f"{name} has two columns of one name: rename one, or read it without stream=."
                ) from None
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

    def __iter__(self) -> Iterator[Document]:
        """Continue reading."""
        return iter(DocumentReader(Source(self._shards.name, self.events), remember=False))

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
        return _of_dataset(source, "the IterableDataset", reading, source)
    if is_hub(source):
        return _of_dataset(open_hub(source), source, reading, source)
    return _of_parquet(source, reading)


def _of_dataset(dataset: Any, name: str, reading: Reading, given: Any) -> Shards:
    if dataset.features is None:
        raise DataError(f"{name} does not say which columns it has: give it features=, or cast it to some.")
    number = dataset.num_shards
    names = [name] if number == 1 else [f"shard {shard + 1:,} of {number:,} of {name}" for shard in range(number)]
    choose_columns(reading, dataset_table(dataset, name))
    return Shards(name, dataset, names, reading, given)


def _of_parquet(source: Any, reading: Reading) -> Shards:
    places = source if isinstance(source, (list, tuple)) else [source]
    if not places or not all(isinstance(place, (str, os.PathLike)) for place in places):
        raise DataError(f"A {type(source).__name__} is not read as a stream. A stream is read from {KINDS}.")
    places = [os.fspath(place) for place in places]
    for place in places:  # before the import that takes seconds
        if not ("://" in place or glob.has_magic(place) or os.path.lexists(place)):
            raise DataError(f"There is no file or folder {place!r}. A stream is read from {KINDS}.")
        if os.path.lexists(place) and "::" in os.path.abspath(place):  # which fsspec reads as a chain of addresses
            raise DataError(f"{place}: a path with '::' cannot be streamed. Rename it, or read it without stream=.")
    import datasets

    name = places[0] if len(places) == 1 else f"{len(places):,} sources"
    # To datasets all are patterns: in one for what exists, neither brackets nor a leading ~ may have a meaning.
    names = [glob.escape(os.path.abspath(place)) if os.path.lexists(place) else place for place in places]
    patterns = [each + "/**/*.parquet" * os.path.isdir(place) for place, each in zip(places, names, strict=True)]
    options: dict[str, Any] = {"data_files": patterns, "batch_size": _ROWS}
    try:
        builder = datasets.load_dataset_builder("parquet", **options)
        files = [str(file) for file in builder.config.data_files["train"]]
        dataset = builder.as_streaming_dataset("train") if files else None
        if dataset is None or dataset.features is None:
            raise DataError(f"There is no parquet file at {name}.")
        # Once more, to read no other columns: they may be most of the bytes.
        table = dataset_table(dataset, files[0])
        columns = list(dict.fromkeys(table.column_of(each) for each in choose_columns(reading, table) if each))
        dataset = datasets.load_dataset_builder("parquet", columns=columns, **options).as_streaming_dataset("train")
    except DataError:
        raise
    except Exception as error:  # no such place, no right to it, no library for it, no network, no parquet file
        raise DataError(f"{name} cannot be opened ({in_short(error)}). A stream is read from {KINDS}.") from error
    return Shards(name, dataset, files, reading, source)
