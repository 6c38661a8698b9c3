"""``simlte train``: adapt a model to documents without labels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_alternatives, add_options, alternative_fields, config_from
from simlte_st.data.views import VIEWS, make_view
from simlte_st.models.names import model_path, usage_example
from simlte_st.training.config import Preset, TrainConfig

if TYPE_CHECKING:
    from simlte_st.training.result import TrainingResult


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "train",
        help="adapt a model to documents without labels, and measure whether that helped",
        description="Adapt an embedding model to documents without labels (DocSplit), and measure on held-out "
        "documents whether it is better than its base. The finished model loads with sentence-transformers. Ctrl-C or "
        "SIGTERM leaves a checkpoint to continue from with --resume.",
        examples=(
            "simlte train my_documents --output my-model",
            "simlte train my_documents --encoder --output my-encoder",
            "simlte train papers.parquet --probe topic --name papers",
            "simlte train papers.parquet --preset docsplit-longformer --output long-model",
        ),
        parameters={"label_column": "--probe"},
    )
    add_arguments(parser, "source")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--output", metavar="DIR", help="folder of the finished model")
    target.add_argument(
        "--name",
        help="a name instead of a folder, by which all commands and simlte_st.SentenceTransformer(NAME) find "
        "the model; it is saved in your model folder (SIMLTE_ST_HOME, else the user's cache)",
    )
    parser.add_argument(
        "--push-to-hub",
        metavar="OWNER/NAME",
        help="upload the finished model with its card to the Hugging Face Hub; token and name are checked before "
        "training",
    )
    parser.add_argument(
        "--public", action="store_true", help="with --push-to-hub: make a new repository public (default: private)"
    )
    add_options(parser, TrainConfig)
    group = parser.add_argument_group("settings of the preset (the default is what the preset says)")
    add_alternatives(group, {"preset": Preset})
    group = parser.add_argument_group("views (the default is what the preset says)")
    group.add_argument("--view", choices=tuple(VIEWS), help="how the two views of a document are drawn")
    add_alternatives(group, VIEWS)
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train."""
    from simlte_st.errors import ConfigurationError

    if arguments.name is None and arguments.output is None:
        raise ConfigurationError("Say where to save the model: --output DIR or --name NAME.")
    if arguments.public and arguments.push_to_hub is None:
        raise ConfigurationError("--public needs --push-to-hub OWNER/NAME.")
    output = Path(arguments.output) if arguments.name is None else model_path(arguments.name)
    settings = {name: getattr(arguments, name) for name in alternative_fields({"preset": Preset})}
    config = config_from(arguments, TrainConfig, settings={**settings, "view": _view(arguments)})

    from simlte_st.distributed import disconnect, is_main
    from simlte_st.training.check import check_run
    from simlte_st.training.train import train

    if arguments.push_to_hub is not None:
        check_run(arguments.source, output, config)

        from simlte_st.training.upload import check_upload  # takes seconds to import, and asks the Hub

        check_upload(arguments.push_to_hub, private=not arguments.public)
    result, shows = train(arguments.source, output, config), is_main()
    disconnect()
    if not shows:
        return 0
    status = report(result, arguments)
    if arguments.push_to_hub is not None:
        address = result.push_to_hub(arguments.push_to_hub, private=not arguments.public)
        note(f"Uploaded: {address}", arguments)
    return status


def report(result: TrainingResult, arguments: argparse.Namespace) -> int:
    """Print what a run did and how to use the model."""
    text = f"{result.summary()}\nUse it:\n\n{usage_example(str(result.output))}"
    places = {"output": str(result.output), "report": None if result.report is None else str(result.report)}
    print_result(arguments, text, {**places, **result.to_dict()})
    return 0


def _view(arguments: argparse.Namespace) -> Any:
    """Return the view that the options describe; None leaves it to the preset."""
    settings = {name: value for name in alternative_fields(VIEWS) if (value := getattr(arguments, name)) is not None}
    if arguments.view is None and not settings:
        return None
    return make_view(arguments.view or "docsplit", **settings)
