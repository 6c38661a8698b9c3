"""The rows, skips and columns that every source yields, and the reading options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import webencodings

from simlte_st.arguments import Count, check_fields
from simlte_st.errors import DataError, MissingExtraError
from simlte_st.extras import install_command

EXTRA = "documents"
MISSING_EXTRA = f'not readable without the "{EXTRA}" extra: {install_command(EXTRA)}'

EMPTY = "empty"
TOO_LONG = "too long"
NOT_A_STRING = "not a string"
DAMAGED = "damaged"
ENCRYPTED = "encrypted"
BINARY = "binary"
WRONG_ENCODING = "wrong encoding"

_WIDER_CODECS = {"gbk": "gb18030", "iso-2022-jp": "iso2022_jp_ext"}  # in which e-mails and pages with these labels are


def is_encoding(name: str) -> bool:
    """Return whether a text encoding exists."""
    try:
        return bool("a".encode(name))
    except (LookupError, ValueError):
        return False


def find_codec(label: str) -> str | None:
    """Return Python's codec for an encoding label as browsers understand it; None if it is unknown."""
    encoding = webencodings.lookup(label)
    if encoding is None or encoding.name in ("replacement", "x-user-defined"):
        return label if is_encoding(label) else None
    return str(_WIDER_CODECS.get(encoding.name, encoding.codec_info.name))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The options of :func:`~simlte_st.data.read_documents`, which documents them."""

    text_column: str | None = None
    id_column: str | None = None
    label_column: str | None = None
    encoding: str = "utf-8"
    limit: Count | None = None
    mails: bool = False
    html: bool = False
    metadata: bool = False
    max_characters: Count = 20_000_000

    def __post_init__(self) -> None:
        check_fields(self)
        if not is_encoding(self.encoding):
            raise DataError(f"Unknown text encoding {self.encoding!r}: try 'utf-8', 'latin-1', 'cp1252' or 'utf-16'.")

    def named_columns(self) -> dict[str, str]:
        """Return the columns named by the user, by option."""
        names = ("text_column", "id_column", "label_column")
        return {name: column for name in names if (column := getattr(self, name)) is not None}

    def refuse_columns(self, subject: str) -> None:
        """Raise :class:`DataError` if the user named columns of a source that has none."""
        if named := ", ".join(f"{option}={name!r}" for option, name in self.named_columns().items()):
            raise DataError(f"{subject} has no columns, so {named} cannot be used.")

    def check_size(self, size: int) -> None:
        """Raise :class:`BadTextError` if a file or e-mail is too large."""
        if size > self.max_bytes:
            raise BadTextError(TOO_LONG, f"more than {self.max_bytes:,} bytes")

    @property
    def max_bytes(self) -> int:
        """The maximum size of a file, line or e-mail in bytes."""
        # A character beyond the basic plane takes 12 bytes as JSON escapes; one megabyte is allowed for markup.
        return 12 * self.max_characters + (1 << 20)


class Columns(NamedTuple):
    """The columns chosen from a table."""

    text: str
    id: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row of a table: its position, a generated id, its values by column, and repairs as in :class:`Row`."""

    where: str
    generated_id: str | None
    values: Mapping[str, object]
    repairs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """A document before it is checked."""

    where: str  # its position, for the report
    generated_id: str | None  # used if the source has no ids; None for a hash of the text
    text: object
    id: object = None
    label: object = None
    has_id: bool = False  # whether the source has ids, so that a missing id is reported
    split: str | None = None
    is_document: bool = False  # whether it was a Document, whose text has already been checked
    metadata: Mapping[str, object] | None = None
    repairs: Mapping[str, str] = field(default_factory=dict)  # details of what was repaired, by reason


@dataclass(frozen=True, slots=True)
class Skip:
    """A row without a usable document or, if ``ignored``, a file or folder that is not read.

    ``id`` is the document's id, if known; for an unreadable folder, the common prefix of its ids.
    """

    where: str
    reason: str
    detail: str = ""
    ignored: bool = False
    id: str | None = None


class Content(NamedTuple):
    """The content of a file or an e-mail; ``repairs`` as in :class:`Row`."""

    text: str
    columns: Mapping[str, object] = MappingProxyType({})
    repairs: Mapping[str, str] = MappingProxyType({})
    id: str | None = None


Event = Columns | Row | Skip


class BrokenSourceError(DataError):
    """A source broke off; the reader adds the number of documents read until then."""


class BadTextError(Exception):
    """A text could not be read; the arguments are the reason and details."""


def make_skip(error: Exception, where: str, id: str | None = None) -> Skip:
    """Return a skip for an unreadable file or part of a file."""
    if isinstance(error, BrokenSourceError) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    if isinstance(error, BadTextError):
        return replace(Skip(where, *error.args), id=id)
    if isinstance(error, (MissingExtraError, ModuleNotFoundError)):
        return Skip(where, MISSING_EXTRA, id=id)
    if isinstance(error, OSError):
        return Skip(where, "unreadable", error.strerror or str(error), id=id)
    return Skip(where, DAMAGED, f"{type(error).__name__}: {error}", id=id)  # an error from any library
