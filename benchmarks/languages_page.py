"""The page of ``benchmarks.languages``, made of its JSON file alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from benchmarks.bank.outcomes import FEW, FULL
from benchmarks.pages import document, explanation
from benchmarks.records import mean_deviation
from simlte_st.evaluation.table import markdown_table

TFIDF, LSA, MINILM = "TF-IDF", "LSA", "MiniLM at 256"
BASE, WHOLE, ADAPTED = "E5 at 512", "E5 whole", "E5 adapted"
PLAIN, UNPROMPTED = "E5 at 512, no prompt", "E5 adapted, no prompt in training"
DISTILLED, TRAINED = "static, distilled", "static, DocSplit + LSA"
ROWS = (TFIDF, LSA, MINILM, PLAIN, UNPROMPTED, BASE, WHOLE, ADAPTED, DISTILLED, TRAINED)
TRAININGS = (UNPROMPTED, ADAPTED, TRAINED)

Result = Mapping[str, Any]


def page(record: Result) -> str:
    """Return the page of the results."""
    from benchmarks import languages  # which imports the names above

    results, sets = record["results"], record["sets"]
    names = [name for name in sets if name in results]
    foreign = [name for name in names if name != "English"]
    header = ["", *names, "mean but English"]
    counted = [
        [label, *(f"{sets[name][key]:,.0f}" for name in names), ""]
        for label, key in (
            ("documents", "documents"), ("judged", "judged"), ("classes", "classes"), ("words (median)", "words"),
            ("tokens of the base (median)", "tokens"),
        )
    ]  # fmt: skip
    blocks = ["# Documents in other languages", explanation(languages.__doc__), markdown_table(header, counted)]
    for title, outcome in (("5 labels a class", FEW), ("the labels of half of the documents", FULL)):
        table = [_row(results, row, outcome, names, foreign) for row in ROWS]
        blocks += [f"## Macro-F1, {title}", markdown_table(header, [row for row in table if any(row[1:])])]
    blocks += ["## Verdicts", _verdicts(results, names), *_words(record)]
    return document(*blocks, machines=record["environments"], command="python -m benchmarks.languages")


def _row(results: Result, row: str, outcome: str, names: Sequence[str], foreign: Sequence[str]) -> list[str]:
    found = {name: [each[outcome] for each in results[name].get(row, ())] for name in names}
    cells = [mean_deviation(found[name]) if found[name] else "" for name in names]
    whole = bool(foreign) and all(found[name] for name in foreign)
    return [row, *cells, f"{100 * mean(mean(found[name]) for name in foreign):.1f}" if whole else ""]


def _verdicts(results: Result, names: Sequence[str]) -> str:
    """Return a table: what the verdict said of each training, and how its gain over the base."""
    rows = []
    for row, base in ((UNPROMPTED, BASE), (ADAPTED, BASE), (TRAINED, DISTILLED)):
        for name in names:
            kept = results[name].get(base)
            for seed, each in enumerate(results[name].get(row, ())):
                gains = [f"{100 * (each[key] - kept[0][key]):+.1f}" if kept else "" for key in (FEW, FULL)]
                said = each["verdict"] or "none"
                chance = "" if each["probability"] is None else f"{each['probability']:.0%}"
                rows.append([f"{row}, {name}", str(seed), *gains, said, chance])
    header = ["training", "seed", "5 labels", "half", "verdict", "probability"]
    return markdown_table(header, rows)


def _words(record: Result) -> list[str]:
    """Return what search by words finds, and what words are worth, version by version of this package."""
    from benchmarks import languages_words

    search, words = record["search"], record["words"]
    if not search and not words:
        return []
    blocks = ["## Words", explanation(languages_words.__doc__)]
    kinds = dict.fromkeys(kind for languages in search.values() for found in languages.values() for kind in found)
    for kind in kinds:
        blocks += [f"### Queries: {kind}", _recall(search, kind)]
    if words:
        names = list(dict.fromkeys(name for found in words.values() for name in found))
        rows = [
            [f"{row}, {version}" if row == TFIDF else f"{row} segmenter", *(_pair(found[name][row]) for name in names)]
            for version, found in words.items()
            for row in (TFIDF, "dictionary")
            if row == TFIDF or version == list(words)[-1]
        ]
        blocks += ["### TF-IDF, 5 labels a class / half", markdown_table(["", *names], rows)]
    return blocks


def _pair(found: Result) -> str:
    return f"{100 * found[FEW]:.1f} / {100 * found[FULL]:.1f}"


_MEASURES = {
    "BM25, of the stem's": "text stem",
    "BM25, of the lemma's": "text lemma",
    "BM25, right": "precision",
    "hybrid, first 10": "hybrid lemma @10",
}
"""What the columns are called, and what they hold."""


def _recall(search: Result, kind: str) -> str:
    """Return a table of a kind of queries: a column for each measure and version."""
    languages = dict.fromkeys(name for found in search.values() for name in found)
    columns = [(title, key, version) for title, key in _MEASURES.items() for version in search]
    rows = []
    for language in languages:
        found = {version: search[version].get(language, {}).get(kind) for version in search}
        if any(found.values()):
            number = next(each["queries"] for each in found.values() if each)
            cells = [f"{found[version][key]:.0%}" if found[version] else "" for _, key, version in columns]
            rows.append([language, str(number), *cells])
    return markdown_table(["", "queries", *(f"{title}: {version}" for title, _, version in columns)], rows)
