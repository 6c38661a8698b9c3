"""Figures by matplotlib, without a window and without its global state: the same numbers give the same bytes."""

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
UNSHOWABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # in a figure or page


def check_figure(path: str | os.PathLike[str], formats: Sequence[str] = DRAWN_FORMATS) -> None:
    """Check that a figure can be written, before anything is computed for it."""
    suffix = Path(path).suffix.lower()
    if suffix not in formats:
        raise ConfigurationError(f"{path}: this figure must be a {' or '.join(formats)} file, not {suffix!r}.")
    if suffix in DRAWN_FORMATS:
        require("matplotlib", "figures", f"drawing {suffix} figures")


def plain(text: str) -> str:
    """Replace what a figure cannot show, and end of lines and tabs by spaces.

    matplotlib would still read ``$`` as mathematics: its texts take ``parse_math=False``.
    """
    return UNSHOWABLE.sub("\ufffd", text).replace("\n", " ").replace("\t", " ")


@contextmanager
def drawn_figure(path: str | os.PathLike[str], size: tuple[float, float]) -> Iterator[Any]:
    """Return an empty figure of a size in inches, and write it when the block ends: the same bytes each time."""
    check_figure(path)
    matplotlib: Any = require("matplotlib", "figures", "drawing figures")
    figures: Any = require("matplotlib.figure", "figures", "drawing figures")
    # Names in a vector figure are drawn from a hash with a salt, and it is dated: both would differ each time.
    with matplotlib.rc_context({"svg.hashsalt": "simlte"}):
        figure = figures.Figure(figsize=size)
        yield figure
        kind = Path(path).suffix.lower()[1:]
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)


def finish_axes(axes: Any, **legend: Any) -> None:
    """Return axes their legend, in which names of models are no formulas, and no frame; ``legend`` says where it is."""
    axes.spines[["top", "right"]].set_visible(False)
    for text in axes.legend(frameon=False, fontsize=8, **legend).get_texts():
        text.set_parse_math(False)
    axes.figure.tight_layout()
