"""The page of the papers' experiments, with the papers' numbers in parentheses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.citation import WORDS, link_table
from benchmarks.grid import printed
from benchmarks.grid.experiments import CLASSIFICATION, FEW, FULL
from benchmarks.grid.printed import DATA
from benchmarks.grid.results import Results
from benchmarks.grid.systems import DOCSPLIT, SHOTS, SIMCSE, SYSTEMS, WITHOUT_MLM
from benchmarks.pages import document
from benchmarks.papers.parts_of_speech import attention_table
from benchmarks.records import mean_deviation, with_interval
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
"""By architecture, the row of the papers' tables for each system."""

HEADLINE = {"BERT": SIMCSE, "Longformer": "base-cls"}
"""By architecture, the reference of the papers' headline; see :data:`benchmarks.grid.printed.COMPARED`."""

SHOWN = (
    "steps", "batch_size", "tokens", "learning_rate", "dtype", "read", "train_documents", "test_documents", "head",
    "draws",
)  # fmt: skip
"""Settings shown on the page."""

GAIN_HEADERS = ("few-shot [95%]", "all documents [of each seed]")


def architecture(settings: Mapping[str, Any]) -> str:
    """Return the architecture that the settings belong to."""
    return "Longformer" if "longformer" in settings["preset"] else "BERT"


def gains(results: Results, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the headline of every system, against the papers' reference."""
    reference = HEADLINE[architecture(settings)]
    names = {name for experiment in CLASSIFICATION for name in results.systems(experiment)} - {reference}
    wanted = [name for name in SYSTEMS if name in names and SYSTEMS[name].group != "ablations"]
    return {
        f"{name} over {reference}": {e: results.gain(e, name, reference) for e in CLASSIFICATION} for name in wanted
    }


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    settings, results = record["settings"], Results(record["results"])
    of = architecture(settings)
    corpus = settings["corpus"] or {"name": "nothing", "documents": 0}
    shown = ", ".join(f"{name.replace('_', ' ')} {settings[name] or 'all'}" for name in SHOWN)
    sets = [each["identity"] for each in record["data"].values() if "train" in each["identity"]]
    drawn = ", ".join(f"{each['name']} {each['train']:,} and {each['test']:,}" for each in sets)
    command = f"python -m benchmarks.paper --scale {settings['scale']} --shared FOLDER --work WORK"
    blocks = [
        "# The papers' experiments",
        f"All systems start from {settings['base']['name']} and train on {corpus['documents']:,} "
        f"documents of {corpus['name']} with the papers' preset; pooling [CLS], {shown}. TF-IDF and BM25 "
        f"read whole texts. Training and test documents: {drawn}. ± gives the standard deviation over "
        "seeds and draws. Numbers in parentheses are the papers' own, from their data sets and bases; "
        "they were not measured here.",
        f"## Gain over {SYSTEMS[HEADLINE[of]].title}",
        "Mean relative gain in macro-F1 over the data sets that both systems have, computed as in the "
        "papers' headline. Few-shot intervals come from a paired bootstrap over seeds and draws; with all "
        "documents, they are the smallest and largest gain of a seed. Systems with fewer seeds are compared "
        "on those seeds alone.",
        gain_table(record["gains"], of),
        gain_by_data_table(record["gains"], of),
    ]
    titles = {FULL: "All documents", FEW: "A few documents per class"}
    few = f"5 documents per class ({', '.join(f'{number} for {name}' for name, number in SHOTS.items())})"
    for experiment, about in ((FULL, "all documents"), (FEW, few)):
        blocks += [f"## {titles[experiment]}", f"A probe on frozen embeddings of {about}."]
        for metric, name in (("macro_f1", "Macro-F1:"), ("accuracy", "Accuracy:")):
            blocks += [name, score_table(results, experiment, metric, PRINTED[of])]
    blocks += [*_citations(results), *_analyses(results, settings), *_ablations(results)]
    overrides = "".join(f" {option}" for option in settings["overrides"])
    return document(*blocks, machines=record["environments"], command=command + overrides)


def gain_table(found: Mapping[str, Mapping[str, Any]], of: str = "BERT") -> str:
    """Tabulate the headline gains of an architecture."""
    rows = []
    for pair, kinds in found.items():
        name, _, other = pair.partition(" over ")
        known = [kind for kind in kinds.values() if kind]
        if known:
            values = [gain_text(kinds[experiment]) for experiment in CLASSIFICATION]
            values += [f"{len(known[-1][key])}" for key in ("of_each", "seeds")]
            rows.append([SYSTEMS[name].title, SYSTEMS[other].title, *values])
    theirs = [f"{100 * printed.papers_gain(experiment, of):+.1f}%" for experiment in CLASSIFICATION]
    rows.append(["DocSplit, as printed in the papers", printed.COMPARED[of][1], *theirs, f"{len(DATA)}", ""])
    return markdown_table(["system", "over", *GAIN_HEADERS, "data sets", "seeds"], rows)


def gain_by_data_table(found: Mapping[str, Mapping[str, Any]], of: str = "BERT") -> str:
    """Tabulate DocSplit's gain on each data set, or that of DocSplit without MLM if only that was trained."""
    by_name = {name: found.get(f"{name} over {HEADLINE[of]}", {}) for name in (DOCSPLIT, WITHOUT_MLM)}
    name = DOCSPLIT if any(by_name[DOCSPLIT].values()) else WITHOUT_MLM
    ours = {experiment: (by_name[name].get(experiment) or {"of_each": {}})["of_each"] for experiment in CLASSIFICATION}
    theirs = {experiment: printed.papers_gains(experiment, of) for experiment in CLASSIFICATION}
    rows = [
        [data, *(f"{gain_text(ours[e].get(data))} ({100 * theirs[e][data]:+.1f}%)".strip() for e in CLASSIFICATION)]
        for data in DATA
        if any(data in by_data for by_data in ours.values())
    ]
    return markdown_table([f"gain of {SYSTEMS[name].title}", *GAIN_HEADERS], rows) if rows else ""


def gain_text(found: Mapping[str, Any] | None) -> str:
    """Format a gain and its interval; None gives an empty cell."""
    if found is None:
        return ""
    ends = [f"{100 * end:+.1f}" for end in found["interval"] or ()]
    return f"{100 * found['gain']:+.1f}%" + (f" [{', '.join(ends)}]" if ends else "")


def score_table(results: Results, experiment: str, metric: str, answers: Mapping[str, str] | None = None) -> str:
    """Tabulate scores by system and data set, with the papers' in parentheses for the rows in ``answers``."""
    place, table = ("accuracy", "macro_f1").index(metric), printed.TABLES[experiment] if answers else {}
    scores = results.scores.get((experiment, metric), {})
    data = [name for name in DATA if any(name in of_system for of_system in scores.values())]

    def printed_score(row: str, name: str) -> str:
        return f"({table[row][name][place]:.1f})" if name in table.get(row, {}) else ""

    rows, shown = [], set()
    for system in results.systems(experiment):
        if SYSTEMS[system].group != "ablations":
            theirs = (answers or {}).get(system, "")
            shown.add(theirs)
            drawn = {
                name: [scores[system][name][seed] for seed in sorted(scores[system][name])] for name in scores[system]
            }
            ours = {name: mean_deviation(np.concatenate(values)) for name, values in drawn.items()}
            rows.append(
                [SYSTEMS[system].title, *(f"{ours.get(n, '')} {printed_score(theirs, n)}".strip() for n in data)]
            )
    rows += [[f"papers: {row}", *(printed_score(row, n) for n in data)] for row in table if row not in shown]
    return markdown_table(["", *data], rows)


def _by_run(found: Iterable[tuple[str, str, int, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Group results by system in table order, with first-words variants after whole texts."""
    gathered: dict[str, list[dict[str, Any]]] = {}
    every = list(found)
    for name, system in SYSTEMS.items():
        for stem, title in ((name, system.title), (f"{name}-{WORDS}", f"{system.title}, first {WORDS} words")):
            if here := [result for _, named, _, result in every if named == stem]:
                gathered[title] = here
    return gathered


def _citations(results: Results) -> list[str]:
    runs = _by_run(results.experiment_cells("citations"))
    blocks = []
    if runs:
        metrics = ("recall@10", "recall@100", "mrr")
        rows = [[name, *(with_interval(of[0]["retrieval"], metric) for metric in metrics)] for name, of in runs.items()]
        blocks += [
            "## Citations",
            "Each citing paper queries the cited papers, excluding itself; means over citing papers with 95% "
            "intervals, for the first training.",
            markdown_table(["", "R@10", "R@100", "MRR"], rows),
            "Accuracy of link classification on balanced pairs; parts are split by links, or by papers (no test "
            "paper occurs in training). The head is the Long Range Arena's on [a, b, a * b, a - b]; the threshold "
            "uses the score alone.",
            link_table(runs),
            printed.CITATION,
        ]
    return blocks


def _analyses(results: Results, settings: Mapping[str, Any]) -> list[str]:
    redundancies = {name.partition("/")[2]: of for name, of in results.cells.items() if name.startswith("redundancy/")}
    blocks = []
    if redundancies:
        rows = []
        for place, (length, theirs) in enumerate(printed.REDUNDANCY.items()):
            row = [length]
            for data, of in redundancies.items():
                mean = [*of["buckets"], of["all"]][place]["mean"]
                ours, paper = "" if mean is None else f"{mean:.2f}", f" ({theirs[data]:.2f})" if data in theirs else ""
                row.append(f"{ours}{paper}".strip())
            rows.append(row)
        blocks += [
            "## Redundancy",
            "Number of nouns and verbs divided by the number of distinct ones, by document length, for at most "
            f"{settings['redundancy_documents']:,} documents of a data set. The equation cannot produce the "
            "papers' 29 for FakeNews.",
            markdown_table(["words", *redundancies], rows),
        ]
    for name, found in results.cells.items():
        if name.startswith("attention/"):
            data = name.partition("/")[2]
            blocks += [f"## Attention from [CLS] on {data}", attention_table(found), printed.ATTENTION]
    return blocks


def _ablations(results: Results) -> list[str]:
    ablations = [SYSTEMS[WITHOUT_MLM], *(system for system in SYSTEMS.values() if system.group == "ablations")]
    measured = {name for experiment in CLASSIFICATION for name in results.systems(experiment)}
    shown = [system for system in ablations if {system.name, system.against} <= measured]
    columns = [(experiment, data) for experiment in CLASSIFICATION for data in ("20news", "bbc")]
    rows = [
        [
            "MLM weight: 0" if system.name == WITHOUT_MLM else system.title,
            SYSTEMS[system.against].title,
            *(results.difference(experiment, system.name, system.against, data) for experiment, data in columns),
        ]
        for system in shown
    ]
    if len(rows) < 2:
        return []
    header = ["changed", "against", *(f"{'all' if e == FULL else e}, {data}" for e, data in columns)]
    return [
        "## Ablations",
        "DocSplit with one change and the same budget of documents: difference in macro-F1, in points, "
        "paired by draw, with a bootstrap interval over draws. DocSplit itself: split ratio 0.5, "
        "sentences, random window, MLM weight 0.1 in a separate pass, pooling [CLS], temperature 0.05.",
        markdown_table(header, rows),
    ]
