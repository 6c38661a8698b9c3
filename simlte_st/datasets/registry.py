"""The data sets by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from simlte_st.datasets import aan, arxiv, bbc, fakenews, nyt, twenty_news
from simlte_st.datasets.citations import CitationSet
from simlte_st.datasets.textset import TextSet
from simlte_st.errors import ConfigurationError

SETS: dict[str, TextSet | CitationSet] = {
    item.card.name: item
    for item in (
        fakenews.SET,
        twenty_news.SET,
        arxiv.SET,
        nyt.SET,
        bbc.SET,
        aan.SET,
    )
}
"""Every data set, in the order of the papers' tables."""


def find_set(name: str) -> TextSet | CitationSet:
    """Give the data set of a name.

    Raises:
        ConfigurationError: There is none; the message lists the names.
    """
    if name not in SETS:
        raise ConfigurationError(f"There is no data set {name!r}; there are {', '.join(SETS)}.")
    return SETS[name]
