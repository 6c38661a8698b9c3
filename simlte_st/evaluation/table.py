"""Markdown tables that also read well as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIGNED_ZERO = re.compile(r"[+-](?=0\.0+(?!\d))")


def in_interval(mean: float, low: float, high: float) -> str:
    """Format a difference and its interval with signs, without a sign for zero."""
    return _SIGNED_ZERO.sub("", f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is aligned left, the others right."""
    widths = [max(len(str(row[column])) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = (
        "|" + "|".join("-" * (width + 1) + ("-" if column == 0 else ":") for column, width in enumerate(widths)) + "|"
    )
    return "\n".join([line(header), rule, *(line(row) for row in rows)])
