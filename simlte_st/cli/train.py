"""``simlte train``: adapt a model to documents without labels."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simlte_st.cli.arguments import SOURCE_HELP, add_common_arguments, add_source_arguments, reading_options
from simlte_st.models.names import usage_example

if TYPE_CHECKING:
    from simlte_st.training.result import TrainingResult

INTERRUPTED = 130


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "train",
        help="train a DocSplit model on documents without labels",
        description="Train a DocSplit model on documents without labels. The finished model loads with stock "
        "sentence-transformers. Ctrl-C leaves a checkpoint to go on from with --resume.",
        allow_abbrev=False,
    )
    parser.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    parser.add_argument(
        "--base", metavar="NAME_OR_PATH", help="model to begin with (default: the packaged all-MiniLM-L6-v2)"
    )
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--output", metavar="DIR", help="folder of the finished model")
    target.add_argument(
        "--name", help="a name instead of a folder: it goes to your model folder (SIMLTE_ST_HOME, else the "
        "platform's cache place), for simlte_st.SentenceTransformer(NAME)",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    parser.add_argument("--overwrite", action="store_true", help="replace what is at the output")

    group = parser.add_argument_group("training (what is not given comes from the preset)")
    group.add_argument(
        "--preset",
        default="auto",
        help="docsplit-bert, docsplit-longformer (the papers'), docsplit-tuned (for bases that are sentence encoders "
        "already), or auto to choose by the base (default: %(default)s). docsplit-longformer converts a base that "
        "reads fewer than 4,096 tokens",
    )
    group.add_argument("--batch-size", type=int, metavar="N", help="documents in a batch")
    group.add_argument(
        "--batching", choices=("random", "similar", "tokens"),
        help="which documents make a batch: random ones, ones that are alike, or as many as fill --batch-tokens",
    )  # fmt: skip
    group.add_argument("--hardness", type=float, metavar="X", help="share of a similar batch that is alike, 0 to 1")
    group.add_argument("--batch-tokens", type=int, metavar="N", help="tokens of a batch, both views counted")
    group.add_argument("--duplicates", choices=("keep", "exact", "near"), help="copies that are never put in one batch")
    group.add_argument("--learning-rate", type=float, metavar="X", help="peak learning rate of AdamW")
    group.add_argument("--epochs", type=float, metavar="X", help="passes over the documents")
    group.add_argument("--max-steps", type=int, metavar="N", help="stop after N steps instead")
    group.add_argument("--lora", type=int, metavar="RANK", help="train low-rank adapters only, merged at the end")
    group.add_argument(
        "--interpolate", type=_weight, metavar="X|auto",
        help="go back to the base in part: X of the trained weights, 1 - X of the base's; auto chooses X without "
        "labels, on half of the held-out documents",
    )  # fmt: skip
    group.add_argument("--scale", type=float, metavar="X", help="inverse temperature; 20 is tau = 0.05")
    group.add_argument("--warmup", type=float, metavar="X", help="share of the steps in which the rate rises")
    group.add_argument("--dropout", type=float, metavar="X", help="dropout in the encoder while training")
    group.add_argument(
        "--attention-dropout", type=float, metavar="X", help="dropout of attention weights, if it shall differ"
    )
    group.add_argument(
        "--gradient-checkpointing", action=argparse.BooleanOptionalAction, default=None,
        help="less memory for a third more time",
    )  # fmt: skip
    group.add_argument("--min-length", type=int, metavar="N", help="tokens that the model shall read of a document")
    group.add_argument(
        "--reader", choices=("longformer", "chunk-mean"),
        help="how a base that reads fewer is made to: converted to a Longformer, or as the mean over chunks",
    )  # fmt: skip
    group.add_argument("--pooling", choices=("cls", "mean", "keep"), help="pooling of the model; keep the base's")
    group.add_argument("--max-seq-length", type=int, metavar="N", help="tokens a view may have while training")
    group.add_argument("--mlm-weight", type=float, metavar="X", help="weight of the masked language model; 0: none")
    group.add_argument("--mlm-probability", type=float, metavar="X", help="share of tokens masked for it")
    group.add_argument("--mlm-every", type=int, metavar="N", help="do the MLM pass on every N-th step only")
    group.add_argument("--mlm-share", type=float, metavar="X", help="share of the views that the MLM pass sees")
    group.add_argument(
        "--mini-batch-size", type=int, metavar="N",
        help="gradient caching: views that pass through the model at a time, for batches of any size",
    )  # fmt: skip
    group.add_argument("--mini-batch-tokens", type=int, metavar="N", help="the same, in tokens")
    group.add_argument("--mlm-input", choices=("separate", "shared"), help="a pass of its own, or the same one")

    group = parser.add_argument_group("views (what is not given comes from the preset)")
    group.add_argument("--view", help="docsplit, duplicate, crop, inverse-cloze or word-deletion")
    group.add_argument("--p", type=float, metavar="X", help="docsplit: probability of the first view")
    group.add_argument("--unit", choices=("sentence", "paragraph", "block"), help="docsplit: what is dealt")
    group.add_argument("--block", metavar="N|N-M", help="docsplit: sentences in a block, or a range of them")
    group.add_argument("--window", choices=("random", "head", "spread"), help="what to use of a long document")
    group.add_argument("--single", choices=("halve", "skip"), help="docsplit: documents of one sentence")
    group.add_argument("--segmenter", default="punkt", help="punkt or nupunkt (default: %(default)s)")

    group = parser.add_argument_group("running")
    group.add_argument(
        "--held-out", type=float, default=0.1, metavar="X",
        help="share of the documents, at most 500, kept to measure the gain (default: %(default)s)",
    )  # fmt: skip
    group.add_argument("--bf16", action=argparse.BooleanOptionalAction, help="default: where the hardware has it")
    group.add_argument("--compile", action="store_true", help="compile the encoder; for long runs")
    group.add_argument("--workers", type=int, default=0, metavar="N", help="processes that make batches")
    group.add_argument("--save-steps", type=int, metavar="N", help="steps between checkpoints")
    add_source_arguments(parser)
    add_common_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train."""
    from simlte_st.training.train import train

    names = (
        "batch_size", "batching", "hardness", "batch_tokens", "duplicates", "learning_rate", "epochs", "scale",
        "warmup", "dropout", "attention_dropout", "gradient_checkpointing", "pooling", "max_seq_length",
        "min_length", "reader",
        "mlm_weight", "mlm_probability", "mlm_input", "mlm_every", "mlm_share", "mini_batch_size", "mini_batch_tokens",
    )  # fmt: skip
    result = train(
        arguments.source,
        _target(arguments),
        base=arguments.base,
        preset=arguments.preset,
        segmenter=arguments.segmenter,
        held_out=arguments.held_out,
        max_steps=arguments.max_steps,
        lora=arguments.lora,
        interpolate=arguments.interpolate,
        seed=arguments.seed,
        bf16=arguments.bf16,
        compile=arguments.compile,
        workers=arguments.workers,
        save_steps=arguments.save_steps,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        progress=not arguments.quiet,
        view=_view(arguments),
        **reading_options(arguments),
        **{name: getattr(arguments, name) for name in names},
    )
    return report(result)


def report(result: TrainingResult) -> int:
    """Say what a run did.

    Returns:
        Exit status.
    """
    from simlte_st.training.gains import gain_summary

    if result.interrupted:
        print(
            f"Stopped at step {result.steps}; a checkpoint is written. Go on with the same command and --resume.",
            file=sys.stderr,
        )
        return INTERRUPTED
    print(
        f"Trained on {result.corpus.documents:,} documents: {result.steps:,} steps in {result.seconds:,.0f} s "
        f"({result.documents_per_second:.2g} documents a second)."
    )
    print(f"Seen and cut: {result.coverage.summary()}.")
    left_out = {**result.read["skipped"], **result.corpus.left_out}
    print("Left out: " + (", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "none") + ".")
    print(gain_summary(result.gain) if result.gain else "Too few documents were held out to measure the gain.")
    print(f"Use it:\n\n{usage_example(str(result.output))}")
    return 0


def _target(arguments: argparse.Namespace) -> Path:
    """Choose where the model goes."""
    from simlte_st.errors import ConfigurationError
    from simlte_st.models.names import OWN_MODELS, model_path

    if arguments.name is not None:
        return model_path(arguments.name)
    if arguments.output is not None:
        return Path(arguments.output)
    for name, preset in OWN_MODELS.items():
        if arguments.preset == preset:
            return Path(name)
    raise ConfigurationError("Say where the model goes: --output DIR or --name NAME.")


def _view(arguments: argparse.Namespace) -> Any:
    """Make the view, if anything was said about it; None leaves it to the preset."""
    from simlte_st.data.rival_views import make_view

    settings = {
        name: getattr(arguments, name)
        for name in ("p", "unit", "window", "single")
        if getattr(arguments, name) is not None
    }
    if arguments.block is not None:
        settings["block"] = _block(arguments.block)
        settings.setdefault("unit", "block")
    if arguments.view is None and not settings:
        return None
    return make_view(arguments.view or "docsplit", **settings)


def _block(text: str) -> int | tuple[int, int]:
    from simlte_st.errors import ConfigurationError

    try:
        numbers = [int(part) for part in text.split("-")]
        return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])
    except ValueError as error:
        raise ConfigurationError(f"--block {text}: give a number, or a range such as 2-12.") from error


def _weight(text: str) -> Any:
    return text if text == "auto" else float(text)
