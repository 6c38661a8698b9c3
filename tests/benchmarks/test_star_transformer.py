from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks import star_transformer
from benchmarks.star_transformer import PASSES, SIDES

pytest.importorskip("entmax")


def test_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)

    def here(module: str, **options: object) -> int:
        """Run the module in this process; a new one would take longer to import torch than to measure."""
        capsys.readouterr()
        star_transformer.main([f"--{name}={value}" for name, value in options.items()])
        return int(capsys.readouterr().out)

    monkeypatch.setattr(star_transformer, "run_module", here)
    star_transformer.main(["--lengths", "32", "48", "--repeats", "2", "--results", str(tmp_path)])
    rows = json.loads((tmp_path / "star_transformer.json").read_text())["rows"]
    assert [row["length"] for row in rows] == [32, 48]
    for row in rows:
        assert all(len(row["seconds"][title][name]) == 2 for title in PASSES for name in SIDES)
        assert set(row["bytes"]) == set(SIDES)
    assert "microseconds a token" in (tmp_path / "star_transformer.md").read_text()
