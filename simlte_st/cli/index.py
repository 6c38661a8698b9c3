"""``simlte index``: documents into an index on disk."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_options, config_from
from simlte_st.config import ProgressConfig
from simlte_st.data.config import ReadConfig
from simlte_st.errors import SimlteError
from simlte_st.search.config import AddConfig


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "index",
        help="put documents into an index on disk, to be searched",
        description="Encode documents into an index for simlte search, link, serve and explore, or add them to one: "
        "what is there already is not encoded again, and changed documents replace those with their id. After an "
        "interruption the same command goes on. All other columns of the source are kept, for --where.",
        examples=(
            "simlte index my-model articles.jsonl --output articles.index --parts",
            "simlte index my-model articles.jsonl --output articles.index --sync",
            "simlte index my-model articles.jsonl --output a.index --device cuda:0,cuda:1",
            'simlte search articles.index "floods in the north" --top-k 5',
        ),
    )
    add_arguments(parser, "model", "source")
    parser.add_argument("--output", required=True, metavar="INDEX", help="folder of the index")
    parser.add_argument(
        "--parts",
        action="store_true",
        default=None,
        help="find long documents by their passages, whatever the model reads at once (later additions: as before)",
    )
    add_options(parser, AddConfig)
    add_options(parser, ReadConfig)
    add_options(parser, ProgressConfig)
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Index."""
    from pathlib import Path

    from simlte_st.data.documents import read_documents
    from simlte_st.files import SETTINGS_FILE, check_apart
    from simlte_st.models.names import check_model

    config = config_from(arguments, AddConfig)
    reader = read_documents(arguments.source, metadata=True, **config_from(arguments, ReadConfig).values())
    check_apart(arguments.source, Path(arguments.output))
    check_model(arguments.model)
    from simlte_st.search import Index  # with pyarrow and scipy
    from simlte_st.search.settings import check_new_index, remove_empty

    is_new = not (Path(arguments.output) / SETTINGS_FILE).exists()  # then no other process may make it meanwhile
    if is_new:
        check_new_index(Path(arguments.output))
    from simlte_st.models.device import check_devices  # with torch

    check_devices(config)
    index = Index.create(
        arguments.output, arguments.model, parts=arguments.parts, exist_ok=not is_new, device=config.loading_device
    )
    try:
        report = index.add(reader, config)
    except SimlteError:
        if is_new:  # nothing that another try could use
            remove_empty(index.folder)
        raise
    note(reader.report.summary(), arguments)
    print_result(arguments, report.summary(), {"index": arguments.output, **report.to_dict()})
    return 0
