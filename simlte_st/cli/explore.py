"""``simlte explore``: a corpus on one page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_options, config_from
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.data.config import ReadConfig
from simlte_st.exploration.config import ExploreConfig, check_output


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "explore",
        help="write a page that shows what is in documents: topics, a map, near-duplicates",
        description="Write a page that any browser opens, without a network: a map of the documents with topics, their "
        "nearest documents, and near-duplicates. A parquet file of the same name beside it has "
        "the place and the topic of each document. For a large corpus build an index first, and explore that.",
        examples=(
            "simlte explore my-model my_documents --output corpus.html",
            "simlte explore my-model articles.jsonl --label section --output corpus.html",
            "simlte explore articles.index --topics 20 --output corpus.html",
        ),
    )
    parser.add_argument("model_or_index", metavar="MODEL_OR_INDEX", help="a model, or the folder of an index")
    parser.add_argument(
        "source", metavar="SOURCE", nargs="*", action=Sources, help=f"for a model, the documents: {SOURCE_HELP}"
    )
    parser.add_argument("--output", required=True, metavar="FILE.html")
    add_options(parser, ExploreConfig)
    add_arguments(parser, "--model", "--json")
    add_options(parser, ReadConfig)
    add_arguments(parser, "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from simlte_st.data.documents import read_documents
    from simlte_st.errors import ConfigurationError
    from simlte_st.models.names import check_model
    from simlte_st.search.settings import check_encoder, is_index, read_settings

    config, reading = config_from(arguments, ExploreConfig), config_from(arguments, ReadConfig)
    reader = None
    if arguments.source:
        reader = read_documents(arguments.source, metadata=True, **reading.values())
    elif reading != ReadConfig():
        raise ConfigurationError("An index has been read already: reading options are for MODEL SOURCE.")
    check_output(arguments.output, reader, config.overwrite)
    if reader is None:
        settings = read_settings(Path(arguments.model_or_index))
        check_encoder(Path(arguments.model_or_index), settings, arguments.model)
    elif not is_index(arguments.model_or_index):
        check_model(arguments.model_or_index)
    from simlte_st.exploration import explore  # takes seconds to import

    report = explore(arguments.model_or_index, reader, config, output=arguments.output, index_model=arguments.model)
    if reader is not None:
        note(reader.report.summary(), arguments)
    print_result(arguments, report.summary(), report.to_dict())
    return 0
