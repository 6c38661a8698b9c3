"""The report of reading a source."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from simlte_st.data.formats import TABLE_SUFFIXES
from simlte_st.data.formats.mail import RAW_MAIL
from simlte_st.data.rows import WRONG_ENCODING, Columns

LOOKED_AT = 100
"""Documents, the first ones, that show whether a source holds raw e-mails or HTML."""

_EXAMPLES = 3
_EXAMPLE_LENGTH = 200


@dataclass
class ReadReport:
    """What was read from a source; every row of it is counted somewhere."""

    source: str
    documents: int = 0
    characters: int = 0  # of these documents
    skipped: dict[str, int] = field(default_factory=dict)  # rows or files that gave no document, by reason
    repaired: dict[str, int] = field(default_factory=dict)  # documents, by what was repaired
    left_out: dict[str, int] = field(default_factory=dict)  # documents read in part, by the kind of the other parts
    mails: int = 0  # of the first documents, those that look like raw e-mails
    tagged: int = 0  # of the first documents, those that have HTML tags
    copies: int = 0  # documents with exactly the text of an earlier one, which are kept; known at the end
    ignored: dict[str, int] = field(default_factory=dict)  # files of other kinds, by suffix, and blank lines
    examples: dict[str, list[str]] = field(default_factory=dict)  # the first few cases of each reason
    text_column: str | None = None  # of several tables the last one's, as for the id and the label
    text_columns: list[str] = field(default_factory=list)  # of all tables
    id_column: str | None = None
    label_column: str | None = None
    finished: bool = False  # whether the source was read to its end
    stopped_at: int | None = None  # the limit at which reading stopped

    def note_columns(self, columns: Columns) -> None:
        """Keep the columns that were chosen for a source."""
        self.text_column, self.id_column, self.label_column = columns
        if columns.text not in self.text_columns:
            self.text_columns.append(columns.text)

    def note(self, counts: dict[str, int], reason: str, where: str, what: str = "") -> None:
        """Count a case in ``skipped``, ``repaired``, ``left_out`` or ``ignored``; keep the first few as examples."""
        counts[reason] = counts.get(reason, 0) + 1
        if counts is self.ignored:
            return
        if len(examples := self.examples.setdefault(reason, [])) < _EXAMPLES:
            example = f"{where}: {what}" if what else where
            # Names and messages come from the data and may be unprintable.
            examples.append(example[:_EXAMPLE_LENGTH].encode("utf-8", "replace").decode("utf-8"))

    def summary(self) -> str:
        """Return in a few lines what was read, skipped, repaired and ignored."""
        line = f"read {self.documents:,} document{'' if self.documents == 1 else 's'} ({self.characters:,} characters)"
        if self.text_columns:
            line += f" from the column{'s' * (len(self.text_columns) > 1)} {', '.join(map(repr, self.text_columns))}"
        if self.copies:
            line += f"; {self.copies:,} {'is a duplicate' if self.copies == 1 else 'are duplicates'} of others"
        lines = [line, *self.troubles()]
        if self.stopped_at is not None:
            lines.append(f"stopped at the limit of {self.stopped_at:,}; the rest of the source was not read")
        return "\n".join(lines)

    def troubles(self) -> list[str]:
        """Return lines about what was skipped, repaired and ignored, and what can be done about it."""
        kinds = {
            "skipped": self.skipped,
            "repaired": self.repaired,
            "read in part, without": self.left_out,
            "ignored": self.ignored,
        }
        lines = [self._tally(verb, counts) for verb, counts in kinds.items() if counts]
        if table := next((kind for kind in self.ignored if kind in TABLE_SUFFIXES), None):
            lines.append(f"tables in a folder are read if they are named, for example as FOLDER/*{table}")
        if WRONG_ENCODING in self.skipped:
            lines.append("if the files are in another encoding, name it with encoding=")
        if RAW_MAIL in self.ignored or 2 * self.mails > min(self.documents, LOOKED_AT):
            lines.append("raw e-mails, with their headers, are read as such with mails=True")
        if 10 * self.tagged > min(self.documents, LOOKED_AT):
            lines.append("texts that have HTML tags are read without them with html=True")
        return lines

    def _tally(self, verb: str, counts: dict[str, int]) -> str:
        parts = []
        for reason, number in sorted(counts.items(), key=lambda item: -item[1]):
            first = self.examples.get(reason)
            parts.append(counted(number, reason) + (f", first: {first[0]}" if first else ""))
        return f"{verb} {sum(counts.values()):,}: {'; '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def counted(number: int, reason: str) -> str:
    """Return a reason, and the number of documents, rows or files it holds for."""
    return f"{reason} ({number:,})"
