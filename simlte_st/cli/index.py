"""``simlte index``: documents into an index on disk."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, engine_options, loading_device, print_result, reading_options
from simlte_st.cli.messages import note


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
            'simlte search articles.index "floods in the north" --top 5',
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
    parser.add_argument("--sync", action="store_true", help="remove documents that are no longer in the source")
    add_arguments(parser, "--batch-size", "--json", "engine", "reading", "--quiet", "common")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Index."""
    from pathlib import Path

    from simlte_st.data.documents import read_documents
    from simlte_st.files import check_apart
    from simlte_st.index import Index
    from simlte_st.models.config import EngineConfig
    from simlte_st.models.device import check_devices

    check_devices(EngineConfig(**engine_options(arguments)))
    reader = read_documents(arguments.source, metadata=True, **reading_options(arguments))
    check_apart(arguments.source, Path(arguments.output))
    index = Index.create(
        arguments.output, arguments.model, parts=arguments.parts, exist_ok=True, device=loading_device(arguments)
    )
    report = index.add(
        reader,
        batch_size=arguments.batch_size,
        sync=arguments.sync,
        progress=not arguments.quiet,
        **engine_options(arguments),
    )
    note(reader.report.summary(), arguments)
    print_result(arguments, report.summary(), {"index": arguments.output, **report.to_dict()})
    return 0
