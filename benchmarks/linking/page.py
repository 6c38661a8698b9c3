"""The page: AST's tables as they came out here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grid.work import Work
from benchmarks.linking.printed import AVERAGES, R_PRECISION
from benchmarks.records import environment_lines, environments, mean_deviation, write_results
from simlte_st.evaluation.linking import PRINTED_RANKS, THRESHOLD, scaled_rank
from simlte_st.evaluation.table import markdown_table

TITLES = {"map": "mAP", "roc_auc": "ROC-AUC", "mrp": "mRP"}


def report(work: Work, folder: Path, systems: Sequence[str]) -> None:
    """Write ``ast.md`` and ``ast.json`` of what is finished, and print the page.

    Raises:
        SystemExit: Nothing is.
    """
    cells: dict[str, dict[int, dict[str, Any]]] = {}
    for path, cell in work.cells("linking/*"):
        name, _, seed = path.stem.rpartition("-")
        cells.setdefault(name, {})[int(seed)] = cell
    found = {name: dict(sorted(cells[name].items())) for name in systems if name in cells}
    if not found:
        raise SystemExit(f"Nothing is finished in {work.folder}.")
    made_in = environments(cell for by_seed in found.values() for cell in by_seed.values())
    lines = [*_begin(found), *_tables(found), *_alphas(found), "## How it was made", ""]
    lines += [*environment_lines(made_in), "", "    python -m benchmarks.ast --shared FOLDER", ""]
    kept = {name: {str(seed): cell["result"] | {"settings": cell["settings"]} for seed, cell in by_seed.items()}
            for name, by_seed in found.items()}  # fmt: skip
    write_results("ast", lines, {"results": kept, "environments": made_in}, folder)


def metric(found: Mapping[int, Mapping[str, Any]], name: str) -> list[float]:
    """Give a number of each seed."""
    return [cell["result"]["metrics"][name] for cell in found.values()]


def _begin(found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> Iterator[str]:
    cell = next(iter(next(iter(found.values())).values()))
    counts, settings = cell["result"]["counts"], cell["settings"]
    yield "# Linking posts to articles: AST"
    yield ""
    yield (
        f"Tweets and fact-checked articles, split by article, anew for each seed: about {counts['posts']} posts and "
        f"{counts['articles']} articles to test on, {counts['links']} pairs of which belong together, among "
        f"{counts['posts'] * counts['articles']:,}. Word-vector encoders read {settings['words']} words of an article "
        f"(100-dimensional GloVe, fixed) and are trained for {settings['epochs']} epochs with the multi-similarity "
        f"triplet loss; MiniLM reads {settings['tokens']} tokens. BM25 and TF-IDF read all, and their frequencies are "
        "those of the test texts. After ± is the standard deviation over seeds. (In parentheses: the paper's, on other "
        "data, with 300-dimensional vectors.)"
    )
    yield ""


def _tables(found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> Iterator[str]:
    ordered = sorted(found, key=lambda name: -float(np.mean(metric(found[name], "map"))))
    yield "## Averages"
    yield ""
    rows = []
    for name in ordered:
        cells = [
            mean_deviation(metric(found[name], key)) + (f" ({AVERAGES[name][key]:.1f})" if name in AVERAGES else "")
            for key in TITLES
        ]
        taken = [mean_deviation(metric(found[name], f"{kind}@cosine{THRESHOLD}")) for kind in ("precision", "recall")]
        no_cosine = name == "BM25"
        rows.append([name, *cells, *([""] * 2 if no_cosine else taken), str(len(found[name]))])
    header = ["", *TITLES.values(), f"precision, cosine of {THRESHOLD}", "recall", "seeds"]
    yield markdown_table(header, rows)
    yield ""
    yield "## r-Precision"
    yield ""
    yield "Pairs are retrieved in the paper's shares of all that belong together; the columns have its numbers of them."
    yield ""
    rows = []
    for name in ordered:
        theirs = R_PRECISION.get(name, {})
        cells = []
        for rank in PRINTED_RANKS:
            values = [
                cell["result"]["r_precision"][str(scaled_rank(rank, cell["result"]["counts"]["links"]))]
                for cell in found[name].values()
            ]
            cells.append(mean_deviation(values) + (f" ({theirs[rank]:.1f})" if theirs else ""))
        rows.append([name, *cells])
    yield markdown_table(["", *(f"{rank:,}" for rank in PRINTED_RANKS)], rows)
    yield ""


def _alphas(found: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> Iterator[str]:
    if "AST" not in found:
        return
    yield "## Sparsity of AST's heads"
    yield ""
    yield "Alpha after training, the mean over seeds (Figure 3); all begin at 1.5."
    yield ""
    rows = []
    for part in ("ring", "star"):
        alphas = np.array([cell["result"]["alpha"][part] for cell in found["AST"].values()])
        rows.append([part, *(mean_deviation(column, 2, 1) for column in alphas.T)])
    yield markdown_table(["", *(f"head {number + 1}" for number in range(len(rows[0]) - 1))], rows)
    yield ""
