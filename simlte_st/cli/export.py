"""``simlte export``: a model in a format that runs without torch."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.options import add_options, config_from
from simlte_st.files import EXPORT_FILE, check_free, read_json
from simlte_st.models.config import ExportConfig
from simlte_st.models.names import encode_call


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "export",
        help="write a model as ONNX, for machines without torch",
        description="Write a stock encoder, such as BERT or MiniLM, as an ONNX graph with its tokenizer, settings, and "
        "a card that shows how to use it without torch and without this package. The export is kept only if its "
        "vectors agree with the model's. Longformers and models that read in chunks are not exported.",
        examples=(
            "simlte export simlte-bert --output bert-onnx",
            "simlte export my-model --int8 --output small",
        ),
    )
    add_arguments(parser, "model")
    parser.add_argument("--format", choices=("onnx",), default="onnx", help="default: %(default)s")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the exported model")
    add_options(parser, ExportConfig)
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Export."""
    from pathlib import Path

    from simlte_st.models.names import check_model

    config = config_from(arguments, ExportConfig)
    check_free(Path(arguments.output), config.overwrite, EXPORT_FILE)
    check_model(arguments.model)
    from simlte_st.models.export import export_onnx  # takes seconds to import

    made = export_onnx(arguments.model, arguments.output, config)
    call = encode_call(read_json(made.output / EXPORT_FILE))
    close = f"differ from the model's by at most {made.error:.1e} of their length"
    if made.int8_cosine is not None:
        close = f"have a cosine of at least {made.int8_cosine:.3f} with the model's"
    print_result(
        arguments,
        f"{arguments.model} was exported to {made.output}: {made.bytes / 2**20:,.0f} MiB. On made-up texts its vectors "
        f"{close}.\nUse it:\n\n    import simlte_st\n"
        f'    vectors = simlte_st.load_onnx("{made.output}").{call}\n\n'
        f"{made.output}/README.md shows how to use it without torch.",
        {"model": arguments.model, **asdict(made), "output": str(made.output)},
    )
    return 0
