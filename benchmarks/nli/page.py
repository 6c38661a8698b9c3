"""The page of TA-SBERT's tables and claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from benchmarks.nli.printed import AVERAGE, SIMILARITY, TRANSFER
from benchmarks.nli.tasks import SENTEVAL, STS
from benchmarks.nli.training import BATCH, ROWS
from benchmarks.pages import document
from benchmarks.records import mean_deviation
from simlte_st.evaluation.table import markdown_table

METRICS = {"pearson": "Pearson, times 100:", "spearman": "Spearman, times 100:", "accuracy": "Accuracy, SentEval, %:"}
Seeds = dict[int, dict[str, Any]]
"""The result of each training of a row, by seed."""

CLAIMS = (
    ("Base form conversion alone changes nothing", "+ form", "none"),
    ("Token attention helps", "+ att", "none"),
    ("Base form conversion helps on top of token attention", "+ form + att", "+ att"),
    ("The reconstruction loss helps on top of token attention", "+ att + recon", "+ att"),
    ("All three together help", "+ form + att + recon", "none"),
)
"""The paper's claims, each with its row and the row to compare with."""


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    results = record["results"]
    rows = {name: cell["settings"] for name, cell in results.items() if name.startswith("rows/")}
    settings = next(iter(rows.values()))
    sizes = {name: settings[name] for name in ("pairs", "sts_pairs", "transfer_texts") if settings[name] is not None}
    # The base with the most training runs first.
    bases = sorted({name.split("/")[1] for name in rows}, key=lambda base: -sum(f"/{base}/" in name for name in rows))
    blocks = [
        "# TA-SBERT's three parts",
        f"Each row trains once on {sizes.get('pairs', 'all')} pairs of SNLI's development part, {BATCH} "
        "pairs of similar length per step, with the softmax objective. Everything but the encoder learns "
        f"at 1.5 times its rate of {settings['learning_rate']:g}, as in the paper. The paper trains on "
        "942,000 pairs at 2e-05; its numbers for BERT-base are in parentheses. Sentence similarity uses "
        f"at most {sizes.get('sts_pairs', 'all')} examples of each set, SentEval "
        f"{sizes.get('transfer_texts', 'all')} of each task. SST is missing, and the paper's mean is "
        "recomputed without it. ± gives the standard deviation over training runs.",
    ]
    for base in bases:
        blocks += _base(results, base)
    options = "".join(f" --{name.replace('_', '-')} {value}" for name, value in sizes.items())
    command = f"python -m benchmarks.ta_sbert --shared FOLDER --bases {' '.join(bases)}{options}"
    command += f" --learning-rate {settings['learning_rate']:g}" + " --bf16" * settings["bf16"]
    return document(*blocks, machines=record["environments"], command=command)


def _base(results: Mapping[str, Any], base: str) -> list[str]:
    rows = rows_of(results, base)
    counts = ", ".join(f"`{row}` {len(trained)}" for row, trained in rows.items())
    untrained = {"TF-IDF": results.get("baselines/TF-IDF"), "not trained": results.get(f"baselines/{base}")}
    blocks = [f"## From {base}", f"Trainings: {counts}."]
    for metric, title in METRICS.items():
        blocks += [title, score_table(rows, {name: found for name, found in untrained.items() if found}, metric)]
    return [
        *blocks,
        "The paper's claims, as differences of means, paired by seed, with 95% t intervals over seeds. "
        "Trainings with and without base form conversion draw different dropout from the first "
        "converted text on, so pairing by seed removes little noise there.",
        claim_table(rows),
    ]


def rows_of(results: Mapping[str, Any], base: str) -> dict[str, Seeds]:
    """Return the training runs of a base, by row and seed."""
    found: dict[str, Seeds] = {row: {} for row in ROWS}
    for name, result in results.items():
        if name.startswith(f"rows/{base}/"):
            row, _, seed = name.removeprefix(f"rows/{base}/").rpartition("-")
            found[row][int(seed)] = result
    return {row: dict(sorted(trained.items())) for row, trained in found.items() if trained}


def values_of(result: Mapping[str, Any], metric: str) -> dict[str, float]:
    """Return a result's numbers in percent by set, with their mean."""
    if metric == "accuracy":
        found = {name: 100 * result["senteval"][name] for name in SENTEVAL}
    else:
        found = {name: 100 * result["sts"][name][metric] for name in STS}
    return {**found, AVERAGE: float(np.mean(list(found.values())))}


def printed_of(row: str, metric: str) -> dict[str, float]:
    """Return the paper's numbers for a row, with the mean over the tasks measured here."""
    if metric == "accuracy":
        found = {name: TRANSFER[row][name] for name in SENTEVAL}
        return {**found, AVERAGE: float(np.mean(list(found.values())))}
    return {name: cell[metric] for name, cell in SIMILARITY[row].items()}


def score_table(rows: Mapping[str, Seeds], untrained: Mapping[str, Any], metric: str) -> str:
    """Tabulate a metric: the baselines, then the rows with the paper's numbers."""
    names = [*(SENTEVAL if metric == "accuracy" else STS), AVERAGE]
    lines = []
    for name, result in untrained.items():
        values = values_of(result, metric)
        lines.append([name, *(f"{values[column]:.1f}" for column in names)])
    for row, trained in rows.items():
        found, theirs = [values_of(result, metric) for result in trained.values()], printed_of(row, metric)
        ours = {column: mean_deviation([values[column] for values in found], factor=1) for column in names}
        lines.append([row, *(f"{ours[column]} ({theirs[column]:.1f})" for column in names)])
    return markdown_table(["", *names], lines)


def claim_table(rows: Mapping[str, Seeds]) -> str:
    """Tabulate the paper's claims beside our measurements."""
    lines = []
    for claim, row, against in CLAIMS:
        for metric in METRICS if row in rows and against in rows else ():
            theirs = printed_of(row, metric)[AVERAGE] - printed_of(against, metric)[AVERAGE]
            seeds = [seed for seed in rows[row] if seed in rows[against]]
            both = [[values_of(rows[side][seed], metric)[AVERAGE] for seed in seeds] for side in (row, against)]
            differences = np.subtract(*both)
            ours = f"{differences.mean():+.2f}"
            if len(seeds) > 1:
                low, high = ttest_1samp(differences, 0.0).confidence_interval(0.95)
                ours += f" [{low:+.2f}, {high:+.2f}]"
            lines.append([claim, metric, f"{theirs:+.2f}", ours])
    return markdown_table(["claim", "mean", "paper", "here"], lines)
