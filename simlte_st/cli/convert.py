"""``simlte convert``: a short encoder to a Longformer."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_common_arguments
from simlte_st.cli.usage import three_lines


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "convert",
        help="turn a BERT- or RoBERTa-like encoder into a Longformer",
        description="Turn an encoder with absolute positions (BERT, MiniLM, RoBERTa, XLM-R, ELECTRA) into a Longformer "
        "with the same weights, or a stock Longformer into this package's, which computes the same and is faster. "
        "What was not learned is not there yet: positions are copies, so train it (simlte train --base DIR).",
        allow_abbrev=False,
    )
    parser.add_argument("base", metavar="BASE", help="folder or name of the encoder")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the Longformer")
    parser.add_argument(
        "--max-length", type=int, metavar="N", help="tokens it reads (default: 4096; a stock Longformer's own)"
    )
    parser.add_argument(
        "--attention-window", type=int, default=512, metavar="N",
        help="tokens that a token sees on both sides together (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--positions", choices=("tile", "interpolate"), default="tile",
        help="positions beyond the base's: repeated as in the paper, or stretched (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--global-tokens", choices=("cls", "none"), default="cls",
        help="tokens that see, and are seen by, the whole document (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--pooling", choices=("cls", "mean", "keep"), default="keep", help="default: keep the base's")
    parser.add_argument("--overwrite", action="store_true", help="replace what is at the output")
    add_common_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert."""
    from simlte_st.base_models import load_base
    from simlte_st.conversion import convert_base

    names = ("max_length", "attention_window", "positions", "global_tokens", "pooling", "overwrite")
    base = convert_base(arguments.base, arguments.output, **{name: getattr(arguments, name) for name in names})
    reads = load_base(arguments.output).model.max_seq_length
    print(f"{arguments.base} reads {base.model.max_seq_length:,} tokens; {arguments.output} reads {reads:,}.")
    print(f"Use it:\n\n{three_lines(arguments.output)}")
    return 0
