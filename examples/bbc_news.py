"""BBC News (Greene & Cunningham, 2006), one of the papers' data sets, from the package that carries it."""

from __future__ import annotations

from dataclasses import replace

from simlte_st.data import Document, read_documents
from simlte_st.datasets.bbc import packaged_corpus_path


def bbc_news() -> list[Document]:
    """Return the articles with their class as the label, exact copies left out.

    The package stores one text file an article, in a folder a class, so they are read as a user's own folder would be.
    """
    reader = read_documents(
        packaged_corpus_path(), encoding="latin-1"
    )  # one article has a pound sign that is not UTF-8
    unique = {document.text: document for document in reader}
    return [replace(document, label=document.id.split("/")[0]) for document in unique.values()]
