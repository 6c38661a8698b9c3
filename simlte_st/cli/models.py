"""``simlte models``: the named models on this machine."""

from __future__ import annotations

import argparse
import os
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
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
    from simlte_st.files import is_abandoned
    from simlte_st.models.names import OWN_MODELS, named_models, unfinished_runs

    models, runs = named_models(), unfinished_runs()
    lines = [f"{name}\t{folder}" for name, folder in models.items()]
    unfinished: dict[str, Any] = {}
    for name, folder in runs.items():
        command = f"the same simlte train command with --name {name} --resume" if is_abandoned(folder) else None
        unfinished[name] = {"folder": str(folder), "resume": command}
        lines.append(f"{name}\t{f'interrupted: {command}' if command else f'being trained in {folder}'}")
    shipped = sorted(set(OWN_MODELS) - models.keys() - runs.keys())
    lines += [f"{name}\tcomes with the package; made on first use" for name in shipped]
    folders = {name: str(folder) for name, folder in models.items()}
    print_result(arguments, "\n".join(lines), {"models": folders, "unfinished": unfinished, "shipped": shipped})
    return 0


def run_remove(arguments: argparse.Namespace) -> int:
    """Remove a model and the work folder of an interrupted training of its name."""
    from simlte_st.files import discard, hold
    from simlte_st.models.names import OWN_MODELS, model_path, models_folder, named_models, unfinished_runs

    name, models = arguments.name, named_models()
    folder, run = models.get(name), unfinished_runs().get(name)
    if folder is None and name in OWN_MODELS and os.path.isdir(model_path(name)):  # damaged, or empty
        folder = model_path(name)
    if folder is None and run is None:
        raise ConfigurationError(
            f"{models_folder()} has no model and no interrupted training {name!r}.{did_you_mean(name, models)} To list "
            "them: simlte models list"
        )
    if run is not None:  # raises if it is running
        hold(run).release()
    removed = [path for path in (run, folder) if path is not None]
    for path in removed:
        discard(path, model_path(name))
    lines = [f"Removed {'the interrupted training' if path == run else 'the model'}: {path}" for path in removed]
    print_result(arguments, "\n".join(lines), {"removed": [str(path) for path in removed]})
    if (trained := f"{name}.trained") in models:
        note(f"The model that was trained for it has a name of its own: simlte models remove {trained}", arguments)
    return 0
