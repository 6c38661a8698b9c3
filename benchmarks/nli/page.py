"""The page of TA-SBERT's tables and claims."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
from scipy.stats import ttest_1samp

from benchmarks.nli.printed import AVERAGE, PRINTED
from benchmarks.nli.tasks import SENTEVAL, STS
from benchmarks.nli.training import BATCH, ROWS
from benchmarks.pages import fill, with_printed
from benchmarks.records import mean_deviation

METRICS = {"pearson": "Pearson, times 100:", "spearman": "Spearman, times 100:", "accuracy": "Accuracy, SentEval, %:"}
TFIDF, UNTRAINED = "TF-IDF", "not trained"
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
    scores = read_scores(record)
    trainings = scores.groupby(level=["base", "row"]).size().unstack().reindex(columns=ROWS).dropna(how="all")
    bases = trainings.sum(axis=1).sort_values(ascending=False, kind="stable").index
    settings = next(result["settings"] for name, result in record["results"].items() if name.startswith("rows/"))
    return fill(
        "ta_sbert.md",
        record=record,
        settings=settings,
        sizes={name: settings[name] for name in ("pairs", "sts_pairs", "transfer_texts") if settings[name] is not None},
        batch=BATCH,
        trainings={base: trainings.loc[base].dropna() for base in bases},
        metrics=METRICS,
        cells=partial(score_cells, scores),
        claims=partial(claim_cells, scores),
    )


def read_scores(record: Mapping[str, Any]) -> pd.DataFrame:
    """Return all scores in percent by base, row and seed, with a column for each metric and set, and for its mean."""
    runs = {}
    for name, result in record["results"].items():
        base, run = name.split("/")[1:] if name.startswith("rows/") else (name.split("/")[1], f"{UNTRAINED}-0")
        row, _, seed = run.rpartition("-")
        scores = {(metric, task): result["sts"][task][metric] for metric in ("pearson", "spearman") for task in STS}
        scores |= {("accuracy", task): result["senteval"][task] for task in SENTEVAL}
        runs[base, row, int(seed)] = scores
    table = 100 * pd.DataFrame(runs).T.rename_axis(["base", "row", "seed"])
    means = {(metric, AVERAGE): table[metric].mean(axis=1) for metric in METRICS}
    return table.join(pd.DataFrame(means)).sort_index()


def score_cells(scores: pd.DataFrame, base: str, metric: str) -> pd.DataFrame:
    """Return the cells of a metric: the baselines, then the rows with the paper's numbers."""
    cells = scores[metric].groupby(level=["base", "row"]).agg(partial(mean_deviation, factor=1))
    ours = cells.loc[base].reindex([UNTRAINED, *ROWS]).dropna()
    cells = pd.concat([cells.loc[TFIDF].rename({UNTRAINED: TFIDF}), ours])
    return with_printed(cells.rename_axis(None), PRINTED[metric])


def claim_cells(scores: pd.DataFrame, base: str) -> pd.DataFrame:
    """Return the cells of the paper's claims beside our differences, paired by seed."""
    ours, rows = scores.xs(AVERAGE, axis=1, level=1).loc[base], []
    for claim, row, reference in CLAIMS:
        for metric in METRICS if {row, reference} <= {*ours.index.get_level_values("row")} else ():
            differences = (ours.loc[row][metric] - ours.loc[reference][metric]).dropna()
            text = f"{differences.mean():+.2f}"
            if len(differences) > 1:
                low, high = ttest_1samp(differences, 0.0).confidence_interval(0.95)
                text += f" [{low:+.2f}, {high:+.2f}]"
            paper = PRINTED[metric, AVERAGE][row] - PRINTED[metric, AVERAGE][reference]
            rows.append({"claim": claim, "mean": metric, "paper": f"{paper:+.2f}", "here": text})
    return pd.DataFrame(rows)
