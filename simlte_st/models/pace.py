"""How far texts are on their way through a model, in tokens, and what is left in seconds: said before long work."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from simlte_st.data.document import count_words
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.models.static import is_static
from simlte_st.models.truncation import Truncation
from simlte_st.progress import complete, logs_above_bars, progress_bar, spell_seconds

MEASURED = 5.0
"""Seconds of work after which its whole is estimated."""

LONG_WORK = 60.0
"""Seconds of work from which the estimate is said."""

CHEAPER = " simlte-static in place of the model takes a fraction of it; limit= tries fewer documents."

_SAMPLE, _CHARACTERS = 16, 2_000  # texts whose tokens are counted, and characters of each

logger = logging.getLogger(__name__)


class TokenBar:
    """A progress bar of texts that a model reads: it moves with every pass, and its time left is that of the tokens.

    Texts are announced as they become known; documents that have not been read yet count as the mean so far. Work that
    takes more than a minute is said to after some seconds, with what it costs and how to have it cheaper.

    Args:
        model: The model, which moves the bar where this process encodes.
        name: What is done.
        documents: Number of documents, if known.
        shown: Whether the bar is shown; if not, nothing is measured or said.
        cheaper: What is said of cheaper ways for encoders.

    Attributes:
        documents: Number of documents, as far as it is known by now.
    """

    def __init__(
        self, model: SentenceTransformer, name: str, documents: int | None, *, shown: bool, cheaper: str = CHEAPER
    ) -> None:
        self.documents, self._cheaper = documents, "" if is_static(model) else cheaper
        self._model, self._name, self._shown = model, name, shown
        self._characters = 0.0  # of a token
        self._begun = self._done = 0  # documents
        self._before = self._expected = 0.0  # tokens that have been read, and those of the texts that are being read
        self._started, self._said = 0.0, not shown  # when the first text was; whether the cost has been said
        self._exit = ExitStack()

    def __enter__(self) -> TokenBar:
        self._exit.enter_context(logs_above_bars())
        options: dict[str, Any] = {"unit_scale": True, "smoothing": 0, "mininterval": 0.5}
        bar = progress_bar(self._name, unit=" tokens", shown=self._shown, **options)
        self._bar = self._exit.enter_context(bar)
        if self._shown:
            self._budget = Truncation.of(self._model).budget
            hook = _reading_module(self._model).register_forward_hook(self._count)
            self._exit.callback(hook.remove)
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.begin(0)
            complete(self._bar)
        self._exit.close()

    def begin(self, documents: int) -> None:
        """Count documents whose texts are read next, as far as they have to be."""
        self._done = self._begun
        self._begun += documents
        self._read(0)

    @contextmanager
    def reading(self, texts: Sequence[str]) -> Iterator[None]:
        """Count the texts of the documents that were begun while the model reads them."""
        self._expected = self._estimate(texts)
        self._started = self._started or time.perf_counter()
        self._read(0)
        yield
        if self._bar.n == self._before:  # no pass was seen
            self._read(self._expected)
        self._finish()

    def skip(self, texts: Sequence[str]) -> None:
        """Count documents that were read by a run before this one."""
        self.begin(len(texts))
        if self._shown:
            tokens = self._estimate(texts)
            self._bar.initial += tokens
            self._read(tokens)
        self._finish()

    def watch(self, pool: Any) -> None:
        """Count what other processes have read, by sentence-transformers' pool of them."""
        if pool is not None and self._shown:
            pool["output"] = _Watched(pool["output"], self._count_rows)

    def _count(self, module: Any, inputs: Any, output: Any) -> None:
        states = output.get("input_ids") if type(output) is dict else output[0]
        if isinstance(states, Tensor):  # ids of a static embedding, or states of an encoder
            self._read(states.numel() if states.dim() == 1 else states.shape[:-1].numel())

    def _count_rows(self, rows: int) -> None:
        self._read(self._expected * rows / max(1, self._texts))

    def _finish(self) -> None:
        self._done, self._before, self._expected = self._begun, self._bar.n, 0.0
        self._read(0)

    def _read(self, tokens: float) -> None:
        if not self._shown:
            return
        bar, read = self._bar, self._bar.n + tokens - self._before
        if self.documents is not None:
            known = self._before + max(self._expected, read)
            bar.total = known * max(1, self.documents / max(1, self._begun))
            share = min(1.0, read / self._expected) if self._expected else 0.0
            done = self._done + int(share * (self._begun - self._done))
            bar.set_postfix_str(f"{done:,} of {self.documents:,} documents", refresh=False)
        bar.update(tokens)
        self._say_cost()

    def _say_cost(self) -> None:
        """Log after some seconds how long the whole takes, if that is long."""
        done, took = self._bar.n - self._bar.initial, time.perf_counter() - self._started
        if self._said or not done or took < MEASURED or self._bar.total is None:
            return
        self._said = True
        left = self._bar.total - self._bar.n
        if left / done * took > LONG_WORK:
            logger.info(
                "%s takes about %s: %s tokens, %s a second.%s",
                self._name,
                spell_seconds(left / done * took),
                f"{left:,.0f}",
                f"{done / took:,.0f}",
                self._cheaper,
            )

    def _estimate(self, texts: Sequence[str]) -> float:
        """Estimate the tokens that the model reads of texts from their characters."""
        self._texts = len(texts)
        if not self._shown or not texts:
            return 0.0
        if not self._characters:
            sample = [text[:_CHARACTERS] for text in texts[:: max(1, len(texts) // _SAMPLE)]]
            self._characters = sum(map(len, sample)) / max(1, sum(_lengths(self._model, sample)))
        lengths = (len(text) / self._characters for text in texts)
        return sum(lengths if self._budget is None else (min(length, self._budget) for length in lengths))


@contextmanager
def reading(
    model: SentenceTransformer, name: str, texts: Sequence[str], *, shown: bool, cheaper: str = ""
) -> Iterator[None]:
    """Show a bar while a model reads texts."""
    with TokenBar(model, name, len(texts), shown=shown, cheaper=cheaper) as bar:
        bar.begin(len(texts))
        with bar.reading(texts):
            yield


class _Watched:
    """The queue of what a pool has made, which counts the rows of each result."""

    def __init__(self, queue: Any, count: Callable[[int], None]) -> None:
        self._queue, self._counted = queue, count

    def get(self, *arguments: Any, **options: Any) -> Any:
        """Return the next result."""
        result = self._queue.get(*arguments, **options)
        if isinstance(result[1], np.ndarray):
            self._counted(len(result[1]))
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


def _reading_module(model: SentenceTransformer) -> nn.Module:
    """Return what reads the passes of a model: of one that reads documents in chunks, what reads the chunks."""
    encoder = model.transformers_model
    if encoder is None:
        return model[0]
    inner = getattr(encoder, "encoder", None)
    return inner if isinstance(inner, nn.Module) else encoder


def _lengths(model: SentenceTransformer, texts: Sequence[str]) -> Sequence[int]:
    """Return the tokens of texts; their words, for models of word vectors."""
    if model.transformers_model is None and not is_static(model):
        return [count_words(text) for text in texts]
    return tokenizer_counter(model.tokenizer)(texts)
