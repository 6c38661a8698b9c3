from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal in which no message is wrapped: tests that look for words need not know where a line ends."""
    monkeypatch.setenv("COLUMNS", "1000")
