"""Progress bars with a name and, if known, a total; log lines are printed above them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import length_hint
from typing import Any, TypeVar

from tqdm.auto import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

T = TypeVar("T")


def progress_bar(
    name: str, total: int | None = None, *, unit: str = "doc", initial: int = 0, shown: bool = True
) -> Any:
    """Return a tqdm bar; close it, or use it as a context manager."""
    return tqdm(desc=name, total=total, unit=unit, initial=initial, disable=not shown)


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
        bar.refresh()


@contextmanager
def counting_texts(model: Any, bar: Any) -> Iterator[None]:
    """Advance a bar by the texts of each batch that a model encodes (sentence-transformers' own counts batches)."""

    def count(module: Any, inputs: Any, output: dict[str, Any]) -> None:  # a returned value would replace the output
        bar.update(len(output["sentence_embedding"]))

    hook = model[-1].register_forward_hook(count)
    try:
        yield
    finally:
        hook.remove()


def logs_above_bars() -> AbstractContextManager[None]:
    """Print log lines above a bar instead of into it, if logging is set up (tqdm would set it up otherwise)."""
    return logging_redirect_tqdm() if logging.root.handlers else nullcontext()
