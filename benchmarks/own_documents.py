"""DocSplit against SimCSE on a language model trained on a user's own documents.

    python -m benchmarks.own_documents --shared SHARED_DATA --base MODEL --bf16

The papers train on Wikipedia and test on other data sets, but a user has one corpus. Here encoders train for a few
steps on each data set's own documents, without labels, and are then evaluated as in :mod:`benchmarks.paper`, which
this script runs once per set. The work folder keeps finished parts, so the same command resumes an interrupted run.
Results go to ``results/own_documents.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import paper
from benchmarks.datasets.bbc import packaged_corpus_path
from benchmarks.datasets.sets import SHARED
from benchmarks.grid.experiments import CLASSIFICATION
from benchmarks.grid.page import gain_text, score_table
from benchmarks.grid.results import Results, collect_record
from benchmarks.grid.systems import SHOTS, SYSTEMS
from benchmarks.grid.work import Work
from benchmarks.pages import document, write_results
from benchmarks.records import make_parser
from simlte_st.evaluation.table import markdown_table

SETS = ("20news", "arxiv", "bbc")
BASE, SIMCSE, CROP, DOCSPLIT = "base-cls", "simcse", "contriever", "docsplit-no-mlm"
TITLES = dict(zip(CLASSIFICATION, ("a few labels", "all labels"), strict=True))
PAIRS = ((DOCSPLIT, BASE), (DOCSPLIT, SIMCSE), (DOCSPLIT, CROP), (SIMCSE, BASE), (CROP, BASE))


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--bf16")
    parser.add_argument("--base", required=True, help="language model that all systems start from")
    parser.add_argument("--work", type=Path, default=Path("own.work"), help="folder of finished parts")
    parser.add_argument("--data", nargs="+", choices=SETS, default=SETS, metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=60, help="steps of 36 documents (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    for seed in options.seeds:  # finish each seed on all sets before the next seed
        for name in options.data:
            paper.main(paper_arguments(options, name, seed))
    record, *later_records = (collect_record(Work(options.work / name)) for name in options.data)
    for later_record in later_records:
        record["results"] |= later_record["results"]
    results = Results(record["results"])
    record["gains"] = {
        f"{ours} over {theirs}": {kind: results.gain(kind, ours, theirs) for kind in CLASSIFICATION}
        for ours, theirs in PAIRS
    }
    write_results("own_documents", record, options.results)


def paper_arguments(options: argparse.Namespace, name: str, seed: int) -> list[str]:
    """Return the arguments of :mod:`benchmarks.paper` for a set and a seed."""
    corpus, folder = options.shared / SHARED[name], options.work / name
    return [
        *("--scale", "cpu", "--shared", f"{options.shared}", "--base", options.base, "--threads", f"{options.threads}"),
        *("--corpus", f"{corpus if corpus.exists() else packaged_corpus_path()}", "--corpus-documents", "100000"),
        *("--work", f"{folder}", "--results", f"{folder / 'page'}", "--steps", f"{options.steps}"),
        *("--data", name, "--experiments", *CLASSIFICATION, "--only", "tfidf", BASE, SIMCSE, CROP, DOCSPLIT),
        *("--seeds", f"{seed}", *["--bf16"] * options.bf16),
    ]


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    results, settings = Results(record["results"]), record["settings"]
    shots = ", ".join(f"{SHOTS.get(name, 5)} ({name})" for name in SETS)
    blocks = []
    for experiment, title in TITLES.items():
        blocks += [f"## Macro-F1, {title}", score_table(results, experiment, "macro_f1")]
    return document(
        "# A language model trained on your own documents",
        f"{settings['base']['name']} is trained on each data set's own documents without labels: "
        f"{settings['steps']} steps of {settings['batch_size']} documents, {settings['tokens']} tokens per view, "
        f"{settings['dtype']}; the rest is as in [the papers' experiments](paper.md). Texts are read up to "
        f'{settings["read"]} tokens. "A few labels" means {shots} labels per class, drawn {settings["draws"]} times. '
        "± gives the standard deviation over seeds and draws.",
        *blocks,
        "## Relative gain in macro-F1",
        "Brackets give paired 95% bootstrap intervals over training runs and draws or, with all labels, the "
        "smallest and largest gain of a training run. They describe these sets, not others.",
        gain_table(record["gains"]),
        machines=record["environments"],
        command=f"python -m benchmarks.own_documents --shared SHARED_DATA --base {settings['base']['name']}"
        + " --bf16" * (settings["dtype"] == "bfloat16"),
    )


def gain_table(gains: Mapping[str, Mapping[str, Any]]) -> str:
    """Tabulate the gains over all sets and on each of them."""
    rows = []
    for pair, kinds in gains.items():
        ours, _, theirs = pair.partition(" over ")
        for experiment, gain in kinds.items():
            if gain is not None:
                title = f"{SYSTEMS[ours].title} over {SYSTEMS[theirs].title}"
                cells = [gain_text(gain), *(gain_text(gain["of_each"].get(name)) for name in SETS)]
                rows.append([title, TITLES[experiment], *cells, f"{len(gain['seeds'])}"])
    return markdown_table(["", "labels", "all sets", *SETS, "trainings"], rows)


if __name__ == "__main__":
    main()
