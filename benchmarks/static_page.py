"""The page of ``benchmarks.static``, made of its JSON file alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.bank.outcomes import FEW, FULL
from benchmarks.models_page import AAN
from benchmarks.pages import document
from benchmarks.records import difference, mean_deviation
from simlte_st.evaluation.table import markdown_table

TFIDF, LSA = "TF-IDF", "LSA"
DISTILLED, SHIPPED = "static, distilled", "simlte-static"
TRAINED, TRAINED_LSA = "static, DocSplit", "static, DocSplit + LSA"
AT_256, WHOLE = "MiniLM at 256", "MiniLM whole"
ADAPTED_256, ADAPTED = "MiniLM adapted, at 256", "MiniLM adapted, whole"
ROWS = (TFIDF, LSA, DISTILLED, SHIPPED, TRAINED, TRAINED_LSA, AT_256, ADAPTED_256, WHOLE, ADAPTED)
KEPT = {AT_256: "MiniLM at 256", WHOLE: "MiniLM chunk-mean"}
"""What the page of models calls a row."""

Result = Mapping[str, Any]


def page(record: Result) -> str:
    """Return the page of the results."""
    results, sets, least = record["results"], record["sets"], record["long"]
    names = sorted(sets, key=lambda name: sets[name]["words"])
    long = [name for name in names if sets[name]["words"] >= least]
    header = ["", *names, "all sets", f"from {least} words"]
    counted = [
        [label, *(f"{sets[name][key]:,.0f}" for name in names), "", ""]
        for label, key in (
            ("documents", "documents"),
            ("judged", "judged"),
            ("words (median)", "words"),
            ("tokens (median)", "tokens"),
        )
    ]
    blocks = [
        "# Static embeddings of one's own documents",
        *_explained(),
        markdown_table(header, counted),
    ]
    for title, outcome in (("5 labels a class", FEW), ("the labels of half of the documents", FULL)):
        table = [_row(results, row, outcome, names, long) for row in ROWS]
        blocks += [f"## Macro-F1, {title}", markdown_table(header, [row for row in table if any(row[1:])])]
    blocks += [
        "Differences, paired set by set, with 95% bootstrap intervals over the sets:",
        markdown_table(
            ["5 labels a class / half", f"sets from {least} words", "shorter sets", "all sets"],
            list(_differences(results, names, long)),
        ),
        "## Time, citations, short texts",
        *_costs(record, names),
        "## From which length on",
        *_threshold(results, names, sets, least),
        *_choice(record["choice"]),
    ]
    return document(*blocks, machines=record["environments"], command="python -m benchmarks.static --shared DATA")


def _explained() -> list[str]:
    from benchmarks import static  # which imports the names above
    from benchmarks.pages import explanation

    return [explanation(static.__doc__)]


def _values(results: Result, name: str, row: str, key: str) -> list[float]:
    return [each[key] for each in results.get(name, {}).get(row, ()) if key in each]


def _row(results: Result, row: str, outcome: str, names: Sequence[str], long: Sequence[str]) -> list[str]:
    cells = [row]
    for name in names:
        values = _values(results, name, row, outcome)
        kept = any("kept" in each for each in results.get(name, {}).get(row, ()))
        cells.append(mean_deviation(values) + "*" * kept if values else "")
    for group in (names, long):
        found = [_values(results, name, row, outcome) for name in group]
        cells.append(f"{100 * mean(map(mean, found)):.1f}" if found and all(found) else "")
    return cells


def _differences(results: Result, names: Sequence[str], long: Sequence[str]) -> list[list[str]]:
    short = [name for name in names if name not in long]
    rows = []
    for ours, theirs in (
        (TRAINED, DISTILLED), (TRAINED_LSA, TRAINED), (TRAINED_LSA, LSA), (TRAINED_LSA, AT_256), (TRAINED_LSA, WHOLE),
        (TRAINED_LSA, ADAPTED_256), (TRAINED_LSA, ADAPTED),
    ):  # fmt: skip
        cells = [f"{ours} against {theirs}"]
        for group in (long, short, names):
            parts = []
            for outcome in (FEW, FULL):
                pairs = [[_values(results, name, row, outcome) for row in (ours, theirs)] for name in group]
                found = np.array([mean(a) - mean(b) for a, b in pairs if a and b])
                parts.append(difference(100 * found) if len(found) > 1 else "–")
            cells.append(" / ".join(parts))
        if any(character.isdigit() for cell in cells[1:] for character in cell):
            rows.append(cells)
    return rows


def _costs(record: Result, names: Sequence[str]) -> list[str]:
    results, encoders = record["results"], record["encoders"]
    timed = [name for name in names if _values(results, name, AT_256, "encoding")]
    rows = []
    for row in ROWS:
        cells = [row]
        for key in ("training", "encoding"):
            found = [_values(results, name, row, key) for name in timed]
            total = sum(map(mean, found)) if found and all(found) else 0.0
            cells.append(f"{total:,.1f}" if total else "")
        known = {key: [value] for key, value in encoders[KEPT[row]].items()} if row in KEPT else {}
        cites = _values(results, AAN, row, "recall@10") or known.get("recall@10")
        cells.append(f"{100 * mean(cites):.1f}" if cites else "")
        short = [value for name in names for value in _values(results, name, row, "stsb")] or known.get("stsb")
        cells.append(f"{100 * mean(short):.1f}" if short else "")
        rows.append(cells)
    judged, documents = (sum(record["sets"][name][key] for name in timed) for key in ("judged", "documents"))
    return [
        f"Seconds of {len(timed)} trainings on {documents:,} documents ({', '.join(timed)}), and of encoding the "
        f"{judged:,} of them that are judged.",
        markdown_table(["", "s to train", "s to encode", "AAN R@10", "STS-B"], [row for row in rows if any(row[1:])]),
    ]


def _threshold(results: Result, names: Sequence[str], sets: Result, least: int) -> list[str]:
    """Return a table of the sets by length: how far the static model is ahead of the adapted encoder."""
    ahead = {}
    for name in names:
        pair = [_values(results, name, row, FEW) for row in (TRAINED_LSA, ADAPTED_256)]
        if all(pair):
            ahead[name] = 100 * (mean(pair[0]) - mean(pair[1]))
    rows = [
        [name, f"{sets[name]['words']:,.0f}", f"{sets[name]['tokens']:,.0f}", f"{gain:+.1f}", _rule(ahead, name, sets)]
        for name, gain in ahead.items()
    ]
    return [
        f"`simlte train` makes a static model from {least} words in the median. How far that and LSA are ahead of the "
        "encoder adapted at 256 tokens, 5 labels a class; and for each set the length that the others would choose, "
        "where the fewest points are lost by taking the worse of the two (the geometric middle between two sets).",
        markdown_table(["", "median words", "median tokens", "ahead", "the others choose (words)"], rows),
    ]


def _rule(ahead: Mapping[str, float], left_out: str, sets: Result) -> str:
    """Return the words from which on the other sets are for a static model, and whether that is right for this one."""
    others = sorted((sets[name]["words"], gain) for name, gain in ahead.items() if name != left_out)
    lost = []
    for cut in range(len(others) + 1):
        wrong = [-gain for _, gain in others[cut:] if gain < 0] + [gain for _, gain in others[:cut] if gain > 0]
        lost.append(sum(wrong))
    cut = int(np.argmin(lost))
    if cut in (0, len(others)):
        return "always static" if cut == 0 else "never static"
    words = float(np.sqrt(others[cut - 1][0] * others[cut][0]))
    right = (sets[left_out]["words"] >= words) == (ahead[left_out] >= 0)
    return f"{words:,.0f}, {'right' if right else 'wrong'} here"


def _choice(choice: Result) -> list[str]:
    """Return the tables of the recipe's choice: candidates by set, and what is best on the others of each set."""
    blocks = ["## How the recipe was chosen", choice["about"]]
    for title, part in choice["tables"].items():
        names = part.get("sets", choice["sets"])
        candidates: dict[str, dict[str, float]] = part["values"]
        rows = [
            [label, *(f"{values[name]:.1f}" if name in values else "" for name in names), _average(values, names)]
            for label, values in candidates.items()
        ]
        blocks += [f"### {title}", part["about"], markdown_table(["", *names, "mean"], rows)]
        if part.get("held_out"):
            whole = {label: values for label, values in candidates.items() if all(name in values for name in names)}
            lines = []
            for name in names:
                best = max(whole, key=lambda label: mean(whole[label][other] for other in names if other != name))
                chosen = whole[part["chosen"]][name]
                lines.append(
                    [
                        name,
                        best,
                        f"{whole[best][name]:.1f}",
                        f"{chosen:.1f}",
                        f"{max(v[name] for v in whole.values()):.1f}",
                    ]
                )
            blocks += [
                "With each set held out in turn: the candidate with the best mean over the others, what it has here, "
                "what the recipe has, and the best of all here.",
                markdown_table(["held out", "best on the others", "here", "the recipe", "best here"], lines),
            ]
    return blocks


def _average(values: Mapping[str, float], names: Sequence[str]) -> str:
    return f"{mean(values[name] for name in names):.1f}" if all(name in values for name in names) else ""
