"""``simlte encode``: documents to vectors."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_options, config_from
from simlte_st.data.config import ReadConfig
from simlte_st.models.config import EncodeConfig


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "encode",
        help="turn documents into a parquet file of vectors",
        description="Encode documents into a parquet file with the columns id and vector (float32). The documents may "
        "take more than the memory. An interrupted run continues with --resume, on the same devices and machines or "
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
    add_options(parser, EncodeConfig)
    add_options(parser, ReadConfig)
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Encode."""
    from simlte_st.data.documents import read_documents
    from simlte_st.models.names import check_model
    from simlte_st.models.parts import check_vectors

    config, reading = config_from(arguments, EncodeConfig), config_from(arguments, ReadConfig)
    reader = read_documents(arguments.source, **reading.values())
    check_vectors(reader, Path(arguments.output), config)
    check_model(arguments.model)
    from simlte_st.models.device import check_devices
    from simlte_st.models.encode import encode_documents
    from simlte_st.models.loading import load_model  # take seconds to import

    check_devices(config)
    model = load_model(arguments.model, device=config.loading_device).model
    settings = {"model": arguments.model, "source": arguments.source, **reading.values()}
    report = encode_documents(model, reader, arguments.output, config, settings=settings)
    note(reader.report.summary(), arguments)
    print_result(arguments, report.summary(), {"output": arguments.output, **report.to_dict()})
    return 0
