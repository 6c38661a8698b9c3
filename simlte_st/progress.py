"""Progress bars: each with a name and, where it is known, a total; log lines stand above them."""

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
    """Open a bar, which its user moves on by ``update`` and closes, as a context manager or by ``close``."""
    return tqdm(desc=name, total=total, unit=unit, initial=initial, disable=not shown)


def with_progress_bar(
    items: Iterable[T], name: str, total: int | None = None, *, unit: str = "doc", shown: bool = True
) -> Iterator[T]:
    """Return items under a bar, which is closed when they end or an error ends them."""
    with progress_bar(name, total or length_hint(items, 0) or None, unit=unit, shown=shown) as bar:
        for item in items:
            yield item
            bar.update(1)
        complete(bar)


def complete(bar: Any) -> None:
    """Say that a bar has come to its end: of the documents that a source has, some may have been left out."""
    if bar.total is not None and not bar.disable:
        bar.total = bar.n
        bar.refresh()


@contextmanager
def counting_texts(model: Any, bar: Any) -> Iterator[None]:
    """Move a bar on by the texts of each batch that a model encodes.

    sentence-transformers' own bar counts batches, and is called so whatever is encoded.
    """

    def count(module: Any, inputs: Any, output: dict[str, Any]) -> None:  # what it returned would replace the output
        bar.update(len(output["sentence_embedding"]))

    hook = model[-1].register_forward_hook(count)
    try:
        yield
    finally:
        hook.remove()


def logs_above_bars() -> AbstractContextManager[None]:
    """Let log lines that go to the terminal stand above a bar instead of in it.

    Where nothing was set up to show them, tqdm would begin to: then nothing is done.
    """
    redirected: AbstractContextManager[None] = logging_redirect_tqdm() if logging.root.handlers else nullcontext()
    return redirected
