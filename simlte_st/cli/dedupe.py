"""``simlte dedupe``: documents without copies of each other."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result, reading_options
from simlte_st.cli.messages import note
from simlte_st.cli.numbers import finite_number


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "dedupe",
        help="write documents without their copies, exact and near",
        description="Write documents without their copies, exact and near: the first of each group is kept. A list "
        "beside OUTPUT says which were left out, and of what each was a copy.",
        examples=(
            "simlte dedupe articles.jsonl --output kept.jsonl",
            "simlte dedupe articles.jsonl --output kept.jsonl --similarity 0.9",
            "simlte dedupe my_documents --output kept.jsonl --exact",
        ),
    )
    add_arguments(parser, "source")
    parser.add_argument("--output", required=True, metavar="FILE.jsonl")
    how = parser.add_mutually_exclusive_group()
    add_similarity_argument(how)
    how.add_argument("--exact", dest="near", action="store_false", help="leave out only documents with the same words")
    add_arguments(parser, "--overwrite", "--json", "reading", "--seed", "--quiet", "common")
    parser.set_defaults(run=run)


def add_similarity_argument(parser: argparse._ActionsContainer) -> None:
    """Add what says from which similarity on documents are near copies."""
    parser.add_argument(
        "--similarity",
        type=finite_number,
        default=0.75,
        metavar="X",
        help="documents that share this much of their runs of five words are near copies (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the documents without copies."""
    from simlte_st.data.documents import read_documents
    from simlte_st.data.duplicates import dedupe

    reader = read_documents(arguments.source, metadata=True, **reading_options(arguments))
    report = dedupe(
        reader,
        arguments.output,
        near=arguments.near,
        similarity=arguments.similarity,
        overwrite=arguments.overwrite,
        seed=arguments.seed,
        progress=not arguments.quiet,
    )
    note(reader.report.summary(), arguments)
    print_result(arguments, report.summary(), report.to_dict())
    return 0
