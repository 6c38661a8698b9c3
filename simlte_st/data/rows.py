"""What a source gives on its way to documents: rows, and what is counted instead of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simlte_st.errors import DataError

UNREADABLE = "unreadable"
NOT_A_STRING = "not a string"


class UntypedText(str):
    """A value of a source that has no types: a number or a date may be written in it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns: as the user gave them (``text`` may be None), or as chosen for a table (``text`` is set).

    ``others`` asks for all columns but text and id as the documents' metadata.
    """

    text: str | None = None
    id: str | None = None
    label: str | None = None
    others: bool = False

    def named(self) -> dict[str, str]:
        """Return the names that are set, by the parameter of ``read_documents`` they belong to."""
        pairs = {"text_column": self.text, "id_column": self.id, "label_column": self.label}
        return {parameter: name for parameter, name in pairs.items() if name is not None}

    def refuse(self, what: str) -> None:
        """Raise :class:`DataError` if any is named: ``what`` (as it reads at a sentence's beginning) has no columns."""
        if self.named():
            named = ", ".join(f"{parameter}={name!r}" for parameter, name in self.named().items())
            raise DataError(f"{what} has no columns, so {named} cannot be used with it.")


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How to read a source.

    Attributes:
        columns: The columns that the user named.
        encoding: The encoding of files that do not say theirs.
        max_characters: The longest text wanted.
    """

    columns: Columns = field(default_factory=Columns)
    encoding: str = "utf-8"
    max_characters: int = 20_000_000


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row of a table: where it stands, its id where the table gives none, and its values by column."""

    where: str
    made_id: str | None
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """What a source holds of one document, not yet checked.

    Attributes:
        where: Where it stands, for the report.
        made_id: The id where the source gives none; None means the hash of the text.
        text: The value of the text column.
        id: The value of the id column.
        label: The value of the label column.
        has_id: Whether the source has an id column, so that a missing id is worth a mention.
        split: The part of a benchmark it belongs to, where the source says.
        is_document: Whether it was a document already, whose text was checked when it was read.
        metadata: The values of the other columns, where they were asked for.
        source: Name of the source, where it is one of several.
        left_out: What of a file is not in its text: what kind of thing, and what it is.
    """

    where: str
    made_id: str | None
    text: object
    id: object = None
    label: object = None
    has_id: bool = False
    split: str | None = None
    is_document: bool = False
    metadata: Mapping[str, Any] | None = None
    source: str | None = None
    left_out: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that gives no document: a bad row (counted), or what is no row at all (``ignored``).

    ``id`` is that of the document that it would be, where it is known; of a folder that cannot be read it is what the
    ids of its documents begin with, to the slash.
    """

    where: str
    reason: str
    what: str = ""
    ignored: bool = False
    id: str | None = None


Event = Columns | Row | Skip
"""What a source gives, one after the other: the columns chosen for a table before its rows."""
