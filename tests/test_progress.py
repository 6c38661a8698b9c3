from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

import pytest

from simlte_st.progress import logs_above_bars, progress_bar, with_progress_bar


def test_bar_shows_name_and_total(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_progress_bar([1, 2, 3], "Counting")) == [1, 2, 3]
    shown = capsys.readouterr().err
    assert "Counting: 100%" in shown
    assert "3/3" in shown
    assert list(with_progress_bar([1, 2], "Counting", show=False)) == [1, 2]
    assert capsys.readouterr().err == ""


def test_errors_close_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("The disk is gone.")

    with pytest.raises(OSError, match="gone"):
        list(with_progress_bar(broken(), "Reading", 2))
    text = capsys.readouterr().err
    assert text.endswith("\n"), "the next line of the terminal is free"
    assert "2/2" not in text, "not said to be complete"


def test_log_lines_appear_above_the_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging.root, "handlers", [handler])
    with logs_above_bars(), progress_bar("Training", 4):
        logging.getLogger("simlte_st").warning("A line.")
    assert "A line." in capsys.readouterr().err.replace("\r", "\n").split("\n"), "on a line of its own"
    assert logging.root.handlers == [handler]
