"""Format Markdown tables that also read well as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIGNED_ZERO = re.compile(r"[+-](?=0\.0+(?!\d))")


def in_interval(mean: float, low: float, high: float) -> str:
    """Format a difference and its interval with signs, except for zero."""
    return _SIGNED_ZERO.sub("", f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with the first column left-aligned and the others right-aligned."""
    widths = [max(map(len, cells)) for cells in zip(header, *rows, strict=True)]
    formats = [f"{{:{'>' if column else '<'}{width}}}" for column, width in enumerate(widths)]
    lines = ["| " + " | ".join(formats).format(*cells) + " |" for cells in [header, *rows]]
    rules = ["-" * (width + 1) + (":" if column else "-") for column, width in enumerate(widths)]
    return "\n".join([lines[0], f"|{'|'.join(rules)}|", *lines[1:]])
