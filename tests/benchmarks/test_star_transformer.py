from __future__ import annotations

import contextlib
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import star_transformer
from benchmarks.star_transformer import SIDES, WIDTH, make_side

pytest.importorskip("entmax")


def test_every_side_gives_one_vector_that_learns() -> None:
    for name in SIDES:
        hidden = torch.randn(1, 40, WIDTH, requires_grad=True)
        vector = make_side(name, 40)(hidden)
        assert vector.shape == (1, WIDTH), name
        vector.square().sum().backward()
        assert hidden.grad is not None
        assert hidden.grad.abs().amax(dim=-1).gt(0).all(), f"{name} reads every token"


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    start, started = subprocess.run, []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """One process of its own, and the others here: each would import torch for longer than it measures."""
        started.append(command)
        if len(started) == 1:
            return start(command, **options)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            star_transformer.main(command[3:])
        return subprocess.CompletedProcess(command, 0, out.getvalue())

    monkeypatch.setattr(subprocess, "run", run)
    star_transformer.main(["--lengths", "32", "48", "--repeats", "2", "--results", str(tmp_path)])
    rows = json.loads((tmp_path / "star_transformer.json").read_text())["rows"]
    assert [row["length"] for row in rows] == [32, 48]
    assert len(started) == 2 * len(SIDES)
    for row in rows:
        assert all(len(row["seconds"][title][name]) == 2 for title in star_transformer.PASSES for name in SIDES)
        assert set(row["bytes"]) == set(SIDES)
    assert "microseconds a token" in (tmp_path / "star_transformer.md").read_text()
