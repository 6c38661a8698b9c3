"""The page of AST's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.linking.printed import AVERAGES, R_PRECISION
from benchmarks.pages import document
from benchmarks.papers.linking import PRINTED_RANKS, scaled_rank
from benchmarks.records import mean_deviation
from simlte_st.evaluation.table import markdown_table

METRICS = {"map": "mAP", "roc_auc": "ROC-AUC", "mrp": "mRP"}


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    found = {name: list(by_seed.values()) for name, by_seed in record["results"].items()}
    ordered = sorted(found, key=lambda name: -float(np.mean([run["metrics"]["map"] for run in found[name]])))
    some = found[ordered[0]][0]
    counts, settings = some["counts"], some["settings"]
    averages, precisions, alphas = [], [], []
    for name in ordered:
        row = [name]
        for key in METRICS:
            paper = f" ({AVERAGES[name][key]:.1f})" if name in AVERAGES else ""
            row.append(mean_deviation([run["metrics"][key] for run in found[name]]) + paper)
        averages.append([*row, str(len(found[name]))])
        row = [name]
        for rank in PRINTED_RANKS:
            values = [run["r_precision"][str(scaled_rank(rank, run["counts"]["links"]))] for run in found[name]]
            paper = f" ({R_PRECISION[name][rank]:.1f})" if name in R_PRECISION else ""
            row.append(mean_deviation(values) + paper)
        precisions.append(row)
    for part in ("ring", "star"):
        columns = zip(*(run["alpha"][part] for run in found.get("AST", [])), strict=True)
        alphas.append([part, *(mean_deviation(column, 2, 1) for column in columns)])
    return document(
        "# Linking posts to articles: AST",
        f"Tweets and fact-checked articles, split by article for each seed: about {counts['posts']} test "
        f"posts and {counts['articles']} test articles, with {counts['links']} links among "
        f"{counts['posts'] * counts['articles']:,} pairs. Word-vector encoders read {settings['words']} "
        f"words of an article (fixed 100-dimensional GloVe) and train for {settings['epochs']} epochs "
        f"with the multi-similarity triplet loss; MiniLM reads {settings['tokens']} tokens. BM25 and "
        "TF-IDF read whole texts and take document frequencies from the test texts. ± gives the standard "
        "deviation over seeds, and parentheses the paper's results on other data, with 300-dimensional "
        "vectors.",
        "## Averages",
        markdown_table(["", *METRICS.values(), "seeds"], averages),
        "## r-Precision",
        "Columns show the paper's numbers of retrieved pairs, scaled here to the number of links.",
        markdown_table(["", *(f"{rank:,}" for rank in PRINTED_RANKS)], precisions),
        "## Sparsity of AST's heads",
        "Alpha after training, mean over seeds (Figure 3); all heads start at 1.5.",
        markdown_table(["", *(f"head {number}" for number in range(1, len(alphas[0])))], alphas),
        machines=record["environments"],
        command="python -m benchmarks.ast --shared FOLDER",
    )
