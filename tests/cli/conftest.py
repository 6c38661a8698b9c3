from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that is too wide to wrap messages, so that tests can search them for words."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture
def folder(documents: list[str], tmp_path: Path) -> Path:
    """A folder of the documents as text files."""
    path = tmp_path / "texts"
    path.mkdir()
    for index, text in enumerate(documents):
        (path / f"{index:02d}.txt").write_text(text, encoding="utf-8")
    return path
