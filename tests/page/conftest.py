from __future__ import annotations

from pathlib import Path

import pytest

from simlte_st.data import Document
from simlte_st.search import Index


@pytest.fixture(scope="session")
def hostile() -> Document:
    """A document that would hijack a page that shows it as markup."""
    return Document(
        "<img src=x onerror=\"document.title='owned'\">",
        "Ba bun bis <script>document.title='owned'</script> **ba** [ba](javascript:ba) $ba$ :red[ba] -> :streamlit:.",
        metadata={"year": 1999, "kind": 'javascript:"<i>odd</i>'},
    )


@pytest.fixture
def folder(hostile: Document, documents: list[str], encoder_path: Path, tmp_path: Path) -> Path:
    """An index of ten documents and a hostile one."""
    index = Index.create(tmp_path / "<b>my.index", encoder_path, parts=True)
    metadata = [{"year": 2000 + number, "kind": "even"} for number in range(10)]
    index.add([hostile, *(Document(f"d{n}", documents[n], metadata=metadata[n]) for n in range(10))])
    return index.folder
