"""``simlte explore``: a pile of documents on one page."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result, reading_options
from simlte_st.cli.dedupe import add_similarity_argument
from simlte_st.cli.messages import note
from simlte_st.cli.numbers import whole_number
from simlte_st.cli.sources import SOURCE_HELP, Sources


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "explore",
        help="write a page that shows what is in documents: topics, a map, near copies",
        description="Write a page that any browser opens, without a network: a map of the documents with topics, their "
        "nearest documents, near copies, outliers, and the corpus in numbers. Beside it, a parquet file of the same "
        "name holds place and topic of each document. Of a large pile make an index first, and explore that.",
        examples=(
            "simlte explore my-model my_documents --output pile.html",
            "simlte explore my-model articles.jsonl --label section --output pile.html",
            "simlte explore articles.index --topics 20 --output pile.html",
        ),
    )
    parser.add_argument("model_or_index", metavar="MODEL_OR_INDEX", help="a model, or the folder of an index")
    parser.add_argument(
        "source", metavar="SOURCE", nargs="*", action=Sources, help=f"for a model, the documents: {SOURCE_HELP}"
    )
    parser.add_argument("--output", required=True, metavar="FILE.html")
    parser.add_argument("--label", metavar="COLUMN", help="compare topics with it: classes, numbers or dates")
    parser.add_argument(
        "--title", metavar="COLUMN", help="column of titles (default: the usual names, else first lines)"
    )
    parser.add_argument(
        "--topics", type=whole_number, metavar="N", help="number of topics (default: what halves of documents agree on)"
    )
    add_similarity_argument(parser)
    add_arguments(parser, "--model", "--batch-size", "--overwrite", "--device", "--json", "reading")
    add_arguments(parser, "--seed", "--quiet", "common")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from simlte_st.data.documents import read_documents
    from simlte_st.errors import ConfigurationError
    from simlte_st.exploration import explore
    from simlte_st.exploration.explore import check_output

    options = reading_options(arguments)
    reader = None
    if arguments.source:
        check_output(arguments.output, arguments.source, arguments.overwrite)
        reader = read_documents(arguments.source, metadata=True, **options)
    elif options != {"text_column": None, "id_column": None, "encoding": "utf-8", "limit": None}:
        raise ConfigurationError("An index has been read already: reading options are for MODEL SOURCE.")
    report = explore(
        arguments.model_or_index,
        reader,
        output=arguments.output,
        label=arguments.label,
        title=arguments.title,
        topics=arguments.topics,
        similarity=arguments.similarity,
        index_model=arguments.model,
        device=arguments.device,
        batch_size=arguments.batch_size,
        overwrite=arguments.overwrite,
        seed=arguments.seed,
        progress=not arguments.quiet,
    )
    if reader is not None:
        note(reader.report.summary(), arguments)
    print_result(arguments, report.summary(), report.to_dict())
    return 0
