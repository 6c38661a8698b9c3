"""The page of AST's tables, with the printed Tables 1 and 2, in percent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from benchmarks.pages import fill, read_printed, with_printed
from benchmarks.papers.linking import PRINTED_RANKS, scaled_rank
from benchmarks.records import mean_deviation

R_PRECISION = read_printed("ast_r_precision").rename(columns=int)
"""Precision by encoder and number of retrieved pairs: Table 1."""

AVERAGES = read_printed("ast_averages")
"""Averages by encoder: Table 2.

According to the paper, "mRP is simply the r-Precision over all thresholds in Table 1". But the means of Table 1's rows
are different (CNN 85.13, GRU 80.85, Bi-GRU 84.47, AST 85.09) and put CNN before AST.
"""

METRICS = {"map": "mAP", "roc_auc": "ROC-AUC", "mrp": "mRP"}


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    cells = score_cells(record)
    heads = pd.concat(pd.DataFrame(run["alpha"]) for run in record["results"]["AST"].values())
    alphas = heads.groupby(level=0).agg(partial(mean_deviation, digits=2, factor=1))
    seeds = {name: f"{len(runs)}" for name, runs in record["results"].items()}
    return fill(
        "ast.md",
        record=record,
        run=next(iter(record["results"][cells.index[0]].values())),
        averages=with_printed(cells[[*AVERAGES]], AVERAGES).assign(seeds=pd.Series(seeds)),
        precisions=with_printed(cells[[*PRINTED_RANKS]], R_PRECISION).rename(columns="{:,}".format),
        alphas=alphas.rename(lambda head: f"head {head + 1}").T,
    )


def score_cells(record: Mapping[str, Any]) -> pd.DataFrame:
    """Return averages and precisions as mean ± deviation over seeds; the system with the best mAP is first."""
    rows = []
    for name, runs in record["results"].items():
        for run in runs.values():
            metrics = {title: run["metrics"][metric] for metric, title in METRICS.items()}
            ranks = {rank: scaled_rank(rank, run["counts"]["links"]) for rank in PRINTED_RANKS}
            precisions = {rank: run["r_precision"][f"{scaled}"] for rank, scaled in ranks.items()}
            rows.append({"system": name, **metrics, **precisions})
    systems = pd.DataFrame(rows).groupby("system")
    order = systems["mAP"].mean().sort_values(ascending=False).index
    return systems.agg(mean_deviation).loc[order].rename_axis(None)
