"""``simlte train``: adapt a model to documents without labels."""

from __future__ import annotations

import argparse
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.dataclass_arguments import add_alternatives, add_dataclass_arguments, alternative_fields
from simlte_st.cli.messages import note
from simlte_st.cli.numbers import count, count_from_zero, finite_number
from simlte_st.data.views import VIEWS, make_view
from simlte_st.models.names import usage_example
from simlte_st.training.presets import Preset

if TYPE_CHECKING:
    from simlte_st.training.result import TrainingResult


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "train",
        help="adapt a model to documents without labels, and tell whether that helped",
        description="Adapt an embedding model to documents without labels (DocSplit), and tell on documents that were "
        "held out whether it is better than its base. The finished model loads with sentence-transformers. Ctrl-C or "
        "SIGTERM leaves a checkpoint to go on from with --resume.",
        examples=(
            "simlte train my_documents --output my-model",
            "simlte train my_documents --output my-model --resume",
            "simlte train papers.parquet --probe topic --name papers",
            "simlte train papers.parquet --preset docsplit-longformer --output long-model",
        ),
        parameters={"label_column": "--probe"},
    )
    add_arguments(parser, "source")
    parser.add_argument(
        "--base", metavar="NAME_OR_PATH", help="model to begin with (default: the packaged all-MiniLM-L6-v2)"
    )
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--output", metavar="DIR", help="folder of the finished model")
    target.add_argument(
        "--name", help="a name instead of a folder, by which all commands and simlte_st.SentenceTransformer(NAME) find "
        "the model; it is saved in your model folder (SIMLTE_ST_HOME, else the user's cache)",
    )  # fmt: skip
    parser.add_argument(
        "--push-to-hub", metavar="OWNER/NAME",
        help="upload the finished model with its card to the Hugging Face Hub; token and name are checked before "
        "training",
    )  # fmt: skip
    parser.add_argument(
        "--public", action="store_true", help="with --push-to-hub: make a new repository public (default: private)"
    )
    add_arguments(parser, "--resume", "--overwrite")

    group = parser.add_argument_group("training (what is not given comes from the preset)")
    group.add_argument(
        "--preset",
        default="auto",
        help="docsplit-bert, docsplit-longformer (the papers'), docsplit-tuned (for bases that are sentence encoders "
        "already), or auto to choose by the base (default: %(default)s). docsplit-longformer converts a base that "
        "reads fewer than 4,096 tokens",
    )
    group.add_argument(
        "--max-steps", type=count, metavar="N",
        help="steps of the optimizer, whatever --epochs and the preset say",
    )  # fmt: skip
    group.add_argument(
        "--lsa", type=count, metavar="N",
        help="append a latent semantic analysis of the documents to the embedding, of N dimensions (256 is good); "
        "without training: simlte convert MODEL --lsa DOCUMENTS",
    )  # fmt: skip
    group.add_argument(
        "--keep", choices=("verdict", "trained"), default="verdict",
        help="verdict: where training did not clearly help, the model is the base, and what was trained goes to "
        "OUTPUT.trained; trained: the model is what was trained, in any case (default: %(default)s)",
    )  # fmt: skip
    add_dataclass_arguments(group, Preset, without=("view", "steps"))

    group = parser.add_argument_group("views (what is not given comes from the preset)")
    group.add_argument(
        "--view", metavar="NAME", choices=tuple(VIEWS),
        help=f"how the two views of a document are drawn: {', '.join(VIEWS)}",
    )  # fmt: skip
    add_alternatives(group, VIEWS)
    add_arguments(group, "--segmenter")

    group = parser.add_argument_group("running")
    group.add_argument(
        "--stream", action="store_true",
        help="read the documents while training goes on, from parquet files (a folder, a pattern, or any address that "
        "fsspec knows: s3://, hf://datasets/OWNER/NAME/) or hub:NAME, however many they are; needs --max-steps where "
        "the preset has no steps",
    )  # fmt: skip
    group.add_argument(
        "--held-out", type=finite_number, default=0.1, metavar="X",
        help="share of the documents, at most 500, kept out of training to measure the gain (default: %(default)s; up "
        "to three times that where it would be fewer than 100 documents)",
    )  # fmt: skip
    group.add_argument(
        "--probe", metavar="COLUMN",
        help="column of classes, folders or tags: a classifier on it has a say in the verdict; training does not see "
        "it",
    )  # fmt: skip
    group.add_argument(
        "--report", action="store_true",
        help="write a page of the run beside the model, OUTPUT.report.html (extra explore): loss, verdict, and the "
        "held-out documents whose nearest documents changed most, with their texts",
    )  # fmt: skip
    group.add_argument("--bf16", action=argparse.BooleanOptionalAction, help="default: where the hardware has it")
    add_arguments(group, "--device")
    group.add_argument("--workers", type=count_from_zero, default=0, metavar="N", help="processes that make batches")
    group.add_argument("--save-steps", type=count, metavar="N", help="steps between checkpoints")
    add_arguments(parser, "--json", "reading", "--seed", "--quiet", "common")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train."""
    from simlte_st.errors import ConfigurationError

    output = _target(arguments)
    if arguments.public and arguments.push_to_hub is None:
        raise ConfigurationError("--public is for --push-to-hub: without it nothing is uploaded.")

    from simlte_st.processes import is_main, stop  # what follows takes seconds to import
    from simlte_st.training.train import train
    from simlte_st.training.upload import check_upload

    options = {name: value for name, value in vars(arguments).items() if name in signature(train).parameters}
    options |= {
        item.name: getattr(arguments, item.name) for item in fields(Preset) if item.name not in ("view", "steps")
    }
    options |= {"output": output, "progress": not arguments.quiet, "view": _view(arguments)}
    if arguments.push_to_hub is not None:
        check_upload(arguments.push_to_hub)
    result, speaks = train(**options), is_main()
    stop()
    if not speaks:
        return 0
    status = report(result, arguments)
    if arguments.push_to_hub is not None:
        address = result.push_to_hub(arguments.push_to_hub, private=not arguments.public)
        note(f"Uploaded: {address}", arguments)
    return status


def report(result: TrainingResult, arguments: argparse.Namespace) -> int:
    """Say what a run did, and how to use the model; the exit status is 0."""
    text = f"{result.summary()}\nUse it:\n\n{usage_example(str(result.output))}"
    places = {"output": str(result.output), "report": None if result.report is None else str(result.report)}
    print_result(arguments, text, {**places, **result.to_dict()})
    return 0


def _target(arguments: argparse.Namespace) -> Path:
    """Choose where the model goes."""
    from simlte_st.errors import ConfigurationError
    from simlte_st.models.names import model_path

    if arguments.name is not None:
        return model_path(arguments.name)
    if arguments.output is not None:
        return Path(arguments.output)
    raise ConfigurationError("Say where the model goes: --output DIR or --name NAME.")


def _view(arguments: argparse.Namespace) -> Any:
    """Make the view, if anything was said about it; None leaves it to the preset."""
    settings = {name: value for name in alternative_fields(VIEWS) if (value := getattr(arguments, name)) is not None}
    if arguments.view is None and not settings:
        return None
    return make_view(arguments.view or "docsplit", **settings)
