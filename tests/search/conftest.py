from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.search import Index
from simlte_st.search.encoder import Encoder


@pytest.fixture(scope="session")
def corpus(documents: list[str]) -> list[Document]:
    """Ten documents with metadata; all are longer than the tiny model reads."""
    return [
        Document(f"d{number}", text, metadata={"year": 2000 + number, "kind": "odd" if number % 2 else "even"})
        for number, text in enumerate(documents[:10])
    ]


@pytest.fixture(scope="session")
def indices(encoder_path: Path, corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indices of the corpus; tests copy them, because creating one takes five times as long."""
    folder, model = tmp_path_factory.mktemp("indices"), SentenceTransformer(str(encoder_path), device="cpu")
    for name in ("index", "parted"):
        Index.create(folder / name, model, parts=name == "parted").add(corpus)
    return folder


@pytest.fixture
def index(indices: Path, model: SentenceTransformer, tmp_path: Path) -> Index:
    """An index of the corpus, without passages."""
    return Index.open(shutil.copytree(indices / "index", tmp_path / "index"), model)


@pytest.fixture
def parted(indices: Path, model: SentenceTransformer, tmp_path: Path) -> Index:
    """An index of the corpus, with passages."""
    return Index.open(shutil.copytree(indices / "parted", tmp_path / "parted"), model)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts encoded during the test."""
    texts: list[str] = []
    original = Encoder.encode

    def encode(self: Encoder, batch: list[str], batch_size: int = 32) -> object:
        texts.extend(batch)
        return original(self, batch, batch_size)

    monkeypatch.setattr(Encoder, "encode", encode)
    return texts


@pytest.fixture(scope="session")
def contents() -> Callable[[Index], list[tuple[Any, ...]]]:
    """Return the content of an index, for comparisons."""

    def sorted_rows(index: Index) -> list[tuple[Any, ...]]:
        columns = ["id", "part", "hash", "text", "passage", "vector"]
        rows = index._store.rows("true", columns).to_pylist()
        return sorted(
            (row["id"], row["part"], row["hash"], row["text"], row["passage"], np.round(row["vector"], 4).tolist())
            for row in rows
        )

    return sorted_rows
