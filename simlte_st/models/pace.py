"""How far a model is with the documents that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from sentence_transformers import SentenceTransformer

from simlte_st.progress import complete, logs_above_bars, progress_bar


class TextBar:
    """A progress bar of documents that moves with every pass of the model through their texts.

    Args:
        model: The model, which moves the bar where this process encodes.
        name: Description of the work.
        documents: Number of documents, if known.
        shown: Whether the bar is shown.

    Attributes:
        documents: Number of documents, as far as it is known by now.
    """

    def __init__(self, model: SentenceTransformer, name: str, documents: int | None, *, shown: bool) -> None:
        self.documents = documents
        self._model, self._name, self._shown = model, name, shown
        self._begun = 0
        self._read = self._share = 0.0  # documents that were read, and those of a text
        self._exit = ExitStack()

    def __enter__(self) -> TextBar:
        self._exit.enter_context(logs_above_bars())
        self._bar = self._exit.enter_context(progress_bar(self._name, self.documents, shown=self._shown))
        if self._shown:
            self._exit.callback(self._model[-1].register_forward_hook(self._count).remove)
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.begin(0)
            complete(self._bar)
        self._exit.close()

    def begin(self, documents: int) -> None:
        """Count documents whose texts are read next, as far as they have to be."""
        self._move(self._begun)
        self._begun += documents

    @contextmanager
    def reading(self, texts: Sequence[str]) -> Iterator[None]:
        """Count the texts of the documents that were begun while the model reads them."""
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
def reading(model: SentenceTransformer, name: str, texts: Sequence[str], *, shown: bool) -> Iterator[None]:
    """Show a bar while a model reads texts."""
    with TextBar(model, name, len(texts), shown=shown) as bar:
        bar.begin(len(texts))
        with bar.reading(texts):
            yield
