"""The reader: rows of a source become documents, and whatever cannot is counted in its report."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from simlte_st.data.document import Document, composed, content_id, name_of
from simlte_st.data.formats.html import has_tags
from simlte_st.data.formats.mail import looks_like_mail
from simlte_st.data.report import LOOKED_AT, ReadReport
from simlte_st.data.rows import EMPTY, NOT_A_STRING, TOO_LONG, BrokenSourceError, Columns, Reading, Row, Skip
from simlte_st.data.sentences import peek
from simlte_st.data.sources import Source, open_source
from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.files import valid_unicode

INVALID = "invalid characters removed or replaced"
DUPLICATE_ID = "duplicate id"
MISSING_ID = "missing id"
UNUSABLE_LABEL = "label not usable"


class DocumentReader:
    """The documents of a source, read anew at each iteration and never held together.

    Made by :func:`~simlte_st.data.read_documents`. The memory used does not grow with the corpus, except for the hashes
    that keep ids unique (about 100 bytes a document) and count duplicates (8). Without ``remember`` it does not grow at
    all: ids stay as they are, and neither duplicates nor the ids of unreadable documents are known.

    Attributes:
        report: The report of the latest iteration, up to date after every document.
        checksum: Of the texts of the latest iteration, in their order; None before its end, or without ``remember``.
        unread: Ids of unreadable documents, and prefixes of ids (up to a slash) of unreadable folders.
        unnamed: Number of unreadable rows whose ids are not known.
    """

    def __init__(self, source: Any, reading: Reading | None = None, *, remember: bool = True) -> None:
        self._given, self._reading = source, reading or Reading()
        self._source = source if isinstance(source, Source) else open_source(source, self._reading)
        self._remembers = remember
        self._started = False
        self._begun: Iterator[Document] | None = None
        self._begin()

    def _begin(self) -> None:
        self.report = ReadReport(self._source.name)
        self.checksum: str | None = None
        self.unread: set[str] = set()
        self.unnamed = 0

    def with_options(self, **options: Any) -> DocumentReader:
        """Return a reader of the same source with some options of :func:`~simlte_st.data.read_documents` replaced.

        Raises:
            DataError: The source can be read only once, and its reading has begun.
        """
        self._check_unread()
        return DocumentReader(self._given, replace(self._reading, **options))

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
        known = [size for size in (self._source.size(), self._reading.limit) if size is not None]
        return min(known) if known else NotImplemented

    def __iter__(self) -> Iterator[Document]:
        """Read the source from its beginning."""
        if (begun := self._begun) is not None:
            self._begun = None
            return begun
        self._check_unread()
        self._started = True
        self._begin()
        return self._documents(self.report)

    def _check_unread(self) -> None:
        if self._source.once and self._started:
            raise DataError(
                f"{self._source.name} is an iterator, which can be read only once, and it was. Pass a list, a "
                "datasets.IterableDataset, or another iterable that starts over."
            )

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
                    report.note(report.ignored, event.reason, event.where)
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
                    if report.documents == self._reading.limit:
                        # Before the yield: a consumer of exactly this many documents never comes back here.
                        report.stopped_at = self._reading.limit
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
        # Sorting 64-bit hashes takes a tenth of the memory of a set of them.
        report.copies = len(texts) - len(np.unique(np.frombuffer(texts, dtype=np.uint64)))
        self.checksum = hashlib.blake2b(texts, digest_size=16).hexdigest() if self._remembers else None

    def _note_unread(self, name: str | None) -> None:
        """Keep the id of an unreadable document; "" is a row that has neither a text nor an id."""
        if name is None:
            self.unnamed += 1
        elif name and self._remembers:
            self.unread.add(composed(name))

    def _document(self, row: Row, ids: _Ids | None, report: ReadReport) -> Document | None:
        """Return the document of a row, or None after counting the reason why there is none."""
        text = row.text
        if not isinstance(text, str):
            report.note(report.skipped, NOT_A_STRING, row.where, type(text).__name__)
            return None
        text = str(text)  # numpy's strings are a subclass of str
        if len(text) > self._reading.max_characters and not row.is_document:
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
        label = None
        try:
            label = name_of(row.label)
        except TypeError as error:
            report.note(report.repaired, UNUSABLE_LABEL, row.where, f"a {error} became no label")
        return Document(self._id(row, text, ids, report), text, label, row.split, row.metadata)

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


def _own_id(row: Row) -> str | None:
    """Return the id that a row has; None if it has none, or one that is not a name."""
    try:
        return name_of(row.id)
    except TypeError:
        return None
