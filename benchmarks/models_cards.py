"""The cards of this package's own models: the account of the run that made each, with the results of ``models.md``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.builder.account import Build
from benchmarks.models_page import AT_256, CHUNKED, CLASSED, FULL_TITLE, REFERENCES, ROWS, WORDS
from simlte_st.files import atomic_path, read_json
from simlte_st.models.names import OWN_ENCODERS
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, FOLDER

TEXT = "Articles of English Wikipedia, 2014"
LICENCE = "The text that the adapters were trained on is Wikipedia's (CC BY-SA 3.0); none of it is in the package."
CHOSEN = "The weights of positions (power 0.25) were chosen among 0, 0.25, 0.5 and 1 on these sets."


def write_cards(page: Sequence[str]) -> None:
    """Write the cards anew."""
    taken = [line.replace("## ", "### ", 1) for line in page[2 : page.index(FULL_TITLE)]]
    for name in OWN_ENCODERS:
        with atomic_path(FOLDER / name / CARD_FILE) as path:
            path.write_text(card(name, [*rows_of(name, taken), CHOSEN]), encoding="utf-8")


def rows_of(name: str, lines: Sequence[str]) -> list[str]:
    """Leave out the rows of tables that are neither of a model nor of what all are compared with."""
    others = {row for row in ROWS if row not in (*WORDS, *REFERENCES) and not row.startswith(name)}
    return [line for line in lines if not (line.startswith("|") and line.split("|")[1].strip() in others)]


def verdict(name: str, results: Sequence[str]) -> str:
    """Return whether a model is better than its base, read as far as that reads and in chunks."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in results if line.startswith("|")]
    told: dict[str, dict[str, str]] = {}
    for reference in REFERENCES:
        [start] = [number for number, row in enumerate(rows) if row[0] == f"against {reference}"]
        differences = next(row for row in rows[start:] if row[0] == name)
        told[reference] = dict(zip(rows[start][1:], differences[1:], strict=True))
    signs: dict[str, list[str]] = {"better": [], "worse": [], "not clearly different": []}
    for each in CLASSED:
        low, high = map(float, re.findall(r"[-+][\d.]+", told[AT_256][each])[1:])
        signs["better" if low > 0 else "worse" if high < 0 else "not clearly different"].append(each)
    counted = "; ".join(f"{sign} on {len(sets)} ({', '.join(sets)})" for sign, sets in signs.items() if sets)
    return (
        f"Of {len(CLASSED)} sets of documents it is {counted}. With 5 labelled documents a class that is "
        f"{told[AT_256]['all sets']} points of macro-F1 over all-MiniLM-L6-v2 as it is, which reads 256 tokens, and "
        f"{told[CHUNKED]['all sets']} over all-MiniLM-L6-v2 reading whole documents in chunks (95% intervals)."
    )


def card(name: str, results: Sequence[str]) -> str:
    """Return the card of a model."""
    build = Build(**read_json(FOLDER / name / BUILD_FILE))
    return build.card(TEXT, LICENCE, verdict(name, results), results)
