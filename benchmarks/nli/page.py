"""The page: TA-SBERT's tables and sweeps as they came out here, and which of the paper's claims hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from benchmarks.grid.work import Work
from benchmarks.nli.printed import AVERAGE, SIMILARITY, TRANSFER
from benchmarks.nli.sweeps import draw_sweeps, sweeps
from benchmarks.nli.tasks import FOLDS, SENTEVAL, STS, load_labelled
from benchmarks.nli.training import BATCH, ROWS
from benchmarks.pages import write_results
from benchmarks.records import environment_lines, environments, mean_deviation
from simlte_st.evaluation.table import markdown_table

METRICS = ("pearson", "spearman", "accuracy")
Seeds = dict[int, dict[str, Any]]
"""What came out of each training of a row, by seed."""

CLAIMS = (
    ("Base form conversion alone changes nothing", "+ form", "none"),
    ("Token attention helps", "+ att", "none"),
    ("Conversion helps beside token attention", "+ form + att", "+ att"),
    ("The reconstruction loss helps beside token attention", "+ att + recon", "+ att"),
    ("All three together help", "+ form + att + recon", "none"),
)
"""What the paper says, the row that it says it of, and the row that it is compared with."""


MARGIN = 1.0
"""Points: a difference that surely is smaller than that is none."""


def report(work: Work, shared: Path, folder: Path) -> None:
    """Write ``ta_sbert.md``, ``ta_sbert.json`` and the figures of what is finished, and print the page."""
    cells = {str(path.with_suffix("")): cell for pattern in ("*/*", "*/*/*") for path, cell in work.cells(pattern)}
    if not cells:
        raise SystemExit(f"Nothing is finished in {work.folder}.")
    made_in = environments(cells.values())
    kept = {
        name: cell["result"] | {"settings": cell["settings"], "environment": made_in.index(cell["environment"])}
        for name, cell in sorted(cells.items())
    }
    record: dict[str, Any] = {"results": kept, "environments": made_in}
    if any(name.startswith("rows/") for name in cells):
        record["tasks"] = _tasks(shared, next(iter(cells.values()))["settings"]["transfer_texts"])
    draw_sweeps(kept, folder)
    write_results("ta_sbert", record, folder)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of what is finished."""
    made_in = record["environments"]
    results = dict(sorted(record["results"].items(), key=lambda each: (each[0].count("/"), each[0])))
    cells = {name: {**cell, "environment": made_in[cell["environment"]]} for name, cell in results.items()}
    lines = [*_begin(next(iter(cells.values()))["settings"], rates_of(cells))]
    if "tasks" in record:
        lines += [record["tasks"], ""]
    lines += [*_bases(results), *sweeps(results), *_conversion(results)]
    lines += ["## How it was made", "", *environment_lines(made_in), "", *made_where(cells, made_in)]
    return "\n".join([*lines, "    " + _command(cells), ""])


def rates_of(cells: Mapping[str, Any]) -> list[float]:
    """Return the learning rates of the rows, and of nothing else."""
    return sorted({cell["settings"]["learning_rate"] for name, cell in cells.items() if name.startswith("rows/")})


def _begin(settings: Mapping[str, Any], rates: Sequence[float]) -> Iterator[str]:
    yield "# TA-SBERT's three parts"
    yield ""
    pairs = "all pairs" if settings["pairs"] is None else f"{settings['pairs']:,} pairs"
    yield (
        f"Each row is trained on {pairs} of SNLI's development part, once, {BATCH} pairs of like length a step, with "
        "the softmax objective; everything but the encoder learns at 1.5 times its rate, as in the paper. The paper "
        "trains on 942,000 pairs (its numbers for BERT-base stand in parentheses). After ± is the standard deviation "
        "over trainings."
    )
    if rates:
        yield f"The encoder's learning rate is {', '.join(f'{rate:g}' for rate in rates)} (the paper: 2e-05)."
    for key, what in (("sts_pairs", "set of sentence similarity"), ("transfer_texts", "task of SentEval")):
        if settings[key] is not None:
            yield f"Of each {what} at most {settings[key]:,} examples are read, drawn once."
    yield ""


def _tasks(shared: Path, most: int | None) -> str:
    """Return how many texts the tasks of SentEval have here, and which task of the paper's is not here."""
    said = []
    for name in SENTEVAL:
        task = load_labelled(shared, name, most)
        count = len(task.labels)
        said.append(f"{name} {task.learn:,} / {count - task.learn:,}" if task.learn else f"{name} {count:,}")
    missing = ", ".join(name for name in TRANSFER["none"] if name not in (*SENTEVAL, AVERAGE))
    return (
        f"SentEval's texts to train / test a classifier on ({FOLDS} folds where there is one number): "
        f"{', '.join(said)}. {missing}, which the paper has too, is missing here; the paper's means are given without "
        "it."
    )


def rows_of(results: Mapping[str, Any], base: str) -> dict[str, Seeds]:
    """Return the trainings of a base, by row and seed."""
    found: dict[str, Seeds] = {}
    for name, result in results.items():
        part, _, rest = name.partition("/")
        of, _, stem = rest.partition("/")
        row, _, seed = stem.rpartition("-")
        if part == "rows" and of == base:
            found.setdefault(row, {})[int(seed)] = result
    return {row: dict(sorted(found[row].items())) for row in ROWS if row in found}


def values_of(result: Mapping[str, Any], metric: str) -> dict[str, float]:
    """Return a result's numbers in percent, by set, and their mean."""
    if metric == "accuracy":
        found = {name: 100 * result["senteval"][name] for name in SENTEVAL}
    else:
        found = {name: 100 * result["sts"][name][metric] for name in STS}
    return {**found, AVERAGE: float(np.mean(list(found.values())))}


def printed_of(row: str, metric: str) -> dict[str, float]:
    """Return what the paper prints for a row, in the mean only of tasks that are here."""
    if metric == "accuracy":
        found = {name: TRANSFER[row][name] for name in SENTEVAL}
        return {**found, AVERAGE: float(np.mean(list(found.values())))}
    return {name: cell[metric] for name, cell in SIMILARITY[row].items()}


def _bases(results: Mapping[str, Any]) -> Iterator[str]:
    bases = dict.fromkeys(name.split("/")[1] for name in results if name.startswith("rows/"))
    for base in bases:
        rows = rows_of(results, base)
        counts = {row: len(trained) for row, trained in rows.items()}
        most = max(counts.values())
        fewer = "".join(f", of `{row}` {count}" for row, count in counts.items() if count < most)
        first = next(iter(next(iter(rows.values())).values()))
        yield f"## From {base}"
        yield ""
        yield (
            f"{most} training{'s' * (most > 1)} a row{fewer}. NLI after training: accuracy "
            f"{100 * first['nli']['test']['accuracy']:.1f}% on pairs of other images (first row, first training)."
        )
        yield ""
        baselines = {"TF-IDF": results.get("baselines/TF-IDF"), "not trained": results.get(f"baselines/{base}")}
        untrained = {name: found for name, found in baselines.items() if found}
        for metric, title in zip(METRICS, ("Pearson", "Spearman", "Accuracy, SentEval"), strict=True):
            yield f"{title}, times 100:" if metric != "accuracy" else f"{title}, %:"
            yield ""
            yield score_table(rows, untrained, metric)
            yield ""
            yield from tfidf_ahead(rows, untrained, metric)
        yield "What the paper claims, as differences of the means, paired by seed, with 95% t intervals over seeds:"
        yield ""
        yield claim_table(rows)
        yield ""
        yield (
            f"That something changes nothing holds where the whole interval lies within {MARGIN:g} point of 0. "
            "A training with conversion and one without begin with the same weights and read the same batches, but "
            "draw other dropout from the first converted text on: there, pairing by seed takes little noise away. "
            + changed(results)
        )
        yield ""


def score_table(rows: Mapping[str, Seeds], untrained: Mapping[str, Any], metric: str) -> str:
    """Lay out a metric: the baselines, then the rows with the paper's numbers."""
    names = [*(SENTEVAL if metric == "accuracy" else STS), AVERAGE]
    lines = []
    for name, result in untrained.items():
        values = values_of(result, metric)
        lines.append([name, *(f"{values[column]:.1f}" for column in names)])
    for row, trained in rows.items():
        found = [values_of(result, metric) for result in trained.values()]
        theirs = printed_of(row, metric)
        cells = [
            mean_deviation([values[column] for values in found], factor=1) + f" ({theirs[column]:.1f})"
            for column in names
        ]
        lines.append([row, *cells])
    return markdown_table(["", *names], lines)


def tfidf_ahead(rows: Mapping[str, Seeds], untrained: Mapping[str, Any], metric: str) -> Iterator[str]:
    """Return the rows that TF-IDF is ahead of in the mean, or an empty string."""
    of_all = {**{name: {0: result} for name, result in untrained.items()}, **rows}
    means = {
        row: np.mean([values_of(result, metric)[AVERAGE] for result in trained.values()])
        for row, trained in of_all.items()
    }
    tfidf = means.pop("TF-IDF", -np.inf)
    behind = [f"`{row}`" for row, mean in means.items() if mean < tfidf]
    if behind:
        yield f"TF-IDF is ahead, in the mean, of {'all rows' if len(behind) == len(means) else ', '.join(behind)}."
        yield ""


def changed(results: Mapping[str, Any]) -> str:
    """Return what share of the texts of the tables' sets conversion changes, of those sets where that was counted."""
    found = {name: results.get(f"conversion/{name}") for name in ("SNLI", *STS, *SENTEVAL)}
    shares = [f"{name} {changed_share(result)}" for name, result in found.items() if result]
    return f"Of texts that are trained and measured on here, conversion changes: {', '.join(shares)}." if shares else ""


def changed_share(result: Mapping[str, Any]) -> str:
    """Write the share of a set's texts that conversion changes."""
    return f"{100 * result['changed'] / result['texts']:.1f}%"


def claim_table(rows: Mapping[str, Seeds]) -> str:
    """Lay out the paper's claims beside what was measured."""
    lines = []
    for claim, row, against in CLAIMS:
        if row not in rows or against not in rows:
            continue
        for metric in METRICS:
            theirs = printed_of(row, metric)[AVERAGE] - printed_of(against, metric)[AVERAGE]
            differences = paired(rows[row], rows[against], metric)
            interval = t_interval(differences)
            ours = f"{differences.mean():+.2f}" + (f" [{interval[0]:+.2f}, {interval[1]:+.2f}]" if interval else "")
            lines.append([claim, metric, f"{theirs:+.2f}", ours, verdict(interval, row == "+ form")])
    return markdown_table(["claim", "mean", "paper", "here", "holds here?"], lines)


def paired(ours: Seeds, theirs: Seeds, metric: str) -> np.ndarray:
    """Return the differences of the means over sets, for the seeds that both have."""
    seeds = [seed for seed in ours if seed in theirs]
    both = [[values_of(side[seed], metric)[AVERAGE] for side in (ours, theirs)] for seed in seeds]
    return np.array([first - second for first, second in both])


def t_interval(values: np.ndarray) -> tuple[float, float] | None:
    """Return the 95% t interval of a mean; None of a single value."""
    if len(values) < 2:
        return None
    low, high = ttest_1samp(values, 0.0).confidence_interval(0.95)
    return float(low), float(high)


def verdict(interval: tuple[float, float] | None, nothing: bool) -> str:
    """Return whether a claim holds: that something helps, or that it changes nothing."""
    if interval is None:
        return "one training"
    low, high = interval
    least = MARGIN if nothing else 0.0
    if nothing and -least < low and high < least:
        return "yes"
    if low > least:
        return "no: it helps" if nothing else "yes"
    return "no: it hurts" if high < -least else "not to be told"


def _conversion(results: Mapping[str, Any]) -> Iterator[str]:
    found = {name.partition("/")[2]: result for name, result in results.items() if name.startswith("conversion/")}
    if not found:
        return
    yield "## Base form conversion by itself"
    yield ""
    yield "Medians of three turns in one process; embedding in float32, at most 128 tokens a text."
    yield ""
    rows = []
    for name, result in found.items():
        megabytes = result["characters"] / result["texts"] / result["convert"] / 1e6
        rows.append(
            [
                name,
                f"{result['texts']:,}",
                f"{result['characters'] / result['texts']:,.0f}",
                changed_share(result),
                f"{megabytes:.1f}",
                f"{result['convert'] / result['tokenize']:.2f}",
                f"{100 * result['convert'] / result['embed']:.1f}%",
            ]
        )
    yield markdown_table(
        [
            "texts",
            "number",
            "characters, mean",
            "changed",
            "million characters a second",
            "time, of tokenizing",
            "of embedding",
        ],
        rows,
    )
    yield ""


def made_where(cells: Mapping[str, Any], made_in: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return where each part was made, if not all were made on one machine."""
    if len(made_in) < 2:
        return
    for place in range(1, len(made_in)):
        names = (re.sub(r"-\d+$", "", name) for name, cell in cells.items() if cell["environment"] == made_in[place])
        yield f"Made in number {place + 1} of these: {', '.join(f'`{name}`' for name in dict.fromkeys(names))}."
    if any(each["dtype"] == "bfloat16" and each["cpu_bf16"] == "no" for each in made_in):
        yield (
            "A CPU without products of bfloat16 matrices (`cpu_bf16` no) multiplies what was rounded to bfloat16 and "
            "sums in float32."
        )
    yield ""


def _command(cells: Mapping[str, Any]) -> str:
    settings = next(iter(cells.values()))["settings"]
    rates = rates_of(cells)
    bases = dict.fromkeys(cell["settings"]["base"]["name"] for name, cell in cells.items() if name.startswith("rows/"))
    swept = {
        cell["settings"]["base"]["name"] for name, cell in cells.items() if name.startswith(("rates/", "weights/"))
    }
    options = [f"--bases {' '.join(sorted(bases, key=lambda base: base not in swept))}"] if bases else []
    for name in ("pairs", "test_pairs", "sts_pairs", "transfer_texts"):
        if settings[name] is not None:
            options.append(f"--{name.replace('_', '-')} {settings[name]}")
    options += [f"--learning-rate {rate:g}" for rate in rates]
    options += ["--bf16"] if settings["bf16"] else []
    return " ".join(["python -m benchmarks.ta_sbert --shared FOLDER", *options])
