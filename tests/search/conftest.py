from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.search import Index
from simlte_st.search.encoder import Encoder


@pytest.fixture
def corpus(documents: list[str]) -> list[Document]:
    """Ten documents with metadata; all are longer than the tiny model reads."""
    return [
        Document(f"d{number}", text, metadata={"year": 2000 + number, "kind": "odd" if number % 2 else "even"})
        for number, text in enumerate(documents[:10])
    ]


@pytest.fixture
def index(model: SentenceTransformer, corpus: list[Document], tmp_path: Path) -> Index:
    """An index of them, without passages."""
    made = Index.create(tmp_path / "index", model)
    made.add(corpus)
    return made


@pytest.fixture
def parted(model: SentenceTransformer, corpus: list[Document], tmp_path: Path) -> Index:
    """An index of them, with passages."""
    made = Index.create(tmp_path / "parted", model, parts=True)
    made.add(corpus)
    return made


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are encoded from now on."""
    texts: list[str] = []
    original = Encoder.counted

    def counted(self: Encoder, given: list[str], batch_size: int = 32) -> object:
        texts.extend(given)
        return original(self, given, batch_size)

    monkeypatch.setattr(Encoder, "counted", counted)
    return texts


@pytest.fixture(scope="session")
def contents() -> Callable[[Index], list[tuple[Any, ...]]]:
    """What an index holds, to be compared with another's."""

    def of(index: Index) -> list[tuple[Any, ...]]:
        columns = ["id", "part", "hash", "text", "passage", "vector"]
        rows = index._store.rows("true", columns).to_pylist()
        return sorted(
            (row["id"], row["part"], row["hash"], row["text"], row["passage"], np.round(row["vector"], 4).tolist())
            for row in rows
        )

    return of
