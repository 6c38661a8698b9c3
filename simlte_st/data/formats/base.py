"""The two kinds of file formats: files that hold one document each, and tables."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from simlte_st.data.config import SourceConfig
from simlte_st.data.tables import UNREADABLE, Row, Skip, Table
from simlte_st.data.text_files import BadTextError, BrokenSourceError
from simlte_st.errors import MissingExtraError
from simlte_st.extras import check_installed, install_command

NO_FILE = "pipe, socket or device"
DAMAGED = "damaged"
ENCRYPTED = "encrypted"
EXTRA = "documents"
MISSING_EXTRA = f"not readable without the extra {EXTRA}: {install_command(EXTRA)}"

_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file; the parts that are not in it, the kind of each and what it is; and what its headers say."""

    text: str
    left_out: tuple[tuple[str, str], ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TextFormat:
    """A format whose files hold one document each.

    ``read`` returns a file's text. It raises ``BadTextError`` with the reason if there is none, ``OSError``, or
    whatever a library raises for a damaged file.
    """

    suffixes: tuple[str, ...]  # in lower case
    read: Callable[[Path, SourceConfig], FileText]
    libraries: tuple[str, ...] = ()  # modules that the extra ``documents`` installs
    packable: ClassVar[bool] = False

    def check_library(self) -> None:
        """Raise :class:`MissingExtraError` if a library is not installed."""
        for library in self.libraries:
            check_installed(library, EXTRA, f"reading {self.suffixes[0]} files")

    def row(self, path: Path, name: str, config: SourceConfig) -> Row | Skip:
        """Read a file as a row, or return why it gives none."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device may never end
                return Skip(name, NO_FILE, id=name)
            self.check_library()
            read = self.read(path, config)
        except Exception as error:  # the libraries raise anything for damaged files
            return skip_of(error, name, name)
        label = read.columns.get(config.label_column or "")
        metadata = dict(read.columns) if config.metadata else None
        return Row(name, name, read.text, label=label, metadata=metadata, left_out=read.left_out)


def skip_of(error: Exception, where: str, id: str | None = None) -> Skip:
    """Return the skip of a file, or of a part of one, that could not be read."""
    if isinstance(error, BrokenSourceError) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    if isinstance(error, BadTextError):
        return replace(Skip(where, *error.args), id=id)
    if isinstance(error, MissingExtraError):
        return Skip(where, MISSING_EXTRA, id=id)
    if isinstance(error, OSError):
        return Skip(where, UNREADABLE, error.strerror or str(error), id=id)
    return Skip(where, DAMAGED, f"{type(error).__name__}: {error}", id=id)


@dataclass(frozen=True)
class TableFormat:
    """A format whose files hold a document per row; ``open`` raises ``DataError`` for a file without columns."""

    suffixes: tuple[str, ...]  # in lower case
    open: Callable[[Path, SourceConfig], Table]
    packable: bool = True  # whether ``.gz`` or ``.zst`` may follow the suffix
    count_rows: Callable[[Path], int | None] = lambda path: None  # if counting costs nothing


Format = TextFormat | TableFormat


def tidy_lines(parts: Iterable[str]) -> str:
    """Join the parts of a text, without soft hyphens, white space around lines and runs of blank lines."""
    lines = (line.strip() for line in "".join(parts).replace("\xad", "").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()
