"""The same documents in both ways, queries that both share, and the page."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import simlte_st
from benchmarks import mails as benchmark
from simlte_st.data import Document

WORDS = ["rain", "snow", "frost", "wind", "cloud", "storm", "flood", "river", "hill", "field", "town", "road"]


def write_mails(folder: Path, number: int = 40) -> Path:
    for row in range(number):
        body = " ".join(f"{word}{'x' * row}{place}" for place in range(4) for word in WORDS)
        path = folder / f"class{row % 2}" / f"{row}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"From: a@b.c\nSubject: {WORDS[row % 12]}\nX-Kind: same\n\n{body}\n")
    return folder


def test_each_way_reads_the_same_documents(tmp_path: Path) -> None:
    ways = benchmark.read(write_mails(tmp_path), 30)
    assert [*ways] == [*benchmark.READINGS]
    assert len({tuple(document.id for document in documents) for documents in ways.values()}) == 1
    first = [documents[0].text for documents in ways.values()]
    assert len(ways["as they are"]) == 30
    assert all(len(text) < len(first[0]) for text in first[1:])
    queries = benchmark.draw_queries([*ways.values()], 10)
    assert len(queries) == 10
    assert all(query in " ".join(text.split()) for name, query in list(queries.items())[:1]
               for text in (document.text for documents in ways.values() for document in documents
                            if document.id == name))  # fmt: skip


def test_words_that_two_documents_share_are_no_query() -> None:
    text = " ".join(f"{word}{place}" for place in range(4) for word in WORDS)
    assert benchmark.draw_queries([[Document("a", text), Document("b", f"x {text}")]], 5) == {}


def test_a_toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lancedb")
    trained = SimpleNamespace(gain={"verdict": "helped", "probability": 0.9})
    monkeypatch.setattr(simlte_st, "train", lambda *arguments, **settings: trained)
    explored = SimpleNamespace(topics=[["rain, snow", 40]])
    monkeypatch.setattr(benchmark, "explore", lambda *arguments, **settings: explored)
    folder, output = write_mails(tmp_path / "mails"), tmp_path / "output"
    benchmark.main(["--set", f"Toy={folder}", "--queries", "4", "--output", str(output)])
    rows = json.loads((output / "mails.json").read_text())["rows"]
    assert [row["way"] for row in rows] == [*benchmark.READINGS]
    assert rows[0]["characters"] > rows[-1]["characters"]
    assert all(row["hybrid, found"] == 1 and 0 <= row["of the class"] <= 1 for row in rows)
    page = (output / "mails.md").read_text()
    assert "helped (0.90)" in page
    assert "- Toy, as they are: 1, rain, snow" in page
