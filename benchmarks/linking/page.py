"""The page: AST's tables as they came out here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grid.work import Work
from benchmarks.linking.figures import draw_alphas, draw_map, draw_sparsity
from benchmarks.linking.printed import AVERAGES, R_PRECISION
from benchmarks.linking.sparsity import CLOSED, TITLES, expected_sum, measure
from benchmarks.pages import write_results
from benchmarks.papers.linking import PRINTED_RANKS, THRESHOLD, scaled_rank
from benchmarks.records import environment_lines, environments, mean_deviation
from simlte_st.evaluation.table import markdown_table

METRICS = {"map": "mAP", "roc_auc": "ROC-AUC", "mrp": "mRP"}


def report(work: Work, folder: Path, systems: Sequence[str]) -> None:
    """Write ``ast.md``, ``ast.json`` and the figures of what is finished, and print the page."""
    cells: dict[str, dict[int, dict[str, Any]]] = {}
    for path, cell in work.cells("linking/*"):
        name, _, seed = path.stem.rpartition("-")
        cells.setdefault(name, {})[int(seed)] = cell
    found = {name: dict(sorted(cells[name].items())) for name in systems if name in cells}
    if not found:
        raise SystemExit(f"Nothing is finished in {work.folder}.")
    made_in = environments(cell for by_seed in found.values() for cell in by_seed.values())
    sparsity = measure()
    folder.mkdir(parents=True, exist_ok=True)
    if "AST" in found:
        draw_alphas(_by_part(found["AST"]), folder / "ast_alphas.svg")
        draw_map(next(iter(found["AST"].values()))["result"]["map"], folder / "ast_map.svg")
    draw_sparsity(sparsity, folder / "ast_sparsity.svg")
    kept = {
        name: {str(seed): cell["result"] | {"settings": cell["settings"]} for seed, cell in by_seed.items()}
        for name, by_seed in found.items()
    }
    write_results("ast", {"results": kept, "sparsity": sparsity, "environments": made_in}, folder)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of what is finished."""
    found = {
        name: {int(seed): {"result": result, "settings": result["settings"]} for seed, result in by_seed.items()}
        for name, by_seed in record["results"].items()
    }
    lines = [*_begin(found), *_tables(found)]
    if "AST" in found:
        lines += _alphas(found["AST"])
    lines += _sparsity(record["sparsity"])
    lines += ["## How it was made", "", *environment_lines(record["environments"]), ""]
    return "\n".join([*lines, "    python -m benchmarks.ast --shared FOLDER", ""])


def metric(found: Mapping[int, Mapping[str, Any]], name: str) -> list[float]:
    """Return a number of each seed."""
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
            for key in METRICS
        ]
        taken = [mean_deviation(metric(found[name], f"{kind}@cosine{THRESHOLD}")) for kind in ("precision", "recall")]
        no_cosine = name == "BM25"
        rows.append([name, *cells, *([""] * 2 if no_cosine else taken), str(len(found[name]))])
    header = ["", *METRICS.values(), f"precision, cosine of {THRESHOLD}", "recall", "seeds"]
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


def _by_part(found: Mapping[int, Mapping[str, Any]]) -> dict[str, list[list[float]]]:
    """Return the alphas of each training, for the ring and the star."""
    return {part: [cell["result"]["alpha"][part] for cell in found.values()] for part in ("ring", "star")}


def _alphas(found: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
    yield "## Sparsity of AST's heads"
    yield ""
    yield "Alpha after training, the mean over seeds (Figure 3); all begin at 1.5."
    yield ""
    parts = {part: np.array(alphas) for part, alphas in _by_part(found).items()}
    rows = [[part, *(mean_deviation(column, 2, 1) for column in alphas.T)] for part, alphas in parts.items()]
    yield markdown_table(["", *(f"head {number + 1}" for number in range(len(rows[0]) - 1))], rows)
    yield ""
    yield "![alpha of each head](ast_alphas.svg)"
    yield ""
    yield (
        "Posts about the most posted test articles, first split, by t-SNE of AST's vectors (Figure 2): "
        "posts about one article should lie together."
    )
    yield ""
    yield "![map of posts](ast_map.svg)"
    yield ""


def _sparsity(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Softmax and entmax as a text grows"
    yield ""
    yield (
        "Scores drawn uniformly from -1 to 1, as in Appendix A; in parentheses the closed form for many tokens "
        "(`benchmarks/linking/sparsity.py`). The appendix is right that the denominator of softmax grows as 1.1752 a "
        "token. Weights must shrink with any function, as their sum is 1; but entmax's largest ones shrink as the "
        "root of the length, or its two thirds, and most tokens have none."
    )
    yield ""
    header = ["tokens", "denominator of softmax", *(f"with weight, {title}" for title in TITLES.values())]
    header += [f"largest weight, {title}" for title in TITLES.values()]
    table = []
    for row in rows:
        size = row["tokens"]
        cells = [f"{size:,}", f"{row['sum']:,.1f} ({expected_sum(size):,.1f})"]
        cells += [f"{row[name]['weighted']:,.1f} ({CLOSED[name][0](size):,.1f})" for name in TITLES]
        cells += [f"{row[name]['largest']:.4f} ({CLOSED[name][1](size):.4f})" for name in TITLES]
        table.append(cells)
    yield markdown_table(header, table)
    yield ""
    yield "![softmax and entmax](ast_sparsity.svg)"
    yield ""
