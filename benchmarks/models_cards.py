"""The cards of this package's own models: the account of the run that made each, with the results of ``models.md``."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.builder.account import LIMITS_TITLE, Build
from benchmarks.models_page import FULL_TITLE, REFERENCES, ROWS, WORDS
from simlte_st.files import atomic_path, read_json
from simlte_st.models.names import OWN_MODELS
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, FOLDER

TEXT = "Articles of English Wikipedia, 2014"
LICENCE = "The text that the adapters were trained on is Wikipedia's (CC BY-SA 3.0); none of it is in the package."
CHOSEN = "The weights of positions (power 0.25) were chosen among 0, 0.25, 0.5 and 1 on these sets."


def write_cards(page: Sequence[str]) -> None:
    """Write the cards anew.

    Args:
        page: The lines of ``models.md``, of which the first tables are taken, with a few labels.
    """
    taken = [line.replace("## ", "### ", 1) for line in page[2 : page.index(FULL_TITLE)]]
    for name in OWN_MODELS:
        results = ["## Results", "", *rows_of(name, taken), CHOSEN, ""]
        with atomic_path(FOLDER / name / CARD_FILE) as path:
            path.write_text(card(name, results), encoding="utf-8")


def rows_of(name: str, lines: Sequence[str]) -> list[str]:
    """Leave out the rows of tables that are neither of a model nor of what all are compared with."""
    others = {row for row in ROWS if row not in (*WORDS, *REFERENCES) and not row.startswith(name)}
    return [line for line in lines if not (line.startswith("|") and line.split("|")[1].strip() in others)]


def card(name: str, results: Sequence[str]) -> str:
    """Give the card of a model.

    Args:
        name: The model.
        results: Lines of Markdown, which go before its limits.
    """
    build = Build(**read_json(FOLDER / name / BUILD_FILE))
    before, title, after = build.card(TEXT, LICENCE).partition(LIMITS_TITLE)
    return "".join((before, "\n".join(results), "\n", title, after))
