"""``simlte export``: a model in a format that is read without torch."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "export",
        help="write a model as ONNX, for machines without torch",
        description="Write a model as ONNX graphs with its tokenizer, its settings, and a card that says how they are "
        "used without torch and without this package. Batches and texts may be of any size. The export is kept only if "
        "its vectors agree with the model's.",
        examples=(
            "simlte export simlte-longformer --output longformer-onnx",
            "simlte export my-model --int8 --output small",
        ),
    )
    add_arguments(parser, "model")
    parser.add_argument("--format", choices=("onnx",), default="onnx", help="default: %(default)s")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the exported model")
    parser.add_argument("--int8", action="store_true", help="quantise the encoder to 8 bits: a quarter of the size")
    add_arguments(parser, "--overwrite", "--json", "common")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Export."""
    from simlte_st.models.export import export_onnx

    made = export_onnx(arguments.model, arguments.output, int8=arguments.int8, overwrite=arguments.overwrite)
    close = f"the model's up to {made.error:.1e} of their length"
    if made.int8_cosine is not None:
        close = f"near the model's: their cosine was {made.int8_cosine:.3f} at least"
    print_result(
        arguments,
        f"{arguments.model} was exported to {made.output}: {made.bytes / 2**20:,.0f} MiB. On made-up texts its vectors "
        f"are {close}.\nUse it:\n\n    import simlte_st\n"
        f'    vectors = simlte_st.load_onnx("{made.output}").encode(["A long document ...", "Another one ..."])\n\n'
        f"{made.output}/README.md shows how it is used without torch.",
        {
            "model": arguments.model,
            "output": str(made.output),
            "dimension": made.dimension,
            "bytes": made.bytes,
            "error": made.error,
            "int8_cosine": made.int8_cosine,
        },
    )
    return 0
