"""Markdown tables that read well as plain text, too."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIGNED_ZERO = re.compile(r"[+-](?=0\.0+(?!\d))")


def named_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return a Markdown table whose rows begin with names, which lose their beginning where it would be too wide."""
    table = markdown_table(header, rows)
    over = 0 if width is None else len(table.partition("\n")[0]) - width
    if over <= 0:
        return table
    longest = max(len(row[0]) for row in rows) - over
    names = short_names([row[0] for row in rows], max(longest, len(header[0])))
    return markdown_table(header, [[names[row[0]], *row[1:]] for row in rows])


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Return names, such as paths, by their ends, if these tell them apart."""
    shown = {name: name if len(name) <= width else f"…{name[len(name) - width + 1 :]}" for name in names}
    return shown if len(set(shown.values())) == len(shown) else {name: name for name in names}


def in_interval(mean: float, low: float, high: float) -> str:
    """Return a difference with its interval, with signs; what rounds to zero has none."""
    return _SIGNED_ZERO.sub("", f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns: the first to the left, the others to the right."""
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
