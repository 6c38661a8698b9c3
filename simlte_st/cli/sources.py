"""Sources of documents on the command line: one or several, also by patterns."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Sequence
from typing import Any

from simlte_st.cli.terminal import wrapped
from simlte_st.data.sources import PLACES
from simlte_st.files import nearest_place

SOURCE_HELP = f"{PLACES}; or several of these, also by a pattern such as 'notes/*.txt'"
"""What a source can be, for --help."""


class Sources(argparse.Action):
    """Takes one source or several, with patterns replaced by what they match: a string, or a list of strings.

    Used with ``nargs="+"``, or ``nargs="*"`` where there is a default.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Set the sources, or end with status 1."""
        from simlte_st.errors import DataError

        try:
            sources = expand_sources([values] if isinstance(values, str) else list(values or ()))
        except DataError as error:
            parser.exit(1, wrapped(f"simlte: {error}\n"))
        if sources:
            setattr(namespace, self.dest, sources[0] if len(sources) == 1 else sources)


def expand_sources(sources: Sequence[str]) -> list[str]:
    """Return sources with patterns replaced by the sorted files and folders that they match, as a shell does."""
    from simlte_st.errors import DataError

    expanded: list[str] = []
    for source in sources:
        there = source.startswith("hub:") or "://" in source or os.path.lexists(source)
        if not there and glob.has_magic(source):
            matches = sorted(glob.glob(source, recursive=True))
            if not matches:
                raise DataError(f"No file or folder matches the pattern {source!r}.")
            expanded += matches
        elif there or len(sources) == 1:  # a single one may be the name of a data set; its reader raises the error
            expanded.append(source)
        else:
            raise DataError(f"There is no file or folder {source!r}.{nearest_place(source)}")
    return expanded
