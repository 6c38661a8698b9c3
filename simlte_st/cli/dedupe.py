"""``simlte dedupe``: documents without duplicates."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_options, config_from
from simlte_st.data.config import DedupeConfig, ReadConfig

_ALTERNATIVES = {"near", "similarity"}


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "dedupe",
        help="write documents without exact and near duplicates",
        description="Write documents without exact and near duplicates: the first document of each group is kept. A "
        "file beside OUTPUT lists the others, with the document that each duplicates.",
        examples=(
            "simlte dedupe articles.jsonl --output kept.jsonl",
            "simlte dedupe articles.jsonl --output kept.jsonl --similarity 0.9",
            "simlte dedupe my_documents --output kept.jsonl --exact",
        ),
    )
    add_arguments(parser, "source")
    parser.add_argument("--output", required=True, metavar="FILE.jsonl")
    add_options(parser.add_mutually_exclusive_group(), DedupeConfig, {*DedupeConfig.accepted()} - _ALTERNATIVES)
    add_options(parser, DedupeConfig, without=_ALTERNATIVES)
    add_options(parser, ReadConfig)
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the documents without duplicates."""
    from simlte_st.data.documents import read_documents
    from simlte_st.data.duplicates import dedupe

    reader = read_documents(arguments.source, metadata=True, **config_from(arguments, ReadConfig).values())
    report = dedupe(reader, arguments.output, **config_from(arguments, DedupeConfig).values())
    note(report.read.summary(), arguments)
    print_result(arguments, report.summary(), report.to_dict())
    return 0
