"""The errors this package raises on purpose.

Each says what was wrong, with which value, and what to do instead. The command line prints a :class:`SimlteError` as it
is, and reports any other error as a bug.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class SimlteError(Exception):
    """Base of every error raised on purpose by ``simlte_st``."""


class DataError(SimlteError, ValueError):
    """The documents cannot be used: a missing column, an unreadable source, an unknown format."""


class EmptyCorpusError(DataError):
    """The source has too few usable documents."""


class ConfigurationError(SimlteError, ValueError):
    """A setting is out of its range or contradicts another one."""


class ModelError(SimlteError, ValueError):
    """A model cannot be loaded or lacks what is needed (a text encoder, a mask token, an MLM head, ...)."""


class ResumeError(SimlteError, RuntimeError):
    """There is no interrupted run to resume, or it has other settings."""


class StoreError(SimlteError, OSError):
    """An index cannot be read or written: it is incomplete, from a newer version, or the disk is full."""


class DamagedFileError(SimlteError, ValueError):
    """A file that this package wrote is truncated or damaged."""


class DiskFullError(SimlteError, OSError):
    """The disk is full. Finished files are kept; nothing is half written."""


class TrainingDiverged(SimlteError, ArithmeticError):
    """A loss or a weight is not finite any more; the last good checkpoint is kept."""


class Interrupted(KeyboardInterrupt):
    """A signal stopped long work; the message says what is kept, and how to go on.

    A ``KeyboardInterrupt``, so that a script that does not catch it stops as usual.

    Attributes:
        number: The signal: ``SIGINT`` (Ctrl-C) or ``SIGTERM``.
    """

    def __init__(self, message: str, number: signal.Signals = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


class TrainingInterrupted(Interrupted):
    """A signal stopped a training run, which wrote a checkpoint; the message says how to resume."""


@contextmanager
def keeping(kept: Callable[[], str]) -> Iterator[None]:
    """Raise :class:`Interrupted` with what is kept where a signal stops the block."""
    try:
        yield
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, Interrupted) else signal.SIGINT
        raise Interrupted(f"Stopped. {kept()}", number) from error


class MissingExtraError(SimlteError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""


def number_of(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun for a message: ``1 document``, ``1,234 documents``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Suggest the known name closest to an unknown one: `` Did you mean 'title'?``."""
    by_lower = {each.lower(): each for each in names}
    nearest = get_close_matches(name.lower(), by_lower, 1)
    return f" Did you mean {by_lower[nearest[0]]!r}?" if nearest else ""
