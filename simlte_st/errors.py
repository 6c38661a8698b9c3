"""The errors this package raises on purpose.

Each says what was wrong, with which value, and what to do instead. All derive from :class:`SimlteError`, so that the
command line can print them as they are; of any other error it says that it should not happen.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class SimlteError(Exception):
    """Base of every error raised on purpose by ``simlte_st``."""


class DataError(SimlteError, ValueError):
    """The documents given cannot be used: a missing column, an unreadable source, an unknown format."""


class EmptyCorpusError(DataError):
    """The source holds too few usable documents for what was asked of it."""


class ConfigurationError(SimlteError, ValueError):
    """A setting is out of its range or contradicts another one."""


class ModelError(SimlteError, ValueError):
    """A model lacks what was asked of it (a text encoder, a tokenizer with a mask token, an MLM head, ...)."""


class ResumeError(SimlteError, RuntimeError):
    """There is nothing to resume, or what is there was made with other settings."""


class StoreError(SimlteError, OSError):
    """An index cannot be read or written: it is incomplete, from a newer version, or the disk is full."""


class DiskFullError(SimlteError, OSError):
    """The disk is full; what was there before is there still, and what was not finished is not taken for it."""


class HubError(SimlteError, RuntimeError):
    """A model cannot be uploaded to the Hugging Face Hub: no token, no answer, or it was refused."""


class TrainingDiverged(SimlteError, ArithmeticError):
    """A loss or a weight is no longer a finite number; the last good checkpoint is kept.

    Attributes:
        documents: Ids of the documents in the batch, where it was the loss.
    """

    def __init__(self, message: str, documents: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.documents = list(documents)


class TrainingInterrupted(KeyboardInterrupt):
    """A signal ended a training run before its end, and a checkpoint was written; the message says how to go on.

    It is a ``KeyboardInterrupt``, not an error: a script stops as it would have, unless it asks for this.

    Args:
        message: What happened.
        number: The signal: ``SIGINT`` (Ctrl-C) or ``SIGTERM``. Kept as an attribute.
    """

    def __init__(self, message: str, number: signal.Signals = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


class ProcessLostError(SimlteError, RuntimeError):
    """Another process of a run of several ended before the run did."""


class MissingExtraError(SimlteError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Ask for the name that is nearest to one that there is not: `` Did you mean 'title'?``."""
    by_lower = {each.lower(): each for each in names}
    nearest = get_close_matches(name.lower(), by_lower, 1)
    return f" Did you mean {by_lower[nearest[0]]!r}?" if nearest else ""
