"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from typing import Any


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what tells how to read documents."""
    group = parser.add_argument_group("reading")
    group.add_argument("--text-column", metavar="NAME", help="column of the text (found where not given)")
    group.add_argument("--id-column", metavar="NAME", help="column of the ids (found or made where not given)")
    group.add_argument("--encoding", default="utf-8", help="encoding of text files (default: %(default)s)")
    group.add_argument("--limit", type=int, metavar="N", help="use no more than N documents")


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what every command has."""
    parser.add_argument("--seed", type=int, default=0, help="decides everything that is drawn (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="show no progress bars")
    parser.add_argument("--verbose", action="store_true", help="show the libraries' messages too")


def reading_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Give the reading options by the names that :func:`~simlte_st.data.read_documents` has for them."""
    return {name: getattr(arguments, name) for name in ("text_column", "id_column", "encoding", "limit")}


SOURCE_HELP = (
    "folder of .txt/.md files; .jsonl, .csv, .tsv (also .gz, .zst) or .parquet file; or hub:NAME[:CONFIG][:SPLIT]"
)
"""What a source can be, for --help."""
