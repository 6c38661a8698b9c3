"""``simlte link``: documents of an index that belong to others."""

from __future__ import annotations

import argparse
import json
from typing import Any

from simlte_st.cli.arguments import add_arguments
from simlte_st.cli.messages import in_options, note
from simlte_st.cli.numbers import finite_number
from simlte_st.cli.search import add_search_arguments, check_columns, check_format, search_options, show
from simlte_st.cli.terminal import wrapped
from simlte_st.errors import ConfigurationError


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "link",
        help="find documents of an index by other documents, above a threshold that labels decide",
        description="Find the documents that belong to others. Several seeds are one question. With --calibrate: "
        "choose the threshold by labelled pairs and keep it in the index, for every later simlte link.",
        examples=(
            "simlte link articles.index article-17 notes.txt --top 20 --why",
            "simlte link articles.index --calibrate labels.jsonl --precision 0.95",
            "simlte link articles.index article-17 --format jsonl",
        ),
    )
    add_arguments(parser, "index")
    parser.add_argument("seeds", metavar="SEED", nargs="*", help="an id of the index, a file, or a text")
    parser.add_argument(
        "--calibrate", metavar="FILE.jsonl", help='labelled pairs: {"seed": ID OR TEXT, "id": ID, "label": 0 OR 1}'
    )
    parser.add_argument(
        "--precision", type=finite_number, default=0.9, metavar="X", help="wanted of --calibrate (default: .9)"
    )
    add_search_arguments(parser, "default: all above the calibrated threshold, else 10")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Link, or calibrate."""
    from simlte_st.index import Index

    if bool(arguments.seeds) == bool(arguments.calibrate):
        raise ConfigurationError("Give either seeds to find documents for, or --calibrate FILE.jsonl.")
    check_format(arguments)
    index = Index.open(arguments.index, arguments.model)
    if arguments.calibrate:
        calibration = index.calibrate(arguments.calibrate, arguments.precision)
        text = wrapped(in_options(calibration.summary(), arguments.flags))
        print(json.dumps(calibration.to_dict()) if arguments.format == "jsonl" else text)
        return 0
    check_columns(index.columns, arguments)
    hits = index.link(arguments.seeds, **search_options(arguments))
    if hits.threshold is not None and arguments.threshold is None and index.calibration is not None:
        note(f"calibrated {index.calibration.summary()}", arguments)
    return show(hits, arguments, index)
