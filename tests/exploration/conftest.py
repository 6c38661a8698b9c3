from __future__ import annotations

import random
from pathlib import Path

import pytest
from exploration_support import HOSTILE
from support import WORDS, write_jsonl

from simlte_st.data import Document
from simlte_st.exploration import ExploreReport, explore


@pytest.fixture(scope="session")
def corpus() -> list[Document]:
    """60 documents in three groups with separate words; the last few are outliers."""
    documents = []
    for number in range(54):
        draw, group = random.Random(number), number % 3
        words = WORDS[group * 40 : group * 40 + 12]
        text = " ".join(" ".join(draw.choices(words, k=8)).capitalize() + "." for _ in range(8))
        day = f"2020-01-{1 + number % 28:02d}"
        columns = {"kind": "abc"[group], "year": 2000 + number // 3, "day": day, "note": None}
        documents.append(Document(f"d{number}", text, metadata=columns))
    outliers = {
        "hostile": f"{HOSTILE} {documents[0].text}",
        "copy": f"{documents[1].text} Wei.",
        "cyrillic": "Это документ на другом языке. Он короткий.",
        "digits": "12 34 56 78 90",
        "long": " ".join(document.text for document in documents[:30:3]),
        "again": "ba ba " * 60,
    }
    for name, text in outliers.items():
        documents.append(Document(name, text, metadata={"title": HOSTILE if name == "hostile" else ""}))
    return documents


@pytest.fixture(scope="session")
def source(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus as a file, with an empty row."""
    rows = [{"id": document.id, "text": document.text, **(document.metadata or {})} for document in corpus]
    path = tmp_path_factory.mktemp("source") / "corpus.jsonl"
    write_jsonl(path, [*rows, {"id": "empty", "text": " "}])
    return path


@pytest.fixture(scope="session")
def explored(source: Path, encoder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> ExploreReport:
    """The page and table of the corpus."""
    output = tmp_path_factory.mktemp("page") / "corpus.html"
    return explore(encoder_path, source, output=output, topics=3, seed=1, device="cpu")
