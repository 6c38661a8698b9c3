from __future__ import annotations

from pathlib import Path

import pytest
from support import make_document

from benchmarks import search
from simlte_st.data import Document


def test_search_modes(encoder_path: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [make_document(number) for number in range(12)]
    documents = [Document(str(number), text, metadata={"cited": number != 1}) for number, text in enumerate(texts)]
    linked = search.SearchSet(documents, [(str(number), {str((number + 1) % 12)}) for number in range(3)])
    found = search.SearchSet([Document(one.id, one.text) for one in documents], [(texts[4][:60], {"4"})])
    monkeypatch.setattr(search, "load_sets", lambda shared, clones: {"found": found, "linked": linked})
    monkeypatch.setattr(search, "SYSTEMS", {"static": (str(static_path), False), "rerank": (str(static_path), False)})
    monkeypatch.setattr(search, "PACKAGED_BASE", str(encoder_path))
    search.main(["--shared", str(tmp_path), "--work", str(tmp_path / "work"), "--output", str(tmp_path)])
    rows = [line for line in (tmp_path / "search.md").read_text().splitlines() if line.startswith("| found (1) ")]
    assert [row.count(" 1.000 ") for row in rows] == [4, 5]
    assert search.measure(linked, "static", tmp_path)["ranks"]["text"][0] == 0, "no document that is not cited"
