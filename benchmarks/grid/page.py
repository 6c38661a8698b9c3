"""The page of the papers' experiments, with the papers' numbers in parentheses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.citation import WORDS, link_table
from benchmarks.grid import printed
from benchmarks.grid.experiments import CLASSIFICATION, FEW, FULL
from benchmarks.grid.printed import DATA
from benchmarks.grid.results import Results
from benchmarks.grid.systems import DOCSPLIT, SHOTS, SIMCSE, SYSTEMS, WITHOUT_MLM
from benchmarks.pages import fill, retrieval_cells, table, with_printed
from benchmarks.papers.parts_of_speech import attention_table
from benchmarks.records import mean_deviation
from simlte_st.evaluation.table import markdown_table

PRINTED: dict[str, dict[str, str]] = {
    "BERT": {
        "base-cls": "BERT", "longformer": "LongFormer", "bigbird": "BigBird", "instructor": "INSTRUCTOR",
        SIMCSE: "SimCSE", "simcse-long": "SimCSE_long", "contrastive-tension": "CT-BERT", "contriever": "Contriever",
        DOCSPLIT: "DocSplit_bert",
    },
    "Longformer": {"base-cls": "LongFormer", "bigbird": "BigBird", DOCSPLIT: "DocSplit_long"},
}  # fmt: skip
"""By architecture, the row of the papers' tables for each system."""

HEADLINE = {"BERT": SIMCSE, "Longformer": "base-cls"}
"""By architecture, the reference of the papers' headline; see :data:`benchmarks.grid.printed.COMPARED`."""

GAIN_HEADERS = ("few-shot [95%]", "all documents [of each seed]")


def architecture(settings: Mapping[str, Any]) -> str:
    """Return the architecture that the settings belong to."""
    return "Longformer" if "longformer" in settings["preset"] else "BERT"


def gains(results: Results, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the headline of every system, against the papers' reference."""
    reference = HEADLINE[architecture(settings)]
    measured = {name for probe in CLASSIFICATION for name in results.systems(probe)} - {reference}
    return {
        f"{name} over {reference}": {probe: results.gain(probe, name, reference) for probe in CLASSIFICATION}
        for name, system in SYSTEMS.items()
        if name in measured and system.group != "ablations"
    }


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    results, kind = Results(record["results"]), architecture(record["settings"])
    runs = citation_runs(results)
    return fill(
        "paper.md",
        record=record,
        reference=SYSTEMS[HEADLINE[kind]].title,
        gains=gain_table(record["gains"], kind),
        gains_by_data=gain_by_data_table(record["gains"], kind),
        shots=SHOTS,
        scores=partial(score_table, results, answers=PRINTED[kind]),
        retrieval=retrieval_cells({title: cells[0]["retrieval"] for title, cells in runs.items()}),
        links=link_table(runs),
        redundancy=redundancy_cells(results),
        attention_table=attention_table,
        ablations=ablation_rows(results),
    )


def gain_table(gains: Mapping[str, Mapping[str, Any]], kind: str = "BERT") -> str:
    """Tabulate the headline gains of an architecture."""
    rows = []
    for pair, probes in gains.items():
        if finished := [gain for gain in probes.values() if gain]:
            systems = [SYSTEMS[name].title for name in pair.split(" over ")]
            counts = [f"{len(finished[-1][key])}" for key in ("of_each", "seeds")]
            rows.append([*systems, *(gain_text(probes[probe]) for probe in CLASSIFICATION), *counts])
    papers = [f"{printed.papers_gains(probe, kind).mean():+.1%}" for probe in CLASSIFICATION]
    rows.append(["DocSplit, as printed in the papers", printed.COMPARED[kind][1], *papers, f"{len(DATA)}", ""])
    return markdown_table(["system", "over", *GAIN_HEADERS, "data sets", "seeds"], rows)


def docsplit_gains(
    gains: Mapping[str, Mapping[str, Any]], kind: str = "BERT"
) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    """Return DocSplit's gain on each data set by experiment, as cells, and the papers'.

    If only DocSplit without MLM was trained, the gains are its own; the first value is the system.
    """
    systems = {name: gains.get(f"{name} over {HEADLINE[kind]}", {}) for name in (DOCSPLIT, WITHOUT_MLM)}
    name = DOCSPLIT if any(systems[DOCSPLIT].values()) else WITHOUT_MLM
    by_data = {probe: (systems[name].get(probe) or {"of_each": {}})["of_each"] for probe in CLASSIFICATION}
    ours = pd.DataFrame(
        {probe: {data: gain_text(gain) for data, gain in by_data[probe].items()} for probe in CLASSIFICATION}
    )
    papers = pd.DataFrame({probe: printed.papers_gains(probe, kind).map("{:+.1%}".format) for probe in CLASSIFICATION})
    ours = ours.reindex(DATA).dropna(how="all").astype(object).fillna("")
    return name, ours, papers.loc[ours.index]


def gain_by_data_table(gains: Mapping[str, Mapping[str, Any]], kind: str = "BERT") -> str:
    """Tabulate DocSplit's gain on each data set, with the papers' in parentheses."""
    name, ours, papers = docsplit_gains(gains, kind)
    cells = (ours + " (" + papers + ")").map(str.strip).set_axis(GAIN_HEADERS, axis=1)
    return table(cells.rename_axis(f"gain of {SYSTEMS[name].title}"))


def gain_text(gain: Mapping[str, Any] | None) -> str:
    """Format a gain and its interval; None gives an empty cell."""
    if gain is None:
        return ""
    ends = [f"{100 * end:+.1f}" for end in gain["interval"] or ()]
    return f"{100 * gain['gain']:+.1f}%" + (f" [{', '.join(ends)}]" if ends else "")


def score_table(results: Results, experiment: str, metric: str, answers: Mapping[str, str] | None = None) -> str:
    """Tabulate scores by system and data set, with the papers' in parentheses for the rows in ``answers``."""
    scores = results.scores.get((experiment, metric), {})
    systems = [name for name in results.systems(experiment) if SYSTEMS[name].group != "ablations"]
    cells = pd.DataFrame(
        {
            name: {data: mean_deviation(np.concatenate([*seeds.values()])) for data, seeds in scores[name].items()}
            for name in systems
        }
    ).T
    cells = cells[[data for data in DATA if data in cells]]
    if answers:
        papers = printed.TABLES[experiment][metric][[*cells]]
        beside = papers.reindex([answers.get(name, "") for name in systems]).set_axis(systems)
        papers = papers.drop([answers[name] for name in systems if name in answers]).rename("papers: {}".format)
        cells = with_printed(cells.reindex([*systems, *papers.index]), pd.concat([beside, papers]))
    return table(cells.rename({name: SYSTEMS[name].title for name in systems}))


def citation_runs(results: Results) -> dict[str, list[dict[str, Any]]]:
    """Return the results on citations by title in table order, with first-words variants after whole texts."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for _, name, _, result in results.experiment_cells("citations"):
        runs.setdefault(name, []).append(result)
    titles = {}
    for name, system in SYSTEMS.items():
        titles |= {name: system.title, f"{name}-{WORDS}": f"{system.title}, first {WORDS} words"}
    return {title: runs[name] for name, title in titles.items() if name in runs}


def redundancy_cells(results: Results) -> pd.DataFrame:
    """Return redundancy by document length and data set, with the papers' in parentheses."""
    means = {
        name.partition("/")[2]: [row["mean"] for row in (*cell["buckets"], cell["all"])]
        for name, cell in results.cells.items()
        if name.startswith("redundancy/")
    }
    cells = pd.DataFrame(means, index=printed.REDUNDANCY.index, dtype=float).map("{:.2f}".format, na_action="ignore")
    return with_printed(cells, printed.REDUNDANCY, digits=2).rename_axis("words")


def ablation_rows(results: Results) -> list[dict[str, str]]:
    """Return the rows of the differences that single changes of DocSplit make."""
    measured = {name for probe in CLASSIFICATION for name in results.systems(probe)}
    columns = {
        f"{name}, {data}": (probe, data) for probe, name in ((FEW, FEW), (FULL, "all")) for data in ("20news", "bbc")
    }
    rows = []
    for name, system in SYSTEMS.items():
        if (system.group == "ablations" or name == WITHOUT_MLM) and {name, system.against} <= measured:
            title = "MLM weight: 0" if name == WITHOUT_MLM else system.title
            cells = {
                column: results.difference(probe, name, system.against, data)
                for column, (probe, data) in columns.items()
            }
            rows.append({"changed": title, "against": SYSTEMS[system.against].title, **cells})
    return rows
