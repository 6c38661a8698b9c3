"""Rows, skips and columns, as all sources yield them, and the options for reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from simlte_st.arguments import Count, check_fields
from simlte_st.errors import DataError, MissingExtraError
from simlte_st.extras import install_command

EXTRA = "documents"
MISSING_EXTRA = f"not readable without the extra {EXTRA}: {install_command(EXTRA)}"

EMPTY = "empty"
TOO_LONG = "too long"
NOT_A_STRING = "not a string"
UNREADABLE = "unreadable"
DAMAGED = "damaged"
ENCRYPTED = "encrypted"
BINARY = "binary"
WRONG_ENCODING = "wrong encoding"


def is_encoding(name: str) -> bool:
    """Return whether a text encoding exists."""
    try:
        return bool("a".encode(name))
    except (LookupError, ValueError):
        return False


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The options of :func:`~simlte_st.data.read_documents`, where they are documented."""

    text_column: str | None = None
    id_column: str | None = None
    label_column: str | None = None
    encoding: str = "utf-8"
    limit: Count | None = None
    mails: bool = False
    drop_quotes: bool = False
    html: bool = False
    metadata: bool = False
    max_characters: Count = 20_000_000

    def __post_init__(self) -> None:
        check_fields(self)
        if not is_encoding(self.encoding):
            raise DataError(
                f"There is no text encoding {self.encoding!r}; try 'utf-8', 'latin-1', 'cp1252' or 'utf-16'."
            )

    def named_columns(self) -> dict[str, str]:
        """Return the columns that were named, by option."""
        names = ("text_column", "id_column", "label_column")
        return {name: column for name in names if (column := getattr(self, name)) is not None}

    def refuse_columns(self, subject: str) -> None:
        """Raise :class:`DataError` if columns are named for a source without columns."""
        if named := ", ".join(f"{option}={name!r}" for option, name in self.named_columns().items()):
            raise DataError(f"{subject} has no columns, so {named} cannot be used.")

    def check_size(self, size: int) -> None:
        """Raise :class:`BadTextError` if a file or e-mail has too many bytes."""
        if size > self.max_bytes:
            raise BadTextError(TOO_LONG, f"more than {self.max_bytes:,} bytes")

    @property
    def max_bytes(self) -> int:
        """Maximum size of a file, line or e-mail in bytes."""
        # A character beyond the basic plane takes 12 bytes in JSON escapes; one megabyte more for markup.
        return 12 * self.max_characters + (1 << 20)


class Columns(NamedTuple):
    """The chosen columns of a table."""

    text: str
    id: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row of a table: its position, a generated id and its values by column."""

    where: str
    generated_id: str | None
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Row:
    """A document that has not been checked."""

    where: str  # position, for the report
    generated_id: str | None  # for sources without ids; None: the hash of the text
    text: object
    id: object = None
    label: object = None
    has_id: bool = False  # whether the source has ids; a missing one is reported
    split: str | None = None
    is_document: bool = False  # whether it comes from a Document, whose text is already checked
    metadata: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """A row without a usable document, or (``ignored``) something that is not a row.

    ``id`` is the document's id, if known; for an unreadable folder, its ids' common prefix.
    """

    where: str
    reason: str
    detail: str = ""
    ignored: bool = False
    id: str | None = None


Event = Columns | Row | Skip


class BrokenSourceError(DataError):
    """A source that ends too early; the reader adds the number of documents read before."""


class BadTextError(Exception):
    """Bytes that are not text; the arguments are the reason and details."""


def make_skip(error: Exception, where: str, id: str | None = None) -> Skip:
    """Return the skip for an unreadable file or part of a file."""
    if isinstance(error, BrokenSourceError) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    if isinstance(error, BadTextError):
        return replace(Skip(where, *error.args), id=id)
    if isinstance(error, MissingExtraError):
        return Skip(where, MISSING_EXTRA, id=id)
    if isinstance(error, OSError):
        return Skip(where, UNREADABLE, error.strerror or str(error), id=id)
    return Skip(where, DAMAGED, f"{type(error).__name__}: {error}", id=id)  # of any library
