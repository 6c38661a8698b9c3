"""Progress bars with a name and, if known, a total; log lines are printed above them.

Documents that go through a model have a bar that moves with every pass: :class:`simlte_st.models.pace.TextBar`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from operator import length_hint
from typing import Any, TypeVar

from tqdm.asyncio import tqdm_asyncio
from tqdm.auto import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

T = TypeVar("T")

SECONDS = 30.0
"""Between two states of a bar without a terminal, as in a log file."""


def progress_bar(
    name: str, total: int | None = None, *, unit: str = "doc", initial: int = 0, shown: bool = True, **options: Any
) -> Any:
    """Return a tqdm bar with other options of tqdm; close it, or use it as a context manager."""
    options |= {"desc": name, "total": total, "unit": unit, "initial": initial, "disable": not shown}
    is_notebook = tqdm is not tqdm_asyncio
    if not is_notebook and not sys.stderr.isatty():
        options = {"mininterval": SECONDS, "miniters": 1, **options}
    return tqdm(**options)


def with_progress_bar(
    items: Iterable[T], name: str, total: int | None = None, *, unit: str = "doc", shown: bool = True
) -> Iterator[T]:
    """Yield items while a bar counts them; the bar is closed at the end or on an error."""
    with progress_bar(name, total or length_hint(items, 0) or None, unit=unit, shown=shown) as bar:
        for item in items:
            yield item
            bar.update(1)
        complete(bar)


def complete(bar: Any) -> None:
    """Mark a bar as complete, even if fewer items came than its total (documents may be skipped)."""
    if bar.total is not None and not bar.disable:
        bar.total = bar.n


def logs_above_bars() -> AbstractContextManager[None]:
    """Print log lines above a bar instead of into it, if logging is set up (tqdm would set it up otherwise)."""
    return logging_redirect_tqdm() if logging.root.handlers else nullcontext()
