"""Turn a source's rows into documents, and report how many were read, repaired and skipped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from simlte_st.errors import DataError, EmptyCorpusError, format_count
from simlte_st.files import valid_unicode
from simlte_st.reading.arrow_values import INVALID
from simlte_st.reading.document import Document, content_id, peek, text_key, to_name, to_nfc
from simlte_st.reading.rows import EMPTY, NOT_A_STRING, TOO_LONG, WRONG_ENCODING, BrokenSourceError, Columns, Row, Skip
from simlte_st.reading.sources import PLACES, Source, open_source

_EXAMPLES = 3
_EXAMPLE_LENGTH = 200


@dataclass
class ReadReport:
    """Counts of the documents read, repaired and skipped in a source; every row is counted."""

    source: str
    documents: int = 0
    characters: int = 0  # in these documents
    skipped: dict[str, int] = field(default_factory=dict)  # rows or files without a document, by reason
    repaired: dict[str, int] = field(default_factory=dict)  # repaired documents, by reason
    ignored: dict[str, int] = field(default_factory=dict)  # unsupported files, by suffix
    examples: dict[str, list[str]] = field(default_factory=dict)  # the first cases for each reason
    text_column: str | None = None  # from the last table, like the next two
    id_column: str | None = None
    label_column: str | None = None
    finished: bool = False  # whether the source was read to the end
    stopped_at: int | None = None  # the limit at which reading stopped

    def note(self, counts: dict[str, int], reason: str, where: str, detail: str = "") -> None:
        """Count a case in ``skipped``, ``repaired`` or ``ignored``; keep the first few as examples."""
        counts[reason] = counts.get(reason, 0) + 1
        if counts is not self.ignored and len(examples := self.examples.setdefault(reason, [])) < _EXAMPLES:
            example = f"{where}: {detail}" if detail else where
            # Names come from the data and may contain unprintable characters.
            examples.append(example[:_EXAMPLE_LENGTH].encode("utf-8", "replace").decode("utf-8"))

    def summary(self) -> str:
        """Return a few lines with the numbers of documents read, skipped, repaired and ignored."""
        line = f"read {format_count(self.documents, 'document')} ({self.characters:,} characters)"
        lines = [line + (f" from the column {self.text_column!r}" if self.text_column else ""), *self.troubles()]
        if self.stopped_at is not None:
            lines.append(f"stopped at the limit of {self.stopped_at:,} documents; the rest was not read")
        return "\n".join(lines)

    def troubles(self, *verbs: str) -> list[str]:
        """Return lines about skipped, repaired and ignored rows and files; ``verbs`` selects some of these."""
        lines = []
        for verb in verbs or ("skipped", "repaired", "ignored"):
            counts: dict[str, int] = getattr(self, verb)
            parts = []
            for reason, number in sorted(counts.items(), key=lambda pair: -pair[1]):
                examples = self.examples.get(reason)
                parts.append(format_reason(reason, number) + (f", first: {examples[0]}" if examples else ""))
            lines += [f"{verb} {sum(counts.values()):,}: {'; '.join(parts)}"] if counts else []
        if not verbs and any(suffix.startswith(".") or suffix == "no suffix" for suffix in self.ignored):
            hint = "in a folder, tables and other text files are read only when named, for example FOLDER/*.csv"
            lines.append(hint if self.documents else f"{hint}; the source can be {PLACES}")
        if not verbs and any(":2," in suffix for suffix in self.ignored):
            lines.append("pass mails=True to read a Maildir's files, which begin with e-mail headers")
        if WRONG_ENCODING in self.skipped:
            lines.append("if the files have another encoding, pass encoding=")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def format_reason(reason: str, number: int) -> str:
    """Return a reason with its number of documents, rows or files: ``empty (3)``."""
    return f"{reason} ({number:,})"


class DocumentReader:
    """The documents in a source, read anew at each iteration and never all in memory.

    Returned by :func:`~simlte_st.data.read_documents`. Memory use does not grow with the corpus, except for the hashes
    that keep ids unique (about 100 bytes per document). With ``remember=False``, it does not grow at all, but ids are
    not made unique, and the ids of unreadable documents are not recorded.

    Attributes:
        report: The report of the latest iteration, updated after every document.
        checksum: Checksum of the texts in the latest iteration, in order; None until it ends.
        unread: Ids of unreadable documents, and id prefixes: folder names with a slash for unreadable folders, and the
            empty prefix for rows with unknown ids.
    """

    def __init__(self, source: Source, *, remember: bool = True) -> None:
        self._source, self._remembers = source, remember
        self._started = False
        self._peeked: Iterator[Document] | None = None
        self._clear()

    def _clear(self) -> None:
        """Reset the results of the latest iteration."""
        self.report = ReadReport(self._source.name)
        self.checksum: str | None = None
        self.unread: set[str] = set()

    def with_options(self, **options: Any) -> DocumentReader:
        """Return a reader for the same source with some options of :func:`~simlte_st.data.read_documents` changed.

        Raises:
            DataError: The source can be read only once, and part of it has been read.
        """
        self._check_unread()
        return DocumentReader(open_source(self._source.origin, replace(self._source.reading, **options)))

    def __repr__(self) -> str:
        return f"DocumentReader({self._source.name})"

    @property
    def places(self) -> tuple[Path, ...]:
        """Input files and folders, which no output may overwrite; empty for sources in memory."""
        return self._source.places

    def __length_hint__(self) -> int:
        """Return the maximum number of documents, if known without reading the source, for progress bars."""
        if self.report.finished or self.report.stopped_at is not None:
            return self.report.documents
        sizes = [size for size in (self._source.size(), self._source.reading.limit) if size is not None]
        return min(sizes) if sizes else NotImplemented

    def __iter__(self) -> Iterator[Document]:
        """Read the source from the beginning."""
        if (peeked := self._peeked) is not None:
            self._peeked = None
            return peeked
        self._check_unread()
        self._started = True
        self._clear()
        return self._documents(self.report)

    def _check_unread(self) -> None:
        if self._source.once and self._started:
            advice = "Pass a list, a datasets.IterableDataset, or another iterable that can be read again."
            problem = "is an iterator, which can only be read once and already has been."
            raise DataError(f"{self._source.name} {problem} {advice}")

    def check(self, label: str | None = None) -> None:
        """Read files up to the first document, with a label column, to raise errors early."""
        if self.places:
            next(iter(self.with_options(label_column=label)), None)

    def peek(self) -> list[Document]:
        """Return the first documents, up to a million characters; the next iteration does not reread them."""
        first, self._peeked = peek(self, lambda document: len(document.text))
        return first

    def _documents(self, report: ReadReport) -> Iterator[Document]:
        ids: dict[int, int] | None = {} if self._remembers else None
        texts, label_column = hashlib.blake2b(digest_size=16), self._source.reading.label_column
        is_labelled = label_column is None or not self.places
        try:
            for event in self._source.events():
                if isinstance(event, Columns):
                    report.text_column, report.id_column, report.label_column = event
                elif isinstance(event, Skip) and event.ignored:
                    report.note(report.ignored, event.reason, event.where)
                elif isinstance(event, Skip):
                    report.note(report.skipped, event.reason, event.where, event.detail)
                    self._note_unread(event.id)
                elif not (document := self._make_document(event, ids, report)):
                    self._note_unread(_source_id(event) or event.generated_id or "")
                else:
                    report.documents += 1
                    report.characters += len(document.text)
                    is_labelled |= document.label is not None
                    texts.update(content_id(document.text).encode())
                    if report.documents == self._source.reading.limit:
                        # Set before the yield: a consumer of exactly this many documents does not resume the generator.
                        report.stopped_at, self.checksum = report.documents, texts.hexdigest()
                        yield document
                        return
                    yield document
        except BrokenSourceError as error:
            count = format_count(report.documents, "document")
            raise DataError(f"{error}, after {count} had been read. Download it again or recreate it.") from error
        report.finished, self.checksum = True, texts.hexdigest()
        if report.documents and report.label_column is None and not is_labelled:  # tables are checked when opened
            raise DataError(
                f"The files of {self._source.name} have no column {label_column!r}. Their columns are folder and file, "
                "those of folders such as year=2020, and, for e-mails, subject, sender, recipients and date."
            )
        if not report.documents and self._remembers:
            raise EmptyCorpusError("\n".join([f"{self._source.name} has no usable documents.", *report.troubles()]))

    def _note_unread(self, name: str | None) -> None:
        """Record the id of an unreadable document (None: unknown); ignore "", from a row without text or id."""
        if name != "" and self._remembers:
            self.unread.add(to_nfc(name or ""))

    def _make_document(self, row: Row, ids: dict[int, int] | None, report: ReadReport) -> Document | None:
        """Return a row as a document; if it is unusable, count the reason and return None."""
        if not isinstance(text := row.text, str):
            report.note(report.skipped, NOT_A_STRING, row.where, type(text).__name__)
            return None
        text = str(text)  # numpy.str_ is a subclass of str
        if len(text) > self._source.reading.max_characters and not row.is_document:
            report.note(report.skipped, TOO_LONG, row.where, f"{len(text):,} characters")
            return None
        text = valid_unicode(text.replace("\0", ""))
        if not text or text.isspace():
            report.note(report.skipped, EMPTY, row.where, "only white space" if row.text else "")
            return None
        for reason, detail in {**({INVALID: ""} if text != row.text else {}), **row.repairs}.items():
            report.note(report.repaired, reason, row.where, detail)
        label = None
        try:
            label = to_name(row.label)
        except TypeError as error:
            report.note(report.repaired, "label not usable", row.where, f"a {error} is not a label")
        return Document(self._document_id(row, text, ids, report), text, label, row.split, row.metadata)

    def _document_id(self, row: Row, text: str, ids: dict[int, int] | None, report: ReadReport) -> str:
        source_id = _source_id(row)
        name = source_id or to_nfc(row.generated_id or content_id(text))
        if source_id is None and row.has_id:
            report.note(report.repaired, "missing id", row.where, f"named {name!r}")
        if ids is None:
            return name
        unique = _make_unique(name, ids)
        if unique != name:
            report.note(report.repaired, "duplicate id", row.where, f"{name!r} became {unique!r}")
        return unique


def _make_unique(name: str, counts: dict[int, int]) -> str:
    """Return an id, numbered if it has occurred before; ``counts`` is keyed by the 64-bit hashes of all ids."""
    # Not hash(), which differs between processes, because ids must be the same in every run.
    key, unique = text_key(name), name
    while text_key(unique) in counts:
        counts[key] += 1
        unique = f"{name}#{counts[key]}"
    counts[text_key(unique)] = 1
    return unique


def _source_id(row: Row) -> str | None:
    """Return a row's id; None if it is missing or unusable."""
    with suppress(TypeError):
        return to_name(row.id)
    return None
