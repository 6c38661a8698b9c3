"""Progress bars, with log lines printed above them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from operator import length_hint
from typing import TYPE_CHECKING, TypeVar

from tqdm.asyncio import tqdm_asyncio
from tqdm.auto import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

T = TypeVar("T")

SECONDS = 30.0
"""Seconds between updates of a bar that is not on a terminal, for example in a log file."""


def progress_bar(
    name: str, total: int | None = None, *, unit: str = "doc", initial: int = 0, show: bool = True, **options: object
) -> tqdm:
    """Return a tqdm bar, to be closed or used as a context manager. ``options`` are passed to tqdm."""
    options |= {"desc": name, "total": total, "unit": unit, "initial": initial, "disable": not show}
    if tqdm is tqdm_asyncio and not sys.stderr.isatty():  # tqdm.auto's class outside notebooks
        options = {"mininterval": SECONDS, "miniters": 1, **options}
    return tqdm(**options)


def with_progress_bar(
    items: Iterable[T], name: str, total: int | None = None, *, unit: str = "doc", show: bool = True
) -> Iterator[T]:
    """Yield items while a bar counts them; the bar is closed at the end or on an error."""
    with progress_bar(name, total or length_hint(items, 0) or None, unit=unit, show=show) as bar:
        for item in items:
            yield item
            bar.update(1)
        complete(bar)


def complete(bar: tqdm) -> None:
    """Mark a bar as complete, even below its total, because documents may have been skipped."""
    if bar.total is not None and not bar.disable:
        bar.total = bar.n


def write_line(text: str) -> None:
    """Print a line to standard error, above the bars."""
    tqdm.write(text, file=sys.stderr)


def logs_above_bars() -> AbstractContextManager[None]:
    """Print log lines above a bar if logging is configured; if it is not, tqdm would configure it."""
    return logging_redirect_tqdm() if logging.root.handlers else nullcontext()


class TextBar:
    """A progress bar over documents that advances with every forward pass of the model.

    Args:
        name: Description of the work.
        documents: Number of documents, if known.
        show: Whether to show the bar.

    Attributes:
        documents: Number of documents announced so far.
    """

    def __init__(self, name: str, documents: int | None, *, show: bool) -> None:
        self.documents = documents
        self._name, self._show = name, show
        self._end = 0  # number of documents once the current ones are done
        self._position = self._share = 0.0  # documents read so far, and documents per text
        self._exit = ExitStack()

    def __enter__(self) -> TextBar:
        self._exit.enter_context(logs_above_bars())
        self._bar = self._exit.enter_context(progress_bar(self._name, self.documents, show=self._show))
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.begin(0)
            complete(self._bar)
        self._exit.close()

    def begin(self, documents: int) -> None:
        """Announce the number of documents to be read next."""
        self._move(self._end)
        self._end += documents

    @contextmanager
    def reading(self, texts: Sequence[str], model: SentenceTransformer | None) -> Iterator[None]:
        """Advance the bar while a model, if it runs in torch and this process, reads the current documents' texts."""
        self._share = (self._end - self._position) / max(1, len(texts))
        with ExitStack() as stack:
            if self._show and model is not None:
                stack.callback(model[-1].register_forward_hook(self._count).remove)
            yield
        self._move(self._end)

    def _count(self, module: object, inputs: object, output: Mapping[str, Sized]) -> None:
        if "sentence_embedding" in output:
            self._move(min(self._end, self._position + self._share * len(output["sentence_embedding"])))

    def _move(self, position: float) -> None:
        self._position = position
        if self._show:
            self._bar.total = self.documents
            self._bar.update(int(position + 1e-6) - self._bar.n)


@contextmanager
def reading_bar(
    model: SentenceTransformer | None, name: str, texts: Sequence[str], *, documents: int | None = None, show: bool
) -> Iterator[None]:
    """Show a progress bar over ``documents`` (default: the number of texts) while a model reads texts."""
    with TextBar(name, documents or len(texts), show=show) as bar:
        bar.begin(documents or len(texts))
        with bar.reading(texts, model):
            yield
