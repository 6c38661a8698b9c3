from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks import first_seconds


def test_each_command_is_run_as_often_as_asked_for(tmp_path: Path) -> None:
    ran: list[list[str]] = []

    def run(command: Sequence[str], folder: Path) -> float:
        assert len(list((folder / "texts").iterdir())) == 50
        ran.append(list(command))
        return float(len(ran))

    first_seconds.main(["--repeats", "3", "--output", str(tmp_path)], run)
    assert len(ran) == 2 + 3 * len(first_seconds.COMMANDS)
    assert ["search", "ix", "words", "--where", "bad ="] in ran
    assert len(json.loads((tmp_path / "first_seconds.json").read_text())["seconds"]["--help"]) == 3
    text = (tmp_path / "first_seconds.md").read_text()
    middle = 3 + len(first_seconds.COMMANDS)  # of the first command's turns
    assert any(
        line.split() == f"| `simlte --help` | nothing: the help | {middle}.00 |".split() for line in text.splitlines()
    )


def test_cpu_seconds_are_those_of_the_process(tmp_path: Path) -> None:
    assert 0.05 < first_seconds.cpu_seconds(["--version"], tmp_path) < 60
