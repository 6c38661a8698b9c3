"""Hits as CSV, which people open in a spreadsheet: what documents say must not be computed there."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

_FORMULA = re.compile(r"[=+\-@\t\r\n\0＝＋－＠]")
_HARMLESS = re.compile(r"[+\-@][\w.,:/-]*(?:e\+\d+)?", re.ASCII | re.IGNORECASE)
"""A number, or a name such as -dQw4w9 or @handle: no function is called and no program started."""


def as_cell(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would take for a formula, as OWASP advises.

    Numbers stay as they are, and so do ids of one word, so that what joins on them still does. ``cell`` of
    ``exploration/page.js`` does the same.
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _HARMLESS.fullmatch(value):
        return f"'{value}"
    return value


def spreadsheet_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows of the same columns as CSV with a header, and each text in quotes.

    References:
        CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection
    """
    table = io.StringIO()
    writer = csv.writer(table, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(map(as_cell, rows[0]))
    writer.writerows(map(as_cell, row.values()) for row in rows)
    return table.getvalue()
