"""``simlte models``: the models that have a name on this machine."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import Any

from simlte_st.cli.arguments import (
    SOURCE_HELP,
    Sources,
    add_common_arguments,
    add_device_argument,
    add_json_argument,
    add_quiet_argument,
    add_seed_argument,
    add_source_arguments,
    print_result,
    reading_options,
)
from simlte_st.cli.terminal import note
from simlte_st.errors import ConfigurationError


def add_parser(subparsers: Any) -> None:
    """Add the subcommand and its own ones."""
    parser = subparsers.add_parser(
        "models",
        help="list, make or remove the models that have a name on this machine",
        description="Models with a name: made here, or by simlte train --name. They are used by that name, as in "
        "SentenceTransformer(NAME) of simlte_st or simlte encode NAME.",
        allow_abbrev=False,
        examples=(
            "simlte models list",
            "simlte models build simlte-longformer articles.parquet",
            "simlte models remove papers",
        ),
    )
    commands = parser.add_subparsers(required=True, metavar="ACTION")

    build = commands.add_parser(
        "build",
        help="make simlte-longformer or simlte-bert",
        description="Make a model of this package anew, in the way that the one was made which comes with it: "
        "all-MiniLM-L6-v2, reading piece by piece, teaches one pass over whole documents. On one CPU core, in "
        "bfloat16, simlte-longformer took an hour and a half (3,000 articles) and simlte-bert a quarter of an hour "
        "(1,000). The new model takes the place of the one that comes with the package, until you remove it. To adapt "
        "a model to your documents, use simlte train.",
        allow_abbrev=False,
        examples=(
            "simlte models build simlte-longformer articles.parquet",
            "simlte models build simlte-bert articles.parquet --limit 1000",
            "simlte models build simlte-bert articles.parquet --limit 1000 --resume",
        ),
    )
    build.add_argument("name", metavar="NAME", help="simlte-longformer or simlte-bert")
    build.add_argument("source", metavar="SOURCE", nargs="+", action=Sources, help=SOURCE_HELP)
    build.add_argument("--max-steps", type=int, metavar="N", help="stop after N steps (default: one pass)")
    build.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    build.add_argument("--overwrite", action="store_true", help="replace the model of that name")
    build.add_argument("--bf16", action=argparse.BooleanOptionalAction, help="default: where the hardware has it")
    add_json_argument(build)
    add_device_argument(build)
    add_source_arguments(build)
    add_seed_argument(build)
    add_quiet_argument(build)
    add_common_arguments(build)
    build.set_defaults(run=run_build)

    listing = commands.add_parser(
        "list",
        help="list the models by name, and trainings that were interrupted",
        allow_abbrev=False,
        examples=("simlte models list", "simlte models list --json"),
    )
    add_json_argument(listing)
    add_common_arguments(listing)
    listing.set_defaults(run=run_list)

    remove = commands.add_parser(
        "remove",
        help="remove a model by name",
        description="Remove a model from your model folder, and what an interrupted training of that name left. "
        "It does not ask: what is removed is gone.",
        allow_abbrev=False,
        examples=("simlte models remove papers", "simlte models remove papers.trained"),
    )
    remove.add_argument("name", metavar="NAME", help="one of simlte models list")
    add_json_argument(remove)
    add_common_arguments(remove)
    remove.set_defaults(run=run_remove)


def run_build(arguments: argparse.Namespace) -> int:
    """Make a model of this package."""
    from simlte_st.models.names import usage_example
    from simlte_st.training.distillation import build_model

    build = build_model(
        arguments.name,
        arguments.source,
        max_steps=arguments.max_steps,
        seed=arguments.seed,
        bf16=arguments.bf16,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        device=arguments.device,
        progress=not arguments.quiet,
        **reading_options(arguments),
    )
    text = f"{build.summary()}\nUse it:\n\n{usage_example(build.output)}"
    print_result(arguments, text, {"output": str(build.output), **build.to_dict()})
    return 0


def run_list(arguments: argparse.Namespace) -> int:
    """List the models by name, and the trainings that have not ended."""
    from simlte_st.files import is_abandoned
    from simlte_st.models.names import OWN_MODELS, named_models, unfinished_runs

    found, runs = named_models(), unfinished_runs()
    lines = [f"{name}\t{folder}" for name, folder in found.items()]
    unfinished: dict[str, Any] = {}
    for name, folder in runs.items():
        command = _resume_command(name, folder) if is_abandoned(folder) else None
        unfinished[name] = {"folder": str(folder), "resume": command}
        lines.append(f"{name}\t{f'interrupted: {command}' if command else f'being trained in {folder}'}")
    shipped = sorted(set(OWN_MODELS) - found.keys() - runs.keys())
    lines += [f"{name}\tcomes with the package; unpacked on first use" for name in shipped]
    models = {name: str(folder) for name, folder in found.items()}
    print_result(arguments, "\n".join(lines), {"models": models, "unfinished": unfinished, "shipped": shipped})
    return 0


def _resume_command(name: str, folder: Path) -> str:
    """Write the command that goes on with an interrupted training; it must have the same options as before."""
    from simlte_st.data.sources.several import is_place
    from simlte_st.files import SETTINGS_FILE, read_json

    told = read_json(folder / SETTINGS_FILE)
    if told.get("build") != name:
        return f"the same simlte train command with --name {name} --resume"
    sources = told["source"] if isinstance(told["source"], list) else [told["source"]]
    if not all(map(is_place, sources)):  # not to be found from here
        return f"the same simlte models build {name} command with --resume"
    words = ["simlte", "models", "build", name, *sources]
    usual = {"seed": 0, "encoding": "utf-8"}
    for option in ("max_steps", "seed", "text_column", "id_column", "encoding", "limit"):
        if told[option] != usual.get(option):
            words += [f"--{option.replace('_', '-')}", str(told[option])]
    words.append("--bf16" if told["dtype"] == "bfloat16" else "--no-bf16")  # the default may be another elsewhere
    return shlex.join([*words, "--resume"])


def run_remove(arguments: argparse.Namespace) -> int:
    """Remove a model, and what an interrupted training of its name left."""
    from simlte_st.files import discard, hold
    from simlte_st.models.names import OWN_MODELS, model_path, models_folder, named_models, unfinished_runs

    name, found = arguments.name, named_models()
    folder, run = found.get(name), unfinished_runs().get(name)
    if folder is None and name in OWN_MODELS and os.path.isdir(model_path(name)):  # damaged, or empty
        folder = model_path(name)
    if folder is None and run is None:
        raise ConfigurationError(
            f"{models_folder()} has no model and no interrupted training {name!r}. What it has: simlte models list"
        )
    if run is not None:  # before anything is removed: it may be at work
        hold(run).release()
    removed = [path for path in (run, folder) if path is not None]
    for path in removed:
        discard(path, model_path(name))
    lines = [
        f"Removed {'what an interrupted training left' if path == run else 'the model'}: {path}" for path in removed
    ]
    print_result(arguments, "\n".join(lines), {"removed": [str(path) for path in removed]})
    if (trained := f"{name}.trained") in found:
        note(f"What was trained for it is a model of its own: simlte models remove {trained}")
    return 0
