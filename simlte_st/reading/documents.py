"""Read documents from any source, one at a time or in shards."""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, overload

from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.reading.document import Document, DocumentSource
from simlte_st.reading.reader import DocumentReader, ReadReport, format_reason
from simlte_st.reading.rows import BrokenSourceError, Columns, Event, Reading, Row
from simlte_st.reading.sources import Source, open_source
from simlte_st.reading.tables import choose_columns, dataset_table, is_hub, is_instance, load_hub, read_table

__all__ = ["Document", "DocumentReader", "DocumentSource", "ReadReport", "format_reason"]
__all__ += ["ShardReader", "Shards", "list_documents", "read_documents"]

if TYPE_CHECKING:
    from datasets import IterableDataset

logger = logging.getLogger(__name__)

_ROWS = 64
"""Rows to read at a time; ``datasets`` would read a whole parquet row group, possibly the whole file."""

KINDS = (
    "parquet files (a path, a folder, a pattern, or an address supported by fsspec, such as s3://bucket/*.parquet or "
    "hf://datasets/OWNER/NAME/*.parquet), several of these, hub:NAME, or a datasets.IterableDataset"
)
"""Description of the sources accepted by :func:`open_shards`."""


@overload
def read_documents(
    source: DocumentSource, *, stream: Literal[True], text_column: str | None = None, id_column: str | None = None,
    label_column: str | None = None,
) -> Shards: ...  # fmt: skip
@overload
def read_documents(
    source: DocumentSource, *, text_column: str | None = None, id_column: str | None = None,
    label_column: str | None = None, encoding: str = "utf-8", limit: int | None = None, mails: bool = False,
    html: bool = False, metadata: bool = False, max_characters: int = 20_000_000,
    stream: Literal[False] = False,
) -> DocumentReader: ...  # fmt: skip
@check_arguments
def read_documents(
    source: DocumentSource,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    encoding: str = "utf-8",
    limit: Count | None = None,
    mails: bool = False,
    html: bool = False,
    metadata: bool = False,
    max_characters: Count = 20_000_000,
    stream: bool = False,
) -> DocumentReader | Shards:
    """Read documents, one at a time.

    Unusable rows and files are skipped, and the reader's report counts them.

    Args:
        source: A folder of files, including subfolders, with one document per file (the path inside the folder is its
            id); a single such file or any other text file; a table file; ``hub:NAME``, ``hub:NAME:SPLIT`` or
            ``hub:NAME:CONFIG:SPLIT`` for a data set on the Hugging Face Hub; a ``datasets.Dataset`` or
            ``IterableDataset``; a pandas or polars ``DataFrame`` or a ``pyarrow.Table``; an iterable of strings, of
            mappings, or of :class:`Document` objects, which keep their id, label and split; or a list of paths and
            ``hub:`` names, read in order. A reader is returned unchanged. :data:`simlte_st.reading.formats.FORMATS`
            lists the file formats. Text, Markdown, e-mails, notebooks, HTML, XML, PDF, DOCX, PPTX, MSG, ODT, RTF and
            EPUB hold one document each. JSON (an array of objects or strings, or JSON lines), CSV, TSV and mailboxes,
            optionally compressed with gzip or Zstandard, parquet and each sheet of an XLSX workbook that has a header
            are tables. HTML, XML, PDF, DOCX, PPTX, XLSX, MSG, ODT, RTF and EPUB need the "documents" extra; without it,
            such files in a folder are skipped and counted. With several sources, generated ids start with the source's
            name, and with parent folders if names repeat: ``b.csv:17``, ``folder/a.txt``.
        text_column: Column of text, or its path in a struct, such as ``article.body`` (default: text; otherwise the
            first of content, body, document, article, abstract, full_text, raw and message; otherwise the only column
            of strings, or the one with by far the longest). If two columns share a name, the second is ``NAME_2``.
        id_column: Column with the ids, or its path (default: id, doc_id, document_id or _id; otherwise the row number
            from 0, or a hash of the text for texts outside tables and in an index). The second document with an id gets
            the suffix ``#2``.
        label_column: Column with the classes, or its path; not read by default. For files, it can be folder (the path
            of the file's folder, relative to the source) or file (its name without the suffix); for e-mails, also
            subject, sender, recipients or date; in folders such as ``year=2020``, also ``year``.
        encoding: Encoding of text, JSON, CSV and HTML files that are not valid UTF-8. A byte order mark, or the
            encoding declared in an HTML file, takes precedence.
        limit: Maximum number of documents to read (default: all).
        mails: Parse as e-mails any texts, text files and files with an unknown suffix that begin with e-mail headers.
        html: Convert texts with HTML tags, such as support tickets in a table, to the text that a browser would show.
        metadata: Keep the values of all other columns, including the label, as each document's metadata. Files have the
            columns folder and file, and Markdown files the title in their front matter; a folder such as ``year=2020``
            counts as a column.
        max_characters: Maximum length of a text in characters; longer texts are skipped and counted.
        stream: Read shards in random order without storing them, to train on a corpus larger than the disk. The source
            must be parquet files (also at an address such as ``s3://bucket/*.parquet``), ``hub:NAME`` or a
            ``datasets.IterableDataset``.

    Returns:
        A reader. Iterate over it for the documents, as often as needed; its ``report`` counts those read and skipped.
        With ``stream=True``, the :class:`~simlte_st.reading.documents.Shards` for :func:`~simlte_st.train`.

    Raises:
        DataError: The source does not exist or is not supported, or the encoding is unknown. Iterating also raises it
            for missing columns and damaged files, and ``EmptyCorpusError`` if no document is usable.
        MissingExtraError: The file needs the "documents" extra, which is not installed.
        ConfigurationError: An argument is out of range, a reader is passed with other arguments, or an argument does
            not work with ``stream=True``.
    """
    reading = Reading(
        text_column=text_column, id_column=id_column, label_column=label_column, encoding=encoding, limit=limit,
        mails=mails, html=html, metadata=metadata, max_characters=max_characters,
    )  # fmt: skip
    if isinstance(source, (DocumentReader, Shards)):
        if stream or reading != Reading():
            raise ConfigurationError("The source is already a reader: change its options with with_options().")
        return source
    return open_shards(source, reading) if stream else DocumentReader(open_source(source, reading))


def list_documents(source: DocumentSource) -> list[Document]:
    """Return all documents from a source, and log which rows and files were skipped or repaired."""
    reader = read_documents(source)
    documents = list(reader)
    if reader.report.skipped:
        logger.warning("%s", reader.report.summary())
    return documents


@dataclass(frozen=True)
class Shards:
    """A source of documents in shards, each readable from any row."""

    name: str
    dataset: IterableDataset
    names: Sequence[str]  # shard names: for files, the file names
    reading: Reading
    origin: DocumentSource  # as passed by the user, to reopen it with other options

    def with_options(self, **options: Any) -> Shards:
        """Reopen the source with some options of :func:`~simlte_st.data.read_documents` changed."""
        return open_shards(self.origin, replace(self.reading, **options))

    def first(self, limit: int, order: Sequence[int]) -> DocumentReader:
        """Return a reader for the first documents, taking the shards in a given order."""
        return DocumentReader(Source(self.name, ShardReader(self, order).events, Reading(limit=limit)))

    def events(self, shard: int, row: int) -> Iterator[Event]:
        """Read a shard, starting at a row."""
        name = self.names[shard]
        part = self.dataset.shard(num_shards=len(self.names), index=shard)
        try:
            yield from read_table(dataset_table(part, name, row, _ROWS), self.reading)
        except DataError:
            raise
        except Exception as error:  # the class depends on library versions
            if "for FieldRef" in str(error):
                same = "Multiple" in str(error)
                problem = "two columns with the same name" if same else "columns that differ from the first file's"
                raise DataError(f"{name} has {problem}: rename one, or read it without stream=.") from None
            raise BrokenSourceError(f"{name} is truncated, corrupt or unreadable ({_error_summary(error)})") from error


class ShardReader:
    """Read the documents of shards once, in a given order and from a given row.

    Ids are kept even if several documents share one; a document without an id gets the hash of its text. Ids therefore
    do not depend on earlier documents, and memory use stays constant. After every document, ``shard`` is the number of
    completed shards, and ``row`` the number of rows read from the current shard.
    """

    def __init__(self, shards: Shards, order: Sequence[int], shard: int = 0, row: int = 0) -> None:
        self.shard, self.row = shard, row
        self._shards, self._order = shards, order

    def __iter__(self) -> Iterator[Document]:
        """Yield documents from the current position on."""
        return iter(DocumentReader(Source(self._shards.name, self.events, self._shards.reading), remember=False))

    def events(self) -> Iterator[Event]:
        """Yield the rows and skips of the shards."""
        while self.shard < len(self._order):
            index = self._order[self.shard]
            for event in self._shards.events(index, self.row):
                if isinstance(event, Columns):
                    yield event
                    continue
                event = replace(event, where=f"{self._shards.names[index]}, row {self.row:,}")
                self.row += 1
                yield replace(event, generated_id=None) if isinstance(event, Row) else event
            self.shard, self.row = self.shard + 1, 0


def open_shards(source: DocumentSource, reading: Reading) -> Shards:
    """Open documents in shards; the first file determines the columns."""
    columns = {**asdict(Reading()), **reading.named_columns()}
    if refused := [name for name, value in asdict(reading).items() if value != columns[name]]:
        raise ConfigurationError(f"{refused[0]}= does not work with stream=True, which reads the columns of tables.")
    if is_instance(source, "datasets", "IterableDataset"):
        return _shard_dataset(source, "the IterableDataset", reading, source)
    if is_hub(source):
        return _shard_dataset(load_hub(source), source, reading, source)
    return _shard_parquet(source, reading)


def _shard_dataset(dataset: IterableDataset, name: str, reading: Reading, origin: DocumentSource) -> Shards:
    if dataset.features is None:
        raise DataError(f"{name} has no features: set features= when creating it, or call cast().")
    count = dataset.num_shards
    names = [name] if count == 1 else [f"shard {shard + 1:,} of {count:,} of {name}" for shard in range(count)]
    choose_columns(reading, dataset_table(dataset, name))
    return Shards(name, dataset, names, reading, origin)


def _shard_parquet(source: DocumentSource, reading: Reading) -> Shards:
    paths = list(source) if isinstance(source, (list, tuple)) else [source]
    places = [os.fspath(path) for path in paths if isinstance(path, (str, os.PathLike))]
    if not places or len(places) < len(paths):
        raise DataError(f"A {type(source).__name__} cannot be read as a stream. A stream can be {KINDS}.")
    for place in places:  # check before importing datasets, which takes seconds
        if not ("://" in place or glob.has_magic(place) or os.path.lexists(place)):
            raise DataError(f"There is no file or folder {place!r}. A stream can be {KINDS}.")
        if os.path.lexists(place) and "::" in os.path.abspath(place):  # fsspec would read it as a chain of addresses
            raise DataError(f"{place}: a path with '::' cannot be streamed. Rename it, or read it without stream=.")
    import datasets

    name = places[0] if len(places) == 1 else f"{len(places):,} sources"
    # Escape brackets and a leading ~ in existing names: datasets treats every path as a pattern.
    names = [glob.escape(os.path.abspath(place)) if os.path.lexists(place) else place for place in places]
    patterns = [escaped + "/**/*.parquet" * os.path.isdir(place) for place, escaped in zip(places, names, strict=True)]
    options: dict[str, Any] = {"data_files": patterns, "batch_size": _ROWS}
    try:
        builder = datasets.load_dataset_builder("parquet", **options)
        files = [str(file) for file in builder.config.data_files["train"]]
        dataset = builder.as_streaming_dataset("train") if files else None
        if dataset is None or dataset.features is None:
            raise DataError(f"There is no parquet file at {name}.")
        # Reopen with only the needed columns: the unneeded ones may be most of the data.
        table = dataset_table(dataset, files[0])
        columns = list(dict.fromkeys(table.find_column(name) for name in choose_columns(reading, table) if name))
        dataset = datasets.load_dataset_builder("parquet", columns=columns, **options).as_streaming_dataset("train")
    except DataError:
        raise
    except Exception as error:  # missing, forbidden, offline, lacking a library, or not a parquet file
        raise DataError(f"{name} cannot be opened ({_error_summary(error)}). A stream can be {KINDS}.") from error
    return Shards(name, dataset, files, reading, source)


def _error_summary(error: Exception) -> str:
    """Return an error's class name and the first line of its message."""
    return ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
