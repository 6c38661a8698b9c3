"""``simlte convert``: a short encoder to one that reads long documents."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_common_arguments
from simlte_st.cli.usage import three_lines


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "convert",
        help="let a short encoder read long documents: as a Longformer, or chunk by chunk",
        description="Turn an encoder with absolute positions (BERT, MiniLM, RoBERTa, XLM-R, ELECTRA) into a Longformer "
        "with the same weights, or a stock Longformer into this package's, which computes the same and is faster. "
        "What was not learned is not there yet: positions are copies, so train it (simlte train --base DIR). "
        "With --chunk-mean any encoder stays what it is and reads a document in chunks, whose embeddings are averaged.",
        allow_abbrev=False,
    )
    parser.add_argument("base", metavar="BASE", help="folder or name of the encoder")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the new model")
    parser.add_argument(
        "--max-length", type=int, metavar="N", help="tokens it reads (default: 4096; a stock Longformer's own)"
    )
    group = parser.add_argument_group("Longformer")
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
    group = parser.add_argument_group("chunks")
    group.add_argument("--chunk-mean", action="store_true", help="average the embeddings of chunks instead")
    group.add_argument("--chunk-length", type=int, metavar="N", help="tokens of a chunk (default: what the base reads)")
    group.add_argument("--overlap", type=int, metavar="N", help="tokens that neighbours share (default: 0)")
    group.add_argument(
        "--chunk-weights", choices=("tokens", "equal"), help="what a chunk counts in the mean (default: its tokens)"
    )
    parser.add_argument("--pooling", choices=("cls", "mean", "keep"), default="keep", help="default: keep the base's")
    parser.add_argument("--overwrite", action="store_true", help="replace what is at the output")
    add_common_arguments(parser)
    parser.set_defaults(run=run)


LONGFORMER = ("attention_window", "positions", "global_tokens")
CHUNKS = ("chunk_length", "overlap", "chunk_weights")


def run(arguments: argparse.Namespace) -> int:
    """Convert."""
    from simlte_st.models.base import load_base
    from simlte_st.models.conversion import convert_base, convert_base_to_chunks

    wanted, others = (CHUNKS, LONGFORMER) if arguments.chunk_mean else (LONGFORMER, CHUNKS)
    _refuse(arguments, others)
    names = ("max_length", "pooling", *wanted)
    options = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    convert = convert_base_to_chunks if arguments.chunk_mean else convert_base
    base = convert(arguments.base, arguments.output, overwrite=arguments.overwrite, **options)
    reads = load_base(arguments.output).model.max_seq_length
    print(f"{arguments.base} reads {base.model.max_seq_length:,} tokens; {arguments.output} reads {reads:,}.")
    print(f"Use it:\n\n{three_lines(arguments.output)}")
    return 0


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...]) -> None:
    from simlte_st.errors import ConfigurationError

    for name in names:
        if getattr(arguments, name) is not None:
            kind = "a Longformer" if arguments.chunk_mean else "--chunk-mean"
            raise ConfigurationError(f"--{name.replace('_', '-')} is for {kind}: leave it out.")
