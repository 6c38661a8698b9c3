"""What all figures share: a file that is the same each time, names as they are, and no global state of matplotlib."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simlte_st.errors import ConfigurationError
from simlte_st.extras import require
from simlte_st.files import atomic_path

DRAWN_FORMATS = (".svg", ".png")
"""What matplotlib writes here."""

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that neither a figure nor a page can show."""


def check_figure(path: str | os.PathLike[str], formats: Sequence[str] = DRAWN_FORMATS) -> None:
    """Check that a figure can be written, before anything is computed for it.

    Raises:
        ConfigurationError: Its name ends in no known format.
        MissingExtraError: matplotlib is needed for it and is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in formats:
        raise ConfigurationError(f"{path}: a figure of this kind ends in {', '.join(formats)}, not in {suffix!r}.")
    if suffix != ".html":
        require("matplotlib", "figures", f"drawing {suffix} figures")


def plain(text: str) -> str:
    """Replace what a figure cannot show, and end of lines and tabs by spaces.

    matplotlib would still read ``$`` as mathematics: its texts take ``parse_math=False``.
    """
    return CONTROL.sub("\ufffd", text).replace("\n", " ").replace("\t", " ")


@contextmanager
def drawn_figure(path: str | os.PathLike[str], size: tuple[float, float]) -> Iterator[Any]:
    """Give an empty figure of a size in inches, and write it when the block ends: the same bytes each time.

    Args:
        path: A file of :data:`DRAWN_FORMATS`; replaced at once when it is complete.
        size: Width and height, inches.

    Yields:
        The ``matplotlib.figure.Figure``.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    matplotlib: Any = require("matplotlib", "figures", "drawing figures")
    figures: Any = require("matplotlib.figure", "figures", "drawing figures")
    # Names in a vector figure are drawn from a hash with a salt, and it is dated: both would differ each time.
    with matplotlib.rc_context({"svg.hashsalt": "simlte"}):
        figure = figures.Figure(figsize=size)
        yield figure
        kind = Path(path).suffix.lower()[1:]
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
