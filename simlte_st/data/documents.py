"""Read documents from whatever they come in, one by one, and tell what could not be used."""

from __future__ import annotations

import datetime
import decimal
import logging
import math
import os
import uuid
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simlte_st.checks import check_count
from simlte_st.data.document import Document, content_id
from simlte_st.data.report import ReadReport
from simlte_st.data.rows import NOT_A_STRING, Columns, ReadSettings, Row, Skip
from simlte_st.data.sources import open_source
from simlte_st.data.sources.base import Source
from simlte_st.data.streams import TOO_LONG, BrokenSourceError, check_encoding
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError
from simlte_st.files import valid_unicode

logger = logging.getLogger(__name__)

MAX_CHARACTERS = 20_000_000
"""Longer texts are skipped, where nothing else is said."""

EMPTY = "empty"
NUL_REMOVED = "NUL characters removed"
SURROGATES = "lone surrogates replaced"
DUPLICATE_ID = "duplicate id"
MISSING_ID = "missing id"
UNUSABLE_LABEL = "label not usable"


class _Ids:
    """Make ids unique, holding a 64-bit hash of each instead of the ids."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._next: dict[int, int] = {}

    def unique(self, name: str, source: str | None = None) -> str:
        """Return the name, or where it is taken the name with its source's before it, or with a number after it."""
        # Not hash(): it differs between processes, and a chance collision must not give other ids on the next run.
        key = int(content_id(name), 16)
        if key not in self._seen:
            self._seen.add(key)
            return name
        if source is not None:
            return self.unique(f"{source}:{name}")
        number = self._next.get(key, 2)
        while (other := int(content_id(f"{name}#{number}"), 16)) in self._seen:
            number += 1
        self._seen.add(other)
        self._next[key] = number + 1
        return f"{name}#{number}"


def _copies(texts: array[int]) -> int:
    """Count those of 64-bit hashes that are there already; a set of them would take ten times as much memory."""
    return len(texts) - len(np.unique(np.frombuffer(texts, dtype=np.uint64)))


def _as_name(value: object) -> str | None:
    """An id or a label as a string; None where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType":
        return None  # the last is pandas'
    if hasattr(value, "item") and not isinstance(value, str):  # a numpy scalar
        value = value.item()
    if isinstance(value, (str, int, float, decimal.Decimal, uuid.UUID, datetime.date, datetime.time)):
        return str(value) if str(value).strip() else None
    raise TypeError(type(value).__name__)


def _own_id(row: Row) -> str | None:
    """Return the id that a row has; None where it has none, or one that is no name."""
    try:
        return _as_name(row.id)
    except TypeError:
        return None


class DocumentReader:
    """The documents of a source, read anew at each iteration and never held together.

    Made by :func:`read_documents`. The memory used does not grow with the corpus, but for the hashes that keep ids
    unique (about 100 bytes a document) and tell copies (8). Without ``remember`` it does not grow at all: ids stay as
    they are, and copies and what could not be read are not told apart.

    Attributes:
        report: What came of the latest iteration, up to date after every document.
        unread: Ids of the documents that it could not read, and beginnings of ids (to a slash) of whole folders.
        unnamed: How many rows it could not read whose ids are not known.
    """

    def __init__(self, source: Source, max_characters: int, limit: int | None = None, *, remember: bool = True) -> None:
        self.report = ReadReport(source.name)
        self.unread: set[str] = set()
        self.unnamed = 0
        self._source = source
        self._max_characters = max_characters
        self._limit = limit
        self._remembers = remember
        self._started = False

    def __repr__(self) -> str:
        return f"DocumentReader({self._source.name})"

    @property
    def places(self) -> tuple[Path, ...]:
        """The files and folders that it reads, which no output may replace; none of what lives in memory."""
        return self._source.places

    def __length_hint__(self) -> int:
        """Tell how many documents there are at most, where that is known without reading: for progress bars."""
        if self.report.finished or self.report.stopped_at is not None:
            return self.report.documents
        known = [size for size in (self._source.size(), self._limit) if size is not None]
        return min(known) if known else NotImplemented

    def __iter__(self) -> Iterator[Document]:
        """Read the source from its beginning."""
        if self._source.once and self._started:
            raise DataError(
                f"{self._source.name} is an iterator, which can be read only once, and it was. Pass a list, a "
                "datasets.IterableDataset, or another iterable that starts over."
            )
        self._started = True
        self.report = ReadReport(self._source.name)
        self.unread, self.unnamed = set(), 0
        return self._documents(self.report)

    def _documents(self, report: ReadReport) -> Iterator[Document]:
        ids, texts = _Ids() if self._remembers else None, array("Q")
        try:
            for event in self._source.events():
                if isinstance(event, Columns):
                    report.note_columns(event)
                elif isinstance(event, Skip):
                    if event.ignored:
                        report.ignored[event.reason] = report.ignored.get(event.reason, 0) + 1
                    else:
                        report.note(report.skipped, event.reason, event.where, event.what)
                        self._remember(event.id)
                elif not (document := self._document(event, ids, report)):
                    self._remember(_own_id(event) or event.made_id or "")
                else:
                    report.documents += 1
                    report.characters += len(document.text)
                    if self._remembers:
                        texts.append(int(content_id(document.text), 16))
                    if report.documents == self._limit:
                        # Before the yield: who takes just so many never comes back here.
                        report.stopped_at, report.copies = self._limit, _copies(texts)
                        yield document
                        return
                    yield document
        except BrokenSourceError as error:
            read = f"; {report.documents:,} document{'' if report.documents == 1 else 's'} had been read before"
            raise DataError(f"{error}{read if self._remembers else ''}. Fetch or make it again.") from error
        report.finished, report.copies = True, _copies(texts)
        if not report.documents:
            raise EmptyCorpusError("\n".join([f"{self._source.name} holds no usable document.", *report.troubles()]))

    def _remember(self, name: str | None) -> None:
        """Keep the id of a document that could not be read; a row without text that has none was no document."""
        if name is None:
            self.unnamed += 1
        elif name and self._remembers:
            self.unread.add(valid_unicode(name))

    def _document(self, row: Row, ids: _Ids | None, report: ReadReport) -> Document | None:
        """Judge one row: give its document, or count why there is none."""
        text = row.text
        if not isinstance(text, str):
            report.note(report.skipped, NOT_A_STRING, row.where, type(text).__name__)
            return None
        text = str(text)  # numpy's strings are str too, but of a class of their own
        if len(text) > self._max_characters and not row.is_document:
            report.note(report.skipped, TOO_LONG, row.where, f"{len(text):,} characters")
            return None
        nuls = text.count("\0")
        if nuls:
            text = text.replace("\0", "")
        mended = valid_unicode(text)
        surrogates, text = mended != text, mended
        if not text or text.isspace():
            report.note(report.skipped, EMPTY, row.where, "only white space" if row.text else "")
            return None
        if nuls:
            report.note(report.repaired, NUL_REMOVED, row.where, f"{nuls:,}")
        if surrogates:
            report.note(report.repaired, SURROGATES, row.where)
        for reason, what in row.left_out:
            report.note(report.left_out, reason, row.where, what)
        return Document(self._id(row, text, ids, report), text, self._label(row, report), row.split, row.metadata)

    def _id(self, row: Row, text: str, ids: _Ids | None, report: ReadReport) -> str:
        own = _own_id(row)
        name = own or row.made_id or content_id(text)
        if own is None and row.has_id:
            report.note(report.repaired, MISSING_ID, row.where, f"called {name!r}")
        name = valid_unicode(name)
        if ids is None:
            return name
        unique = ids.unique(name, row.source if own else None)
        if unique != name:
            report.note(report.repaired, DUPLICATE_ID, row.where, f"{name!r} became {unique!r}")
        return unique

    def _label(self, row: Row, report: ReadReport) -> str | None:
        try:
            label = _as_name(row.label)
        except TypeError as error:
            report.note(report.repaired, UNUSABLE_LABEL, row.where, f"a {error} became no label")
            return None
        return None if label is None else valid_unicode(label)


def list_documents(source: Any) -> list[Document]:
    """Read all documents of what :func:`read_documents` takes; the log tells what could not be used, if anything."""
    reader = read_documents(source)
    documents = list(reader)
    if reader.report.skipped:
        logger.warning("%s", reader.report.summary())
    return documents


def read_documents(
    source: str | os.PathLike[str] | Iterable[Any],
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    encoding: str = "utf-8",
    max_characters: int = MAX_CHARACTERS,
    limit: int | None = None,
    metadata: bool = False,
) -> DocumentReader:
    """Read documents, one by one.

    A row or file that cannot be used is skipped and counted in the reader's report; none is lost silently.

    Args:
        source: One of: a folder of files that hold a document each (with its subfolders; the id is the path in the
            folder), or such a file; a file that is a table; ``hub:NAME``, ``hub:NAME:SPLIT`` or
            ``hub:NAME:CONFIG:SPLIT`` for a data set of the Hugging Face Hub (see
            :func:`simlte_st.data.sources.hub.parse_hub`); a ``datasets.Dataset`` or ``IterableDataset``; a pandas or
            polars ``DataFrame`` or a ``pyarrow.Table``; an iterable of strings (a list, a generator, a column of the
            former), of mappings, or of :class:`Document`, which keep their id, label and split, whatever columns are
            named; a list of paths and ``hub:`` names, which are read one after the other. A reader that this function
            made is given back. :data:`simlte_st.data.formats.FORMATS` is the table of files that can be read: text,
            HTML, PDF and DOCX hold a document each; JSON (an array of objects or of strings, or JSON lines), CSV and
            TSV, also compressed by gzip or Zstandard, and parquet are tables. HTML, PDF and DOCX need the extra
            ``documents``; in a folder, they are skipped and counted without it.
        text_column: Column that holds the text. Without it: a column called text; else the first that there is of
            content, body, document, article, abstract, full_text, raw and message; else the only one with strings.
        id_column: Column that holds the ids. Without it: one called id, doc_id, document_id or _id; else the row's
            number from 0, or the text's hash for an iterable of strings. A second document of the same id gets
            ``#2`` after it. Of several sources, the ids that are made tell which it was: ``b.csv:17``,
            ``folder/a.txt``, with more of the path where two sources have the same name; and so do those that an
            earlier source has too.
        label_column: Column that holds the class. Read only when named.
        encoding: Encoding of text, JSON, CSV and HTML files that are no sound UTF-8; a byte order mark at a file's
            beginning goes before it, and what an HTML file says itself where that fits.
        max_characters: Longer texts are skipped and counted.
        limit: Stop after so many usable documents.
        metadata: Give each document the values of all other columns of its row (the label's too), as they are.

    Returns:
        The reader: iterate it for the documents, as often as wanted; see its ``report`` afterwards.

    Raises:
        DataError: The source does not exist or is of no known form, there is no such encoding, or of a list that
            seems to be one of paths some do not exist. Iterating raises it too, for missing columns and for broken
            files, and ``EmptyCorpusError`` where nothing is usable.
        MissingExtraError: The source is an HTML, PDF or DOCX file, and the extra ``documents`` is not installed.
        ConfigurationError: ``max_characters`` or ``limit`` is no whole number from 1, or a reader is given with a limit
            or columns.
    """
    columns = Columns(text_column, id_column, label_column, metadata)
    check_count("max_characters", max_characters)
    if limit is not None:
        check_count("limit", limit)
    if isinstance(source, DocumentReader):
        if limit is not None or columns.named() or metadata:
            raise ConfigurationError("A DocumentReader is read as it was made: give limit=, columns, metadata= there.")
        return source
    settings = ReadSettings(columns, check_encoding(encoding), max_characters)
    return DocumentReader(open_source(source, settings), max_characters, limit)
