"""Reads documents one by one, from any source, and reports what could not be used."""

from __future__ import annotations

import hashlib
import logging
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.config import configured
from simlte_st.data.config import ReadConfig, SourceConfig
from simlte_st.data.document import Document, content_id
from simlte_st.data.formats.html import has_tags
from simlte_st.data.formats.mail import looks_like_mail
from simlte_st.data.names import composed, name_of
from simlte_st.data.report import LOOKED_AT, ReadReport
from simlte_st.data.sentences import peek
from simlte_st.data.sources import Source, open_source
from simlte_st.data.tables import NOT_A_STRING, Columns, Row, Skip
from simlte_st.data.text_files import TOO_LONG, BrokenSourceError, check_encoding
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError
from simlte_st.files import valid_unicode

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simlte_st.overrides import SourceOverrides

logger = logging.getLogger(__name__)

EMPTY = "empty"
INVALID = "invalid characters removed or replaced"
DUPLICATE_ID = "duplicate id"
MISSING_ID = "missing id"
UNUSABLE_LABEL = "label not usable"


@configured(SourceConfig)
def read_documents(
    source: str | os.PathLike[str] | Iterable[Any],
    config: ReadConfig | None = None,
    **overrides: Unpack[SourceOverrides],
) -> DocumentReader:
    """Read documents, one by one.

    A row or file that cannot be used is skipped and counted in the reader's report; none is lost silently.

    Args:
        source: One of: a folder of files that hold a document each (with its subfolders; the id is the path in the
            folder), or such a file; a file that is a table; ``hub:NAME``, ``hub:NAME:SPLIT`` or
            ``hub:NAME:CONFIG:SPLIT`` for a data set of the Hugging Face Hub; a ``datasets.Dataset`` or
            ``IterableDataset``; a pandas or polars ``DataFrame`` or a ``pyarrow.Table``; an iterable of strings (a
            list, a generator, a column of the former), of mappings, or of :class:`Document`, which keep their id, label
            and split, whatever columns are named; a list of paths and ``hub:`` names, which are read one after the
            other. A reader that this function made is returned as it is.
            :data:`simlte_st.data.formats.FORMATS` lists the files that can be read: text, Markdown, e-mails, HTML, PDF,
            DOCX, ODT, RTF and EPUB hold a document each; JSON (an array of objects or of strings, or JSON lines), CSV,
            TSV and mailboxes, also compressed by gzip or Zstandard, and parquet are tables. Those from HTML to EPUB
            need the extra ``documents``; in a folder, they are skipped and counted without it.
        config: How to read.
        **overrides: Settings of :class:`~simlte_st.data.config.SourceConfig`, in place of those of ``config``.
            Without ``text_column``, the text is in a column called text; else in the first of content, body, document,
            article, abstract, full_text, raw and message; else in the only one with strings. Without ``id_column``, the
            ids are in one called id, doc_id, document_id or _id; else the id is the row's number from 0, or the text's
            hash for an iterable of strings. What is in a struct (of parquet or Arrow; an object in an object of JSON; a
            dict) is named by its path: ``text_column="article.body"``. A second document with the same id gets ``#2``
            after it. Of several sources, the ids that are made name the source: ``b.csv:17``, ``folder/a.txt``, with
            more of the path if two sources have the same name; and so do those that an earlier source has too.
            ``encoding`` is for text, JSON, CSV and HTML files that are not valid UTF-8; a byte order mark, and what an
            HTML file declares itself, go before it.

    Returns:
        The reader: iterate it for the documents, as often as wanted; see its ``report`` afterwards.

    Raises:
        DataError: The source does not exist or is of no known form, there is no such encoding, or of a list that
            seems to be one of paths some do not exist. Iterating raises it too, for missing columns and for broken
            files, and ``EmptyCorpusError`` if nothing is usable.
        MissingExtraError: The source is a file that needs the extra ``documents``, which is not installed.
        ConfigurationError: A setting is out of its range, or a reader is given with a limit or columns.
    """
    settings = SourceConfig.make(None, {**(config.values() if config else {}), **overrides})
    if isinstance(source, DocumentReader):
        if settings != replace(SourceConfig(), encoding=settings.encoding, max_characters=settings.max_characters):
            raise ConfigurationError(
                "A DocumentReader is read as it was made: pass limit=, columns, metadata= and what to leave out to the "
                "read_documents that makes it."
            )
        return source
    settings = replace(settings, encoding=check_encoding(settings.encoding))
    reader = DocumentReader(open_source(source, settings), settings.max_characters, settings.limit)
    reader._given, reader._settings = source, settings
    return reader


def list_documents(source: Any) -> list[Document]:
    """Return all documents of a source; what could not be used is logged."""
    reader = read_documents(source)
    documents = list(reader)
    if reader.report.skipped:
        logger.warning("%s", reader.report.summary())
    return documents


class DocumentReader:
    """The documents of a source, read anew at each iteration and never held together.

    Made by :func:`read_documents`. The memory used does not grow with the corpus, except for the hashes that keep ids
    unique (about 100 bytes a document) and count duplicates (8). Without ``remember`` it does not grow at all: ids stay
    as they are, and neither duplicates nor the ids of unreadable documents are known.

    Attributes:
        report: What came of the latest iteration, up to date after every document.
        checksum: Of the texts of the latest iteration, in their order; None before its end, or without ``remember``.
        unread: Ids of the documents that it could not read, and prefixes of ids (up to a slash) of whole folders.
        unnamed: Number of unreadable rows whose ids are not known.
    """

    def __init__(
        self,
        source: Source,
        max_characters: int = SourceConfig.max_characters,
        limit: int | None = None,
        *,
        remember: bool = True,
    ) -> None:
        self.report = ReadReport(source.name)
        self.checksum: str | None = None
        self.unread: set[str] = set()
        self.unnamed = 0
        self._source = source
        self._max_characters = max_characters
        self._limit = limit
        self._remembers = remember
        self._started = False
        self._begun: Iterator[Document] | None = None
        self._given: Any = None
        self._settings: SourceConfig | None = None

    def with_options(self, **options: Any) -> DocumentReader:
        """Return a reader of the same source with some options of :func:`read_documents` replaced."""
        if self._settings is None:
            raise ConfigurationError("This reader was not made by read_documents.")
        return read_documents(self._given, **{**self._settings.values(), **options})

    def __repr__(self) -> str:
        return f"DocumentReader({self._source.name})"

    @property
    def places(self) -> tuple[Path, ...]:
        """The files and folders that it reads, which no output may replace; empty for sources in memory."""
        return self._source.places

    def __length_hint__(self) -> int:
        """Return the largest possible number of documents if it is known without reading, for progress bars."""
        if self.report.finished or self.report.stopped_at is not None:
            return self.report.documents
        known = [size for size in (self._source.size(), self._limit) if size is not None]
        return min(known) if known else NotImplemented

    def __iter__(self) -> Iterator[Document]:
        """Read the source from its beginning."""
        if (begun := self._begun) is not None:
            self._begun = None
            return begun
        if self._source.once and self._started:
            raise DataError(
                f"{self._source.name} is an iterator, which can be read only once, and it was. Pass a list, a "
                "datasets.IterableDataset, or another iterable that starts over."
            )
        self._started = True
        self.report = ReadReport(self._source.name)
        self.checksum, self.unread, self.unnamed = None, set(), 0
        return self._documents(self.report)

    def peek(self) -> list[Document]:
        """Return the first documents, a million characters; the next iteration does not read them again."""
        first, self._begun = peek(self, lambda document: len(document.text))
        return first

    def _documents(self, report: ReadReport) -> Iterator[Document]:
        ids, texts = _Ids() if self._remembers else None, array("Q")
        try:
            for event in self._source.events():
                if isinstance(event, Columns):
                    report.note_columns(event)
                elif isinstance(event, Skip) and event.ignored:
                    report.ignored[event.reason] = report.ignored.get(event.reason, 0) + 1
                elif isinstance(event, Skip):
                    report.note(report.skipped, event.reason, event.where, event.what)
                    self._note_unread(event.id)
                elif not (document := self._document(event, ids, report)):
                    self._note_unread(_own_id(event) or event.made_id or "")
                else:
                    report.documents += 1
                    report.characters += len(document.text)
                    if report.documents <= LOOKED_AT:
                        report.mails += looks_like_mail(document.text)
                        report.tagged += has_tags(document.text)
                    if self._remembers:
                        texts.append(int(content_id(document.text), 16))
                    if report.documents == self._limit:
                        # Before the yield: a consumer of exactly this many documents never comes back here.
                        report.stopped_at = self._limit
                        self._finish(report, texts)
                        yield document
                        return
                    yield document
        except BrokenSourceError as error:
            read = f"; {report.documents:,} document{'' if report.documents == 1 else 's'} had been read before"
            raise DataError(f"{error}{read if self._remembers else ''}. Download or create it again.") from error
        report.finished = True
        self._finish(report, texts)
        if not report.documents:
            raise EmptyCorpusError("\n".join([f"{self._source.name} holds no usable document.", *report.troubles()]))

    def _finish(self, report: ReadReport, texts: array[int]) -> None:
        report.copies = _count_duplicates(texts)
        self.checksum = hashlib.blake2b(texts, digest_size=16).hexdigest() if self._remembers else None

    def _note_unread(self, name: str | None) -> None:
        """Keep the id of an unreadable document; "" is a row that has neither a text nor an id."""
        if name is None:
            self.unnamed += 1
        elif name and self._remembers:
            self.unread.add(composed(name))

    def _document(self, row: Row, ids: _Ids | None, report: ReadReport) -> Document | None:
        """Return the document of a row, or None after counting why there is none."""
        text = row.text
        if not isinstance(text, str):
            report.note(report.skipped, NOT_A_STRING, row.where, type(text).__name__)
            return None
        text = str(text)  # numpy's strings are a subclass of str
        if len(text) > self._max_characters and not row.is_document:
            report.note(report.skipped, TOO_LONG, row.where, f"{len(text):,} characters")
            return None
        raw, text = text, valid_unicode(text.replace("\0", ""))
        if not text or text.isspace():
            report.note(report.skipped, EMPTY, row.where, "only white space" if row.text else "")
            return None
        if text != raw:
            report.note(report.repaired, INVALID, row.where)
        for reason, what in row.left_out:
            report.note(report.left_out, reason, row.where, what)
        return Document(self._id(row, text, ids, report), text, self._label(row, report), row.split, row.metadata)

    def _id(self, row: Row, text: str, ids: _Ids | None, report: ReadReport) -> str:
        own = _own_id(row)
        name = own or composed(row.made_id or content_id(text))
        if own is None and row.has_id:
            report.note(report.repaired, MISSING_ID, row.where, f"called {name!r}")
        if ids is None:
            return name
        unique = ids.unique(name, row.source if own else None)
        if unique != name:
            report.note(report.repaired, DUPLICATE_ID, row.where, f"{name!r} became {unique!r}")
        return unique

    def _label(self, row: Row, report: ReadReport) -> str | None:
        try:
            return name_of(row.label)
        except TypeError as error:
            report.note(report.repaired, UNUSABLE_LABEL, row.where, f"a {error} became no label")
            return None


class _Ids:
    """Makes ids unique, holding a 64-bit hash of each instead of the ids."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._next: dict[int, int] = {}

    def unique(self, name: str, source: str | None = None) -> str:
        """Return the name; if it is taken, with its source before it, or with a number after it."""
        # Not hash(), which differs between processes: a chance collision must not give other ids on the next run.
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


def _count_duplicates(texts: array[int]) -> int:
    """Return how many of 64-bit hashes repeat an earlier one; a set of them would take ten times as much memory."""
    return len(texts) - len(np.unique(np.frombuffer(texts, dtype=np.uint64)))


def _own_id(row: Row) -> str | None:
    """Return the id that a row has; None if it has none, or one that is not a name."""
    try:
        return name_of(row.id)
    except TypeError:
        return None
