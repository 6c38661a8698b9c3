from __future__ import annotations

from pathlib import Path

import pytest
from support import write_texts


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that is too wide to wrap messages, so that tests can search them for words."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture
def folder(documents: list[str], tmp_path: Path) -> Path:
    """A folder of the documents as text files."""
    return write_texts(tmp_path / "texts", documents)
