"""The page's tables, each from what is finished; the papers' numbers in parentheses beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.citation import SPLITS, WORDS
from benchmarks.grid import printed
from benchmarks.grid.experiments import citations, mteb, redundancy, similarity
from benchmarks.grid.experiments.classification import FEW, FULL
from benchmarks.grid.results import KINDS, Results, run_of
from benchmarks.grid.sets import ALL, CLASSIFICATION
from benchmarks.grid.systems import ABLATIONS, DOCSPLIT, SIMCSE, SYSTEMS, WITHOUT_MLM
from benchmarks.records import difference, mean_deviation, with_interval
from benchmarks.relative_gain import papers_gain, papers_gains
from simlte_st.evaluation import bootstrap_interval
from simlte_st.evaluation.table import markdown_table

PRINTED: dict[str, dict[str, str]] = {
    "BERT": {
        "base-cls": "BERT",
        "longformer": "LongFormer",
        "bigbird": "BigBird",
        "instructor": "INSTRUCTOR",
        SIMCSE: "SimCSE",
        "simcse-long": "SimCSE_long",
        "contrastive-tension": "CT-BERT",
        "contriever": "Contriever",
        DOCSPLIT: "DocSplit_bert",
    },
    "Longformer": {"base-cls": "LongFormer", "bigbird": "BigBird", DOCSPLIT: "DocSplit_long"},
}
"""By architecture, the row of the papers' tables that a system answers to."""

TABLES = {FULL: printed.CLASSIFICATION, FEW: printed.FEW_SHOT}
SETTINGS = {FULL: "full", FEW: "few-shot"}
"""What :mod:`benchmarks.relative_gain` calls a kind."""
REFERENCES = (SIMCSE, "simcse-long")
GAIN_HEADERS = ("few-shot [95%]", "all documents [of each seed]")
HEADLINE = {"BERT": SIMCSE, "Longformer": "base-cls"}
"""By architecture, what the papers' headline compares DocSplit with; see :data:`benchmarks.grid.printed.COMPARED`."""


def title(name: str) -> str:
    """Return what tables call a system."""
    return SYSTEMS[name].title


def architecture(results: Results) -> str:
    """Return the headlines of the papers that a grid can answer."""
    return "Longformer" if "longformer" in results.settings["preset"] else "BERT"


def gains(results: Results) -> dict[str, dict[str, dict[str, Any] | None]]:
    """Compute the headline of every system, against the papers' reference and both SimCSEs: reference, system, kind."""
    names = [name for name in SYSTEMS if any(name in results.systems(kind) for kind in KINDS)]
    wanted = [name for name in names if SYSTEMS[name].group in ("untrained", "trained")]
    return {
        f"{name} over {reference}": {kind: results.gain(kind, name, reference) for kind in KINDS}
        for reference in dict.fromkeys((HEADLINE[architecture(results)], *REFERENCES))
        for name in wanted
        if name != reference
    }


def gain_table(found: Mapping[str, Mapping[str, Any]], of: str = "BERT") -> str:
    """Lay out the headline of an architecture."""
    rows = []
    for pair, kinds in found.items():
        name, _, other = pair.partition(" over ")
        if any(kinds.values()):
            last = [kind for kind in kinds.values() if kind is not None][-1]
            count = [f"{len(last[key])}" for key in ("of_each", "seeds")]
            rows.append([title(name), title(other), *(gain_text(kinds[kind]) for kind in KINDS), *count])
    row = [f"{100 * papers_gain(SETTINGS[kind], of):+.1f}%" for kind in KINDS]
    rows.append(["DocSplit, as the papers print it", printed.COMPARED[of][1], *row, f"{len(printed.DATA)}", ""])
    return markdown_table(["system", "over", *GAIN_HEADERS, "data sets", "seeds"], rows)


def gain_by_data_table(found: Mapping[str, Mapping[str, Any]], of: str = "BERT") -> str:
    """Lay out DocSplit's gain on each data set, the papers' in parentheses; empty where there is none.

    Where DocSplit was trained without MLM only, it is that one's.
    """
    gained = {name: found.get(f"{name} over {HEADLINE[of]}", {}) for name in (DOCSPLIT, WITHOUT_MLM)}
    name = DOCSPLIT if any(gained[DOCSPLIT].values()) else WITHOUT_MLM
    kinds = gained[name]
    ours = {kind: kinds[kind]["of_each"] if kinds.get(kind) else {} for kind in KINDS}
    theirs = {kind: papers_gains(SETTINGS[kind], of) for kind in KINDS}
    rows = []
    for data in CLASSIFICATION:
        if any(data in by_data for by_data in ours.values()):
            cells = [f"{gain_text(ours[kind].get(data))} ({100 * theirs[kind][data]:+.1f}%)".strip() for kind in KINDS]
            rows.append([data, *cells])
    return markdown_table([f"gain of {title(name)}", *GAIN_HEADERS], rows) if rows else ""


def gain_text(found: Mapping[str, Any] | None) -> str:
    """Write a gain and its interval; nothing where there is none."""
    if found is None:
        return ""
    interval = found["interval"]
    between = "" if interval is None else f" [{100 * interval[0]:+.1f}, {100 * interval[1]:+.1f}]"
    return f"{100 * found['gain']:+.1f}%{between}"


def score_table(results: Results, kind: str, metric: str, papers: bool = True) -> str:
    """Lay out scores of a kind: a row a system, a column a data set; those of the papers too, or not."""
    place = ("accuracy", "macro_f1").index(metric)
    scores = results.scores[kind, metric]
    data = [name for name in CLASSIFICATION if any(name in scores[system] for system in scores)]
    answers, table = (PRINTED[architecture(results)], TABLES[kind]) if papers else ({}, {})
    rows = []
    for system in results.systems(kind, metric):
        if SYSTEMS[system].group == "ablations":
            continue
        row = [title(system)]
        theirs = table.get(answers.get(system, ""), {})
        for name in data:
            drawn = scores[system].get(name)
            ours = mean_deviation(np.concatenate([drawn[seed] for seed in sorted(drawn)])) if drawn else ""
            ours += " (c)" if SYSTEMS[system].contaminated(name) else ""
            row.append(f"{ours} ({theirs[name][place]:.1f})" if name in theirs else ours)
        rows.append(row)
    shown = {answers.get(system) for system in results.systems(kind, metric)}
    for theirs_name, theirs in table.items():
        if theirs_name not in shown:
            values = [f"({theirs[name][place]:.1f})" if name in theirs else "" for name in data]
            rows.append([f"papers: {theirs_name}", *values])
    return markdown_table(["", *data], rows)


def curve_table(results: Results) -> str:
    """Lay out the learning curve in macro-F1."""
    curve = results.curve("macro_f1")
    shots = sorted({number for points in curve.values() for number in points})
    rows = [
        [title(name), *(mean_deviation(points[number]) if number in points else "" for number in shots)]
        for name, points in curve.items()
    ]
    return markdown_table(["examples a class", *map(str, shots)], rows)


def by_run(found: Sequence[tuple[str, str, int, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Gather results by system, in the order of the tables, those of the first words behind the whole."""
    gathered: dict[str, list[dict[str, Any]]] = {}
    for name in SYSTEMS:
        for stem in (name, f"{name}-{WORDS}"):
            here = [result for _, system, _, result in found if system == stem]
            if here:
                gathered[title(name) + (f", first {WORDS} words" if stem != name else "")] = here
    return gathered


def retrieval_table(results: Results) -> str:
    """Lay out retrieval of cited papers; intervals are over citing papers."""
    found = by_run(results.of(citations.NAME))
    base = found.get(title("base-mean"))
    rows = []
    for name, runs in found.items():
        row = [name, *(_retrieved(runs, metric) for metric in ("recall@10", "recall@100", "mrr"))]
        gain = ""
        if base is not None and runs is not base and all("per_query" in run for run in (*runs, *base)):
            ours, theirs = (np.mean([run["per_query"]["recall@10"] for run in side], axis=0) for side in (runs, base))
            gain = difference(100 * (ours - theirs))
        rows.append([*row, gain])
    return markdown_table(["", "R@10", "R@100", "MRR", f"R@10 against {title('base-mean')}"], rows)


def _retrieved(runs: Sequence[Mapping[str, Any]], metric: str) -> str:
    if any("per_query" not in run for run in runs):  # of an earlier page, which keeps the interval of each run
        if len(runs) == 1:
            return with_interval(runs[0]["retrieval"], metric)
        return f"{100 * np.mean([run['retrieval'][metric] for run in runs]):.1f}"
    values = 100 * np.mean([run["per_query"][metric] for run in runs], axis=0)
    low, high = bootstrap_interval(values)
    return f"{values.mean():.1f} [{low:.1f}, {high:.1f}]"


def link_table(results: Results) -> str:
    """Lay out link classification: the head on two embeddings, and a threshold on their score alone."""
    rows = []
    for name, runs in by_run(results.of(citations.NAME)).items():
        row = [name]
        for split in SPLITS:
            for kind in ("head", "threshold"):
                values = [value for run in runs for value in run.get(kind, {}).get(split, ())]
                row.append(mean_deviation(values) if values else "")
        rows.append(row)
    return markdown_table(["", "by links: head", "threshold", "by papers: head", "threshold"], rows)


def similarity_table(results: Results) -> str:
    """Lay out correlations with people's judgement; with one run the interval is over documents."""
    rows = []
    for name, runs in by_run(results.of(similarity.NAME)).items():
        row = [name]
        for metric in ("pearson", "spearman"):
            text = mean_deviation([run[metric] for run in runs], digits=3, factor=1.0)
            low, high = (runs[0].get(f"{metric}_{end}") for end in ("low", "high"))
            row.append(text if len(runs) > 1 or low is None else f"{text} [{low:.3f}, {high:.3f}]")
        rows.append(row)
    return markdown_table(["", "Pearson", "Spearman"], rows)


def redundancies(results: Results) -> dict[str, dict[str, float]]:
    """Return redundancy by data set and length."""
    found: dict[str, dict[str, float]] = {}
    for data in ALL:
        cell = results.cells.get(f"results/{redundancy.NAME}/{data}")
        if cell is not None:
            result = cell["result"]
            buckets = zip([*printed.REDUNDANCY], [*result["buckets"], result["all"]], strict=True)
            found[data] = {length: bucket["mean"] for length, bucket in buckets if bucket["mean"] is not None}
    return found


def redundancy_table(results: Results) -> str:
    """Lay out redundancy, the papers' values in parentheses."""
    found = redundancies(results)
    rows = []
    for length, theirs in printed.REDUNDANCY.items():
        row = [length]
        for data, ours in found.items():
            cell = f"{ours[length]:.2f}" if length in ours else ""
            if data in theirs:
                wrong = "!" if (length, data) in printed.IMPOSSIBLE else ""
                cell = f"{cell} ({theirs[data]:.2f}{wrong})".strip()
            row.append(cell)
        rows.append(row)
    return markdown_table(["words", *found], rows)


def mteb_table(results: Results) -> str:
    """Lay out the main score of each task."""
    found = results.of(mteb.NAME)
    names = [name for name in SYSTEMS if any(system == name for _, system, _, _ in found)]
    rows = []
    for task in dict.fromkeys(task for task, _, _, _ in found):
        here = [(system, result) for place, system, _, result in found if place == task]
        row = [task, here[0][1]["main_score"]]
        for name in names:
            values = [result["main"] for system, result in here if system == name]
            row.append(mean_deviation(values) if values else "")
        rows.append(row)
    return markdown_table(["task", "score", *map(title, names)], rows)


def ablations(results: Results) -> list[dict[str, Any]]:
    """Compare each ablation with what it differs from in one thing, on each data set, draw by draw."""
    chosen = results.settings["ablation_data"] or CLASSIFICATION
    found = []
    for system in (SYSTEMS[WITHOUT_MLM], *ABLATIONS):
        factor, value = (system.factor, system.value) if system.factor else ("MLM weight", "0")
        record: dict[str, Any] = {"name": system.name, "factor": factor, "value": value, "against": system.against}
        for kind in KINDS:
            compared = {data: results.difference(kind, system.name, system.against, data) for data in chosen}
            record[kind] = {data: difference for data, difference in compared.items() if difference is not None}
        if any(record[kind] for kind in KINDS):
            found.append(record)
    return found


def ablation_table(found: Sequence[Mapping[str, Any]]) -> str:
    """Lay out the ablations: differences in macro-F1, in points."""
    columns = [(kind, data) for kind in KINDS for data in dict.fromkeys(d for each in found for d in each[kind])]
    rows = []
    for each in sorted(found, key=lambda each: [other["factor"] for other in found].index(each["factor"])):
        row = [f"{each['factor']}: {each['value']}", title(each["against"])]
        for kind, data in columns:
            found_here = each[kind].get(data)
            row.append("" if found_here is None else _difference(*found_here))
        rows.append(row)
    header = [f"{kind if kind == FEW else 'all'}, {data}" for kind, data in columns]
    return markdown_table(["changed", "against", *header], rows)


def _difference(mean: float, interval: Sequence[float] | None) -> str:
    return f"{mean:+.1f}" + ("" if interval is None else f" [{interval[0]:+.1f}, {interval[1]:+.1f}]")


def cost_table(results: Results) -> str:
    """Lay out what each training cost: the budget is one, the work is not."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for stem, cell in results.models.items():
        runs.setdefault(run_of(stem)[0], []).append(cell)
    rows = []
    for name in SYSTEMS:
        if name in runs and SYSTEMS[name].group == "trained":
            settings, made = runs[name][0]["settings"], [cell["result"] for cell in runs[name]]
            tokens = [
                f"{np.mean([run[key] for run in made]) / 1e3:,.0f}" for key in ("encoder_tokens", "decoder_tokens")
            ]
            seconds = np.mean([run["seconds"] for run in made])
            rows.append([title(name), f"{settings['steps']} x {settings['batch_size']}", *tokens, f"{seconds:.0f}"])
            rows[-1] += [f"{len(made)}"]
    return markdown_table(
        ["", "steps x documents", "encoder tokens (k)", "decoder tokens (k)", "seconds", "seeds"], rows
    )
