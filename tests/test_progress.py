from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator

import pytest

from simlte_st.progress import complete, logs_above_bars, progress_bar, spell_seconds, with_progress_bar


def test_a_bar_has_a_name_and_the_total_of_its_items(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_progress_bar([1, 2, 3], "Counting")) == [1, 2, 3]
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("Counting: 100%")
    assert "3/3" in line
    assert list(with_progress_bar([1, 2], "Counting", shown=False)) == [1, 2]
    assert capsys.readouterr().err == ""


def test_a_total_that_was_too_high_is_put_right_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    list(with_progress_bar(iter("ab"), "Reading", 5))
    assert "2/2" in capsys.readouterr().err.splitlines()[-1]
    with progress_bar("Reading", shown=True) as bar:
        bar.update(3)
        complete(bar)
    assert "3doc" in capsys.readouterr().err, "without a total there is none to put right"


def test_an_error_closes_the_bar_once(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("The disk is gone.")

    with pytest.raises(OSError, match="gone"):
        list(with_progress_bar(broken(), "Reading", 2))
    text = capsys.readouterr().err
    assert text.endswith("\n"), "the next line of the terminal is free"
    assert "1/2" in text, "not said to be complete"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_there_is_a_line_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("tqdm.std.time", lambda: now)
    with progress_bar("Indexing", 60) as bar:
        for _ in range(60):
            now += 4
            bar.update(1)
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("Indexing:") for line in lines), "no carriage returns, and nothing of other bars"
    assert lines[-1].startswith("Indexing: 100%")
    assert "3/60 [00:12<03:48" in lines[0], "the first one within a few seconds"
    assert "11/60 [00:44<" in lines[1]
    assert len(lines) == 9, "in 240 seconds"


def test_a_bar_within_another_leaves_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("Outer", 1) as outer:
        list(with_progress_bar([1, 2], "Inner"))
        outer.update(1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["Inner", "Outer"]


def test_a_terminal_has_one_line_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("Reading", 2, mininterval=0) as bar:
        bar.update(1)
        bar.update(1)
    assert terminal.getvalue().count("\n") == 1
    assert terminal.getvalue().count("\r") >= 3


def test_seconds_are_spelled() -> None:
    assert [spell_seconds(one) for one in (29.4, 240, 3422, 86_000)] == [
        "29 s",
        "4 minutes",
        "57 minutes",
        "23.9 hours",
    ]


def test_log_lines_stand_above_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    monkeypatch.setattr(logging.root, "handlers", [handler])
    with logs_above_bars(), progress_bar("Training", 4):
        logging.getLogger("simlte_st").warning("A line.")
    assert "A line." in capsys.readouterr().err.replace("\r", "\n").split("\n"), "on a line of its own"
    assert logging.root.handlers == [handler]
    monkeypatch.setattr(logging.root, "handlers", [])
    with logs_above_bars():
        assert logging.root.handlers == []
