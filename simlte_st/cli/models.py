"""``simlte models``: the named models on this machine."""

from __future__ import annotations

import argparse
import os
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.errors import ConfigurationError, did_you_mean


def add_parser(subparsers: Any) -> None:
    """Add the subcommand and its own ones."""
    parser = subparsers.add_parser(
        "models",
        help="list or remove the named models on this machine",
        description="Named models: those of simlte train --name, and those that come with the package. All commands "
        "and simlte_st.SentenceTransformer(NAME) take the name.",
        examples=("simlte models list", "simlte models remove papers"),
    )
    commands = parser.add_subparsers(required=True, metavar="ACTION")

    listing = commands.add_parser(
        "list",
        help="list the models by name, and interrupted trainings",
        examples=("simlte models list", "simlte models list --json"),
    )
    add_arguments(listing, "--json", "--verbose", "--debug")
    listing.set_defaults(run=run_list)

    remove = commands.add_parser(
        "remove",
        help="remove a model by name",
        description="Remove a model from your model folder, and the work folder of an interrupted training of that "
        "name, without asking.",
        examples=("simlte models remove papers", "simlte models remove papers.trained"),
    )
    remove.add_argument("name", metavar="NAME", help="a name that simlte models list shows")
    add_arguments(remove, "--json", "--verbose", "--debug")
    remove.set_defaults(run=run_remove)


def run_list(arguments: argparse.Namespace) -> int:
    """List the models by name, and unfinished trainings."""
    from simlte_st.models.names import OWN_MODELS, named_models, unfinished_runs

    models = {name: str(folder) for name, folder in named_models().items()}
    runs = {name: str(folder) for name, folder in unfinished_runs().items()}
    shipped = sorted(set(OWN_MODELS) - models.keys())
    lines = [f"{name}\t{folder}" for name, folder in models.items()]
    lines += [f"{name}\tnot finished: the same simlte train command with --resume goes on" for name in runs]
    lines += [f"{name}\tcomes with the package; made on first use" for name in shipped]
    print_result(arguments, "\n".join(lines), {"models": models, "unfinished": runs, "shipped": shipped})
    return 0


def run_remove(arguments: argparse.Namespace) -> int:
    """Remove a model and the work folder of an interrupted training of its name."""
    from simlte_st.files import discard, hold
    from simlte_st.models.names import OWN_MODELS, model_path, models_folder, named_models, unfinished_runs

    name, folder = arguments.name, model_path(arguments.name)
    run, known = unfinished_runs().get(name), named_models()
    removed = [run] if run is not None else []
    if name in known or (name in OWN_MODELS and os.path.isdir(folder)):  # also a damaged one
        removed.append(folder)
    if not removed:
        raise ConfigurationError(
            f"{models_folder()} has no model and no interrupted training {name!r}.{did_you_mean(name, known)} To list "
            "them: simlte models list"
        )
    if run is not None:  # raises if it is running
        hold(run).release()
    for path in removed:
        discard(path, folder)
    lines = [f"Removed {'the interrupted training' if path == run else 'the model'}: {path}" for path in removed]
    print_result(arguments, "\n".join(lines), {"removed": list(map(str, removed))})
    return 0
