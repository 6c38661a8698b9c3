"""Figures by matplotlib, without a window and without its global state: the same numbers give the same bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simlte_st.extras import require
from simlte_st.files import atomic_path


@contextmanager
def drawn_figure(path: str | os.PathLike[str], size: tuple[float, float]) -> Iterator[Any]:
    """Return an empty figure of a size in inches, and write it as SVG when the block ends."""
    matplotlib: Any = require("matplotlib", "figures", "drawing figures")
    figures: Any = require("matplotlib.figure", "figures", "drawing figures")
    # Names in a vector figure are drawn from a hash with a salt, and it is dated: both would differ each time.
    with matplotlib.rc_context({"svg.hashsalt": "simlte"}):
        figure = figures.Figure(figsize=size)
        yield figure
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})
