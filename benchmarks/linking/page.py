"""The page of AST's tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from benchmarks.linking.printed import AVERAGES, R_PRECISION
from benchmarks.pages import fill, with_printed
from benchmarks.papers.linking import PRINTED_RANKS, scaled_rank
from benchmarks.records import mean_deviation

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
