"""``simlte encode``: documents to vectors."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, engine_options, loading_device, print_result, reading_options
from simlte_st.cli.messages import note
from simlte_st.cli.numbers import count


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "encode",
        help="turn documents into a parquet file of vectors",
        description="Encode documents into a parquet file with the columns id and vector (float32). The documents may "
        "be more than fit the memory. An interrupted run goes on with --resume, on the same devices and machines or "
        "others.",
        examples=(
            "simlte encode my-model my_documents --output vectors.parquet",
            "simlte encode my-model my_documents --output vectors.parquet --resume",
            "simlte encode my-model my_documents --output v.parquet --device cuda:0,cuda:1",
            "simlte encode my-model /nfs/docs --output /nfs/v.parquet --engine ray",
        ),
    )
    add_arguments(parser, "model", "source")
    parser.add_argument("--output", required=True, metavar="FILE.parquet")
    add_arguments(parser, "--batch-size")
    parser.add_argument("--normalize", action="store_true", help="scale vectors to length 1")
    parser.add_argument(
        "--part-size",
        type=count,
        default=1024,
        metavar="N",
        help="documents in a part, which is what an interruption can lose (default: %(default)s)",
    )
    add_arguments(parser, "--resume", "--overwrite", "--json", "engine", "reading", "--quiet", "common")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Encode."""
    from simlte_st.data.documents import read_documents
    from simlte_st.models.base import load_model
    from simlte_st.models.encode import encode_documents
    from simlte_st.models.workers import Workers

    Workers(**engine_options(arguments))  # says what is wrong with them before work begins
    reader = read_documents(arguments.source, **reading_options(arguments))
    model = load_model(arguments.model, device=loading_device(arguments)).model
    report = encode_documents(
        model,
        reader,
        arguments.output,
        batch_size=arguments.batch_size,
        part_size=arguments.part_size,
        normalize=arguments.normalize,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        settings={"model": arguments.model, "source": arguments.source, **reading_options(arguments)},
        progress=not arguments.quiet,
        **engine_options(arguments),
    )
    note(reader.report.summary(), arguments)
    print_result(arguments, report.summary(), {"output": arguments.output, **report.to_dict()})
    return 0
