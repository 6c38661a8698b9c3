"""The page: every table and figure of what is finished, how it was made, and what is missing and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grid import printed, tables
from benchmarks.grid.experiments import attention, citations, mteb, similarity
from benchmarks.grid.experiments.classification import FEW, FULL
from benchmarks.grid.results import KINDS, Results
from benchmarks.grid.sets import ALL
from benchmarks.grid.systems import SYSTEMS
from benchmarks.grid.work import Work
from benchmarks.pages import write_results
from benchmarks.records import environment_lines
from simlte_st.errors import MissingExtraError
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import read_json

TITLES = {FEW: "A few documents a class", FULL: "All documents"}


def report(work: Work, folder: Path, earlier: Path | None = None) -> str:
    """Write ``paper.md``, ``paper.json`` and the figures, each at once when it is complete."""
    common = work.folder / "grid.json"
    results = Results(
        work, read_json(common) if common.exists() else {}, None if earlier is None else read_json(earlier)
    )
    if not results.cells or not results.settings:
        raise SystemExit(f"Nothing is finished in {work.folder}.")
    folder.mkdir(parents=True, exist_ok=True)
    gains = tables.gains(results)
    ablations = tables.ablations(results)
    figures = draw(results, gains, folder)
    record = {
        "settings": results.settings,
        "data": data_sets(results),
        "gains": gains,
        "ablations": ablations,
        "figures": figures,
        "skipped": results.skipped,
        "environments": results.environments,
        "models": {name: cell["result"] | {"settings": cell["settings"]} for name, cell in results.models.items()},
        "results": {
            name.removeprefix("results/"): {key: value for key, value in cell["result"].items() if key != "per_query"}
            for name, cell in results.cells.items()
        },
    }
    write_results("paper", record, folder, aloud=False)
    return (folder / "paper.md").read_text(encoding="utf-8")


def page(record: Mapping[str, Any]) -> str:
    """Return the page of what is finished."""
    results = Results.of_record(record)
    sections = _sections(results, record["gains"], record["ablations"], record["figures"])
    return "\n".join([*_begin(results), *sections, *_end(results)])


def data_sets(results: Results) -> dict[str, dict[str, Any]]:
    """Return what is recorded of the data sets."""
    return {name: results.data[name] for name in ALL if name in results.data}


def _begin(results: Results) -> Iterator[str]:
    settings = results.settings
    corpus = settings.get("corpus")
    yield "# The papers' experiments"
    yield ""
    begin = f"Scale `{settings['scale']}`: everything begins with {settings['base']['name']}"
    if corpus:
        documents = f"{corpus['documents']:,} documents of {corpus['name']}"
        yield f"{begin}; what is trained is trained on {documents}, each seed by itself."
    else:
        yield f"{begin}; nothing is trained."
    if corpus:
        steps = "one pass over them" if settings["steps"] is None else f"{settings['steps']} steps"
        tokens = "as many tokens as the base reads" if settings["tokens"] is None else f"{settings['tokens']} tokens"
        yield (
            f"Each: {steps}, {settings['batch_size']} documents a step, {tokens} a view, learning rate "
            f"{settings['learning_rate']:g}, pooling {settings['pooling']}, {settings.get('dtype', 'float32')}; the "
            "rest is the papers' preset. Equal documents are not equal work: see the cost below."
        )
    yield (
        f"Texts are read up to {settings['read']} tokens, by chunk-mean up to {settings['chunk_tokens']}, by TF-IDF "
        f"and BM25 whole. Head: {settings['head']}. Data sets are drawn once; documents to learn from: at most "
        f"{_most(settings['train_documents'])}, to score on: at most {_most(settings['test_documents'])}."
    )
    if settings["scale"] == "tiny":
        yield "Data, corpus and base are made up: this scale shows that everything runs, and its numbers mean nothing."
    yield "After ± is the standard deviation over seeds and draws. (Numbers in parentheses) are those that the papers"
    yield "print, from their data sets and bases; they are not measured here."
    yield ""


def _most(number: int | None) -> str:
    return "all" if number is None else f"{number:,}"


def _sections(results: Results, gains: Any, ablations: Any, figures: Mapping[str, str]) -> Iterator[str]:
    if any(kinds[kind] for kinds in gains.values() for kind in KINDS):
        of = tables.architecture(results)
        yield from _section(
            f"Gain over {tables.title(tables.HEADLINE[of])}",
            "Mean relative gain in macro-F1 over the data sets that both have, as the papers compute their headline. "
            "Few-shot intervals are a bootstrap over seeds and draws, in pairs; with one seed they leave out what "
            "another training would change. With all documents there are no draws: the brackets hold the least and "
            "the largest gain of a seed. Systems with fewer seeds are compared on those alone.",
            tables.gain_table(gains, of),
            tables.gain_by_data_table(gains, of),
            figures.get("gains", ""),
        )
    for kind in (FULL, FEW):
        if not results.systems(kind):
            continue
        about = "A probe on frozen embeddings."
        if kind == FEW:
            shots = {name: results.shots(name) for name in results.settings["shots"]}
            other = ", ".join(f"{number} of {name}" for name, number in shots.items() if number != 5)
            about += f" Examples a class: 5{f', but {other}' * bool(other)}; {results.settings['draws']} draws."
        yield from _section(
            TITLES[kind],
            about,
            "Macro-F1:",
            tables.score_table(results, kind, "macro_f1"),
            "Accuracy:",
            tables.score_table(results, kind, "accuracy"),
            "(c) Contaminated: trained on these texts; the number means nothing." if _contaminated(results) else "",
            figures.get(kind, ""),
        )
    if results.curve("macro_f1"):
        yield from _section(
            f"Learning curve on {results.settings['curve_data']}",
            "Macro-F1; a class with fewer documents gives all it has.",
            tables.curve_table(results),
            printed.LEARNING_CURVE,
            figures.get("curve", ""),
        )
    if results.of(citations.NAME):
        yield from _section(
            "Citations",
            "Every citing paper searches the cited ones, without itself; means over citing papers with 95% intervals.",
            tables.retrieval_table(results),
            "Link or no link, balanced, accuracy; parts by links or by papers (no test paper occurs in training). The "
            "head is the Long Range Arena's on [a, b, a * b, a - b]; the threshold is on the score alone.",
            tables.link_table(results),
            printed.CITATION,
        )
    if results.of(similarity.NAME):
        yield from _section(
            "Document similarity",
            "The Lee corpus: correlation with people's judgement of all pairs.",
            tables.similarity_table(results),
        )
    if tables.redundancies(results):
        yield from _section(
            "Redundancy",
            f"Nouns and verbs to distinct ones, by length; at most {results.settings['redundancy_documents']:,} "
            "documents of a data set. ! marks a value of the papers' that the equation cannot give.",
            tables.redundancy_table(results),
            figures.get("redundancy", ""),
        )
    for name, cell in results.cells.items():
        if name.startswith(f"results/{attention.NAME}/"):
            found = attention.result_of(cell["result"])
            yield from _section(
                f"Attention from [CLS] on {name.rpartition('/')[2]}",
                found.table(),
                found.summary(),
                printed.ATTENTION,
                "The heat map of a document is in the work folder, `figures/attention_map.html`: texts are not "
                "passed on here.",
                figures.get("attention", ""),
            )
    if results.of(mteb.NAME):
        yield from _section("Tasks of mteb", "Main scores.", tables.mteb_table(results))
    if ablations:
        yield from _section(
            "Ablations",
            "DocSplit with one thing changed, on the same budget of documents: difference in macro-F1, in points, "
            "paired draw by draw, with a bootstrap interval over the draws (over the seeds for all documents). "
            f"DocSplit itself: {_default(results)}.",
            tables.ablation_table(ablations),
        )
    if results.models:
        yield from _section(
            "Cost of a training", "Tokens that went through, padding not counted.", tables.cost_table(results)
        )


def _contaminated(results: Results) -> bool:
    return any(
        SYSTEMS[system].contaminated(data)
        for found in results.scores.values()
        for system in found
        for data in found[system]
    )


def _default(results: Results) -> str:
    settings = results.settings
    return (
        "split ratio 0.5, sentences, random window, MLM weight 0.1 on a pass of its own, pooling "
        f"{settings['pooling']}, temperature 0.05, {settings['batch_size']} documents a step"
    )


def _section(heading: str, *parts: str) -> Iterator[str]:
    yield f"## {heading}"
    yield ""
    for part in parts:
        if part:
            yield part
            yield ""


def _end(results: Results) -> Iterator[str]:
    found = data_sets(results)
    if found:
        notes = [f"- {name}: {sentences(cell['notes'])}" for name, cell in found.items() if cell["notes"]]
        yield from _section(
            "Data sets",
            "What was drawn, and all of it that was found here (the papers' numbers in parentheses).",
            set_table(found),
            "\n".join(notes),
        )
    if results.skipped:
        yield from _section("Skipped", "\n".join(f"- {what}: {why}" for what, why in results.skipped.items()))
    yield "## How it was made"
    yield ""
    yield from environment_lines(results.environments)
    yield ""
    command = f"python -m benchmarks.paper --scale {results.settings['scale']} --shared FOLDER --work WORK"
    yield f"    {command}{''.join(f' {option}' for option in results.settings['overrides'])}"
    yield f"    {command} --report"
    yield ""


def sentences(notes: Sequence[str]) -> str:
    """Join notes, of which some end with a full stop."""
    return " ".join(f"{note.rstrip('.')}." for note in notes)


def set_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Lay out what is known of the data sets; SimLTE, Table 1."""
    rows = []
    for name, cell in found.items():
        drawn = [f"{cell['identity'][key]:,}" if key in cell["identity"] else "" for key in ("train", "test", "texts")]
        row = [name, *drawn]
        theirs = printed.STATISTICS.get(name)
        for key in ("documents", "classes", "words_mean", "words_median", "words_max"):
            ours = f"{cell['whole'][key]:,.0f}" if cell["whole"] else ""
            row.append(f"{ours} ({getattr(theirs, key):,.0f})" if ours and theirs is not None else ours)
        rows.append(row)
    header = ["", "to learn", "to score", "texts", "documents", "classes", "words, mean", "median", "longest"]
    return markdown_table(header, rows)


def draw(results: Results, gains: Any, folder: Path) -> dict[str, str]:
    """Draw the figures; without matplotlib there are none."""
    made: dict[str, str] = {}
    try:
        for name, alt, drawing in _drawings(results, gains):
            drawing(folder / f"paper_{name}.svg")
            made[name] = f"![{alt}](paper_{name}.svg)"
    except MissingExtraError as error:
        results.work.skip("figures", str(error))
    else:
        results.work.unskip("figures")
    return made


def _drawings(results: Results, gains: Any) -> Iterator[tuple[str, str, Any]]:
    from benchmarks.grid import figures
    from benchmarks.papers.attention import write_bars

    rows: dict[str, tuple[float, float, float]] = {}
    headline = tables.HEADLINE[tables.architecture(results)]
    for pair, kinds in gains.items():
        name, _, reference = pair.partition(" over ")
        for kind, found in kinds.items():
            if found is not None and reference == headline and SYSTEMS[name].group == "trained":
                low, high = found["interval"] or (float("nan"), float("nan"))
                label = f"{tables.title(name)}, {'few-shot' if kind == FEW else 'all'}"
                rows[label] = (100 * found["gain"], 100 * low, 100 * high)
    if rows:
        label, over = "mean relative gain in macro-F1, %", f"over {tables.title(headline)}"
        yield (
            "gains",
            f"gains {over}",
            lambda path: figures.gain_intervals(path, rows, title=over, x_label=label),
        )
    for kind in (FULL, FEW):
        groups = bars(results, kind)
        if groups:
            yield (
                kind,
                f"macro-F1, {TITLES[kind]}",
                lambda path, kind=kind, groups=groups: figures.score_bars(
                    path, groups, title=TITLES[kind], y_label="macro-F1, %"
                ),
            )
    curves = {
        tables.title(name): {shots: _point(100 * values) for shots, values in points.items()}
        for name, points in results.curve("macro_f1").items()
    }
    if curves:
        where = f"Learning curve on {results.settings['curve_data']}"
        yield "curve", where, lambda path: figures.learning_curves(path, curves, title=where, y_label="macro-F1, %")
    redundancies = {data: values for data, values in tables.redundancies(results).items() if values}
    if redundancies:
        yield (
            "redundancy",
            "redundancy by length",
            lambda path: figures.redundancy_bars(path, redundancies, title="Redundancy by words of a document"),
        )
    for name, cell in results.cells.items():
        if name.startswith(f"results/{attention.NAME}/"):
            result = attention.result_of(cell["result"])
            yield "attention", "attention from [CLS]", lambda path, result=result: write_bars(path, result)


def bars(results: Results, kind: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Return macro-F1 by data set and system, without ablations."""
    scores = results.scores.get((kind, "macro_f1"), {})
    groups: dict[str, dict[str, tuple[float, float]]] = {}
    for system in results.systems(kind):
        if SYSTEMS[system].group != "ablations":
            for data, draws in scores[system].items():
                values = 100 * np.concatenate([draws[seed] for seed in sorted(draws)])
                groups.setdefault(data, {})[tables.title(system)] = _point(values)
    return groups


def _point(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
