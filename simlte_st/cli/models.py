"""``simlte models``: models that have a name on this machine."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import SOURCE_HELP, Sources, add_common_arguments, add_source_arguments, reading_options
from simlte_st.cli.train import report


def add_parser(subparsers: Any) -> None:
    """Add the subcommand and its own ones."""
    parser = subparsers.add_parser(
        "models",
        help="list or make the models that have a name on this machine",
        description="Models with a name: made here, or by simlte train --name. They are used by that name, as in "
        "SentenceTransformer(NAME) of simlte_st or simlte encode NAME.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True, metavar="ACTION")

    build = commands.add_parser(
        "build",
        help="make simlte-longformer or simlte-bert",
        description="Make a model of this package: the packaged MiniLM (for simlte-longformer converted to 4,096 "
        "tokens), trained with the papers' preset on your documents, or on the packaged BBC News.",
        allow_abbrev=False,
    )
    build.add_argument("name", metavar="NAME", help="simlte-longformer or simlte-bert")
    build.add_argument(
        "source", metavar="SOURCE", nargs="*", action=Sources, help=f"{SOURCE_HELP} (default: the packaged BBC News)"
    )
    build.add_argument("--max-steps", type=int, metavar="N", help="stop after N steps (default: one pass)")
    build.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    build.add_argument("--overwrite", action="store_true", help="replace the model of that name")
    add_source_arguments(build)
    add_common_arguments(build)
    build.set_defaults(run=run_build)

    listing = commands.add_parser("list", help="list the models by name", allow_abbrev=False)
    add_common_arguments(listing)
    listing.set_defaults(run=run_list)


def run_build(arguments: argparse.Namespace) -> int:
    """Make a model of this package."""
    from simlte_st.training.train import build_model

    options = reading_options(arguments)
    if arguments.source is None and options["encoding"] == "utf-8":
        options.pop("encoding")
    result = build_model(
        arguments.name,
        arguments.source,
        max_steps=arguments.max_steps,
        seed=arguments.seed,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        progress=not arguments.quiet,
        **options,
    )
    return report(result)


def run_list(arguments: argparse.Namespace) -> int:
    """List the models by name."""
    from simlte_st.models.names import OWN_MODELS, named_models

    found = named_models()
    for name, folder in found.items():
        print(f"{name}\t{folder}")
    for name in sorted(OWN_MODELS.keys() - found.keys()):
        print(f"{name}\tnot made yet: simlte models build {name}")
    return 0
