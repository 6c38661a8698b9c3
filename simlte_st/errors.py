"""Errors that this package raises on purpose.

Each message names the problem, the value that caused it and the remedy. The command line prints the message of a
:class:`SimlteError` and reports any other error as a bug.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class SimlteError(Exception):
    """Base class of all errors that ``simlte_st`` raises on purpose."""


class DataError(SimlteError, ValueError):
    """The documents cannot be read: a column is missing, a source is unreadable or a format is unknown."""


class EmptyCorpusError(DataError):
    """The source has too few usable documents."""


class ConfigurationError(SimlteError, ValueError):
    """A setting is invalid or contradicts another setting."""


class ModelError(SimlteError, ValueError):
    """A model cannot be loaded, or lacks a required part such as a text encoder, a mask token or an MLM head."""


class ResumeError(SimlteError, RuntimeError):
    """There is no interrupted run to resume, or its settings differ from the current ones."""


class StoreError(SimlteError, OSError):
    """An index cannot be read or written, for example because it is incomplete, damaged or from another version."""


class DamagedFileError(SimlteError, ValueError):
    """A file written by this package is truncated or damaged."""


class DiskFullError(SimlteError, OSError):
    """The disk is full. Finished files and earlier writes to an index are kept; no partial file is left behind."""


class TrainingDiverged(SimlteError, ArithmeticError):
    """A loss, a weight or an embedding is no longer finite. The last good checkpoint is kept."""


class Interrupted(KeyboardInterrupt):
    """A signal interrupted a long operation. The message says what was kept and how to continue.

    This is a ``KeyboardInterrupt``, so it stops a script that does not catch it, as Ctrl-C does.

    Attributes:
        number: The signal: ``SIGINT`` (Ctrl-C) or ``SIGTERM``.
    """

    def __init__(self, message: str, number: signal.Signals = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


class TrainingInterrupted(Interrupted):
    """A signal stopped a training run after it saved a checkpoint. The message says how to resume."""


@contextmanager
def keeping(describe: Callable[[], str]) -> Iterator[None]:
    """Turn a signal inside the block into :class:`Interrupted`; ``describe`` says what was kept and how to continue."""
    try:
        yield
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, Interrupted) else signal.SIGINT
        raise Interrupted(f"Stopped. {describe()}", number) from error


class MissingExtraError(SimlteError, ImportError):
    """An optional package is not installed. The message gives the command that installs it."""


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun, such as ``1 document`` or ``1,234 documents``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def list_names(names: Iterable[object], limit: int = 30) -> str:
    """List the first names in a string, followed by the number of remaining names."""
    shown = [str(name) for name in names]
    return ", ".join(shown[:limit]) + (f" and {len(shown) - limit:,} more" if len(shown) > limit else "") or "none"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Suggest the closest known name, such as `` Did you mean 'title'?``; empty if none is close."""
    by_lower = {known_name.lower(): known_name for known_name in names}
    nearest = get_close_matches(name.lower(), by_lower, 1)
    return f" Did you mean {by_lower[nearest[0]]!r}?" if nearest else ""
