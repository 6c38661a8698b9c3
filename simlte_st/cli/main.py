"""Entry point of the ``simlte`` command, which handles Ctrl-C even while it imports the rest."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    try:
        for descriptor in range(3):  # a file opened in the place of a closed stream would receive its output
            try:
                os.fstat(descriptor)
            except OSError:
                os.open(os.devnull, os.O_RDWR)
        from simlte_st.cli.command_line import run

        return run(argv)
    except KeyboardInterrupt:
        print("simlte: stopped.", file=sys.stderr)
        return 130  # as in shells
