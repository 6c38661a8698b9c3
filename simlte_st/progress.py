"""Progress bars, with log lines printed above them.

:class:`TextBar` moves with every pass of a model through its documents.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from operator import length_hint
from typing import TYPE_CHECKING, Any, TypeVar

from tqdm.asyncio import tqdm_asyncio
from tqdm.auto import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

T = TypeVar("T")

SECONDS = 30.0
"""Seconds between two updates of a bar that is not on a terminal, such as in a log file."""


def progress_bar(
    name: str, total: int | None = None, *, unit: str = "doc", initial: int = 0, shown: bool = True, **options: Any
) -> Any:
    """Return a tqdm bar; close it, or use it as a context manager. ``options`` are tqdm's."""
    options |= {"desc": name, "total": total, "unit": unit, "initial": initial, "disable": not shown}
    if tqdm is tqdm_asyncio and not sys.stderr.isatty():  # not in a notebook
        options = {"mininterval": SECONDS, "miniters": 1, **options}
    return tqdm(**options)


def with_progress_bar(
    items: Iterable[T], name: str, total: int | None = None, *, unit: str = "doc", shown: bool = True
) -> Iterator[T]:
    """Yield items and count them in a bar, which is closed at the end or on an error."""
    with progress_bar(name, total or length_hint(items, 0) or None, unit=unit, shown=shown) as bar:
        for item in items:
            yield item
            bar.update(1)
        complete(bar)


def complete(bar: Any) -> None:
    """Mark a bar as complete, even below its total, since documents may be skipped."""
    if bar.total is not None and not bar.disable:
        bar.total = bar.n


def logs_above_bars() -> AbstractContextManager[None]:
    """Print log lines above a bar if logging is configured; tqdm would configure it otherwise."""
    return logging_redirect_tqdm() if logging.root.handlers else nullcontext()


class TextBar:
    """A progress bar over documents that moves with every pass of the model.

    Args:
        model: The model; its passes in this process move the bar. None if it does not run in torch.
        name: Description of the work.
        documents: Number of documents, if known.
        shown: Whether the bar is shown.

    Attributes:
        documents: Number of documents known so far.
    """

    def __init__(self, model: SentenceTransformer | None, name: str, documents: int | None, *, shown: bool) -> None:
        self.documents = documents
        self._model, self._name, self._shown = model, name, shown
        self._begun = 0
        self._read = self._share = 0.0  # documents read so far, and documents per text
        self._exit = ExitStack()

    def __enter__(self) -> TextBar:
        self._exit.enter_context(logs_above_bars())
        self._bar = self._exit.enter_context(progress_bar(self._name, self.documents, shown=self._shown))
        if self._shown and self._model is not None:
            self._exit.callback(self._model[-1].register_forward_hook(self._count).remove)
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.begin(0)
            complete(self._bar)
        self._exit.close()

    def begin(self, documents: int) -> None:
        """Start counting documents whose texts are read next."""
        self._move(self._begun)
        self._begun += documents

    @contextmanager
    def reading(self, texts: Sequence[str]) -> Iterator[None]:
        """Move the bar while the model reads the texts of the current documents."""
        self._share = (self._begun - self._read) / max(1, len(texts))
        yield
        self._move(self._begun)

    def _count(self, module: Any, inputs: Any, output: Any) -> None:
        if "sentence_embedding" in output:
            self._move(min(self._begun, self._read + self._share * len(output["sentence_embedding"])))

    def _move(self, read: float) -> None:
        self._read = read
        if self._shown:
            self._bar.total = self.documents
            self._bar.update(int(read + 1e-6) - self._bar.n)


@contextmanager
def reading(
    model: SentenceTransformer | None, name: str, texts: Sequence[str], *, documents: int | None = None, shown: bool
) -> Iterator[None]:
    """Show a progress bar while a model reads texts; it counts ``documents``, by default as many as texts."""
    with TextBar(model, name, documents or len(texts), shown=shown) as bar:
        bar.begin(documents or len(texts))
        with bar.reading(texts):
            yield
