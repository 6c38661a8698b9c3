"""Indices with and without passages, asked by words of each quarter and by titles, and the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import index_parts
from simlte_st.data import Document


def test_words_are_of_their_quarter_and_of_one_document() -> None:
    documents = [
        Document(f"d{row}", " ".join(f"w{row}x{place}" for place in range(80)) + " same" * 9) for row in (1, 2)
    ]
    asked: list[str] = []

    class Index:
        def search(self, query: str, **settings: object) -> list[str]:
            asked.append(query)
            return []

    queries = index_parts.passages_of(documents, 12)
    assert [len(each) for each in queries.values()] == [3] * 4
    for quarter, each in enumerate(queries.values()):
        for ask, ids in each:
            ask(Index(), "dense")  # type: ignore[arg-type]
            places = [int(word.partition("x")[2]) for word in asked.pop().split() if word != "same"]
            assert quarter * 20 <= places[0] < (quarter + 1) * 20
            assert sum(document.id in ids for document in documents) == 1


def test_a_toy(tmp_path: Path, encoder_path: Path) -> None:
    pytest.importorskip("lancedb")
    bodies = [" ".join(f"bo{row}x{place}." for place in range(60)) for row in range(3)]
    rows = [{"id": f"d{row}", "title": f"Name {row}", "text": f"Name {row} {body}"} for row, body in enumerate(bodies)]
    source = tmp_path / "toy.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = tmp_path / "output"
    given = ["--set", f"Toy={source}", "--model", str(encoder_path), "--words", "50", "--queries", "4"]
    index_parts.main([*given, "--work", str(tmp_path / "work"), "--output", str(output)])
    whole, parts = json.loads((output / "index_parts.json").read_text())["rows"]
    assert whole["vectors"] == 3 < parts["vectors"]
    assert {"hybrid, quarter 4", "dense, titles"} < whole["found"].keys()
    assert all(each["found"]["hybrid, titles"]["ten"] == 100 for each in (whole, parts))
    assert "hybrid, words" in (output / "index_parts.md").read_text()
