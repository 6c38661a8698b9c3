"""Widen the bank's intervals to cover other samples of documents.

    python -m benchmarks.bank.documents --shared data --work verdict.work [verdict.work ...] --bf16

The bank's intervals come from splits and draws of a single sample of documents, so they are too narrow for another
sample of the same kind. This script resamples both documents and draws, as the package does with ``--probe``, for all
encoders with vectors in a work folder. ``results/verdict_documents.json`` holds the ratio of the two intervals for
each encoder; the pages widen all intervals by the median ratio.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.bank.make import BASE, Bank
from benchmarks.bank.outcomes import FEW, FULL, Probe, probes
from benchmarks.bank.sets import SAMPLES, BankSet, load_sets
from benchmarks.grid.work import Work
from benchmarks.records import RESULTS, compute_dtype, environment, make_parser
from simlte_st.evaluation.probe import resampled_macro_f1
from simlte_st.files import read_json, write_json

FILE = "verdict_documents.json"


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--results", "--bf16")
    parser.add_argument("--work", type=Path, nargs="+", required=True, help="work folders of benchmarks.verdict")
    parser.add_argument("--data", nargs="+", choices=list(SAMPLES), default=list(SAMPLES), metavar="NAME")
    parser.add_argument("--train-documents", type=int, default=600, help="per set (default: %(default)s)")
    parser.add_argument("--held-out", type=int, default=300, help="documents per set (default: %(default)s)")
    arguments = parser.parse_args(argv)
    encoders: list[dict[str, Any]] = []
    for data in load_sets(arguments.shared, arguments.data, arguments.train_documents, arguments.held_out):
        for folder in arguments.work:
            bank = Bank(Work(folder, compute_dtype(arguments.bf16)), {data.name: data}, 0, arguments.bf16)
            for ratios in interval_ratios(bank, data):
                encoders.append({"set": data.name, "work": folder.name, **ratios})
                print(encoders[-1], flush=True)
    medians = {key: round(median(ratios[key] for ratios in encoders), 2) for key in (FEW, FULL)}
    record = {"command": "python -m benchmarks.bank.documents", "wider": medians, "encoders": encoders}
    write_json(arguments.results / FILE, {**record, "environment": environment(compute_dtype(arguments.bf16))})


def interval_ratios(bank: Bank, data: BankSet) -> list[dict[str, Any]]:
    """Return the ratio of the two intervals for each encoder and outcome of a set."""
    rows, base = [], {}
    for recipe, seed, stage, vectors in bank.entries(data.name) if data.labels else ():
        results = {outcome: probes(data, vectors.whole, outcome) for outcome in (FEW, FULL)}
        if recipe == BASE:
            base = results
        else:
            ratios = {key: round(interval_ratio(results[key], base[key], len(data.labels)), 3) for key in results}
            rows.append({"recipe": recipe, "seed": seed, "stage": stage, **ratios})
    return rows


def interval_ratio(model: Sequence[Probe], base: Sequence[Probe], documents: int) -> float:
    """Divide the standard error of the mean gain over documents and draws by the one over draws alone."""
    resampled_gains = resampled_macro_f1(model, documents) - resampled_macro_f1(base, documents)
    gains = [ours.macro_f1 - theirs.macro_f1 for (_, ours), (_, theirs) in zip(model, base, strict=True)]
    error = float(np.std(gains)) / len(gains) ** 0.5
    return float(resampled_gains.std()) / error if error else 1.0  # 0 if the model equals the base


@cache
def read_record(folder: Path = RESULTS) -> dict[str, Any]:
    """Read the record written by :func:`main`."""
    return dict(read_json(folder / FILE))


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # hide notes on small classes
    main()
