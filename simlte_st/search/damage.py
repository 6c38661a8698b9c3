"""Indices that cannot be read or written: errors of LanceDB and of JSON in the words of this package."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from simlte_st.errors import StoreError
from simlte_st.files import read_json

T = TypeVar("T")

ADVICE = "If it is a copy, copy it again; otherwise index the documents again, in another folder."

_ENDS = {".lance": b"LANC", ".idx": b"LANC", ".manifest": b"LANC", ".arrow": b"ARROW1"}
_SHOWN = 3
_KINDS = re.compile(
    r"^(?:(?:lance error|LanceError\(\w+\)|Wrapped error|(?:Generic [\w/]+|Parser|Io) error|A prerequisite task failed|"
    r"Invalid (?:user )?input|Encountered internal error)[:.,] (?:Please file a bug report at \S+ )?)+"
)
_MISSING = re.compile(r"not found|no such file", re.IGNORECASE)
_OTHER = re.compile(r"os error (?!2\))")


@contextmanager
def store_errors(folder: Path, what: str) -> Iterator[None]:
    """Turn LanceDB's errors, which are of any of three classes, into ours; ``what`` is "read" or "written"."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        line, cut = first_line(error), _cut_files(folder)
        hints = ["What was written before is there."] if what == "written" else []
        hints += [f"Truncated or damaged: {', '.join(cut)}."] if cut else []
        # Of a full disk, or no right to read, nothing is damaged.
        other = _OTHER.search(str(error)) or getattr(error, "errno", None) not in (None, errno.ENOENT)
        if cut or (not other and (what == "read" or _MISSING.search(line))):
            hints.append(ADVICE)
        raise StoreError(" ".join([f"The index {folder} cannot be {what}: {line}.", *hints])) from error


def read_part(folder: Path, name: str, make: Callable[[Any], T]) -> T:
    """Return what is made of a JSON file of an index."""
    path = folder / name
    try:
        return make(read_json(path))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{path} is truncated or damaged. {ADVICE}") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}). {ADVICE}") from error


def first_line(error: Exception) -> str:
    """Return a message without the places in LanceDB's source that follow it, and the kinds of error before it."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return _KINDS.sub("", re.sub(r",? /\S+\.rs:\d+.*", "", line)).rstrip(". ")[:300]


def _cut_files(folder: Path) -> list[str]:
    """Return the files of an index that do not end as LanceDB ends them, a few at most."""
    cut = []
    for path in sorted(folder.glob("*.lance/**/*")):
        if path.suffix in _ENDS and path.is_file() and _end(path) != _ENDS[path.suffix]:
            cut.append(str(path.relative_to(folder)))
    return cut[:_SHOWN]


def _end(path: Path) -> bytes:
    """Return as many bytes from the end of a file as tell whether it is whole."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(_ENDS[path.suffix])))
        return file.read()
