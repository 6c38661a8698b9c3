"""Sources of documents on the command line: one or several."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from simlte_st.cli.terminal import wrapped
from simlte_st.data.sources import PLACES

SOURCE_HELP = f"{PLACES}; or several of these"
"""What a source can be, for --help."""


class Sources(argparse.Action):
    """Takes one source or several: a string, or a list of strings.

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
        sources = [values] if isinstance(values, str) else list(values or ())
        for source in sources if len(sources) > 1 else ():  # the reader could take a name for a text
            if not (source.startswith("hub:") or "://" in source or os.path.lexists(source)):
                parser.exit(1, wrapped(f"simlte: There is no file or folder {source!r}.\n"))
        if sources:
            setattr(namespace, self.dest, sources[0] if len(sources) == 1 else sources)
