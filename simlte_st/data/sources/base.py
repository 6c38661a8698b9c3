"""A source that was opened."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from simlte_st.data.rows import Event


@dataclass(frozen=True, slots=True)
class Source:
    """A source that was opened.

    Attributes:
        name: Its name, for messages.
        events: Reads it from its beginning.
        size: Gives the number of its rows, items or files where that costs nothing to know, else None.
        once: Whether it can be read only once.
        joint: What joins its name, where it is one of several, to the ids made for its documents; None for a file that
            is one document, which is called by its name.
        places: The files and folders that it reads.
    """

    name: str
    events: Callable[[], Iterator[Event]]
    size: Callable[[], int | None] = lambda: None
    once: bool = False
    joint: str | None = ":"
    places: tuple[Path, ...] = ()


def is_instance(source: object, module: str, *names: str) -> bool:
    """Whether a source is of a library's class; who holds one has imported the library, so it is not imported here."""
    library = sys.modules.get(module)
    return isinstance(source, tuple(getattr(library, name) for name in names if hasattr(library, name)))
