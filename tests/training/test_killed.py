"""A run that was killed, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from simlte_st import train
from simlte_st.errors import ConfigurationError, ResumeError

SCRIPT = """
import json, sys
from simlte_st import train
documents, arguments = json.load(open(sys.argv[1]))
train(documents, progress=False, **arguments)
"""


def run_training(folder: Path, documents: list[str], **arguments: Any) -> subprocess.Popen[bytes]:
    job = folder / f"{Path(arguments['output']).name}.job.json"
    job.write_text(
        json.dumps([documents, {name: str(v) if isinstance(v, Path) else v for name, v in arguments.items()}])
    )
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(job)], stderr=subprocess.PIPE)


# Dropout on, an MLM head, and several epochs: everything that could come out differently.
KILLED: dict[str, Any] = {"preset": "docsplit-bert", "epochs": 8, "batch_size": 8, "save_steps": 4, "seed": 5}


@pytest.fixture(scope="module")
def undisturbed(bert_path: Path, documents: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("undisturbed") / "whole"
    train(documents, output, base=bert_path, progress=False, **KILLED)
    return output


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_resumes_to_the_same_bytes(
    number: signal.Signals, undisturbed: Path, bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    arguments = {"base": bert_path, **KILLED}
    process = run_training(tmp_path, documents, output=tmp_path / "killed", **arguments)
    checkpoints = tmp_path / "killed.run" / "checkpoints"
    deadline = time.monotonic() + 120
    while len(list(checkpoints.glob("checkpoint-*/complete"))) < 2:  # into the second epoch or later
        assert process.poll() is None, process.stderr.read().decode()  # type: ignore[union-attr]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, number)
    process.wait(60)
    process.stderr.close()  # type: ignore[union-attr]
    assert not (tmp_path / "killed").exists(), "the run ended before it could be killed: use more epochs"
    with pytest.raises(ConfigurationError, match="--resume"):
        train(documents, tmp_path / "killed", progress=False, **arguments)
    with pytest.raises(ResumeError, match=r"seed: was 5, is 6"):
        train(documents, tmp_path / "killed", progress=False, resume=True, **{**arguments, "seed": 6})
    # This process is another one than was killed.
    result = train(documents, tmp_path / "killed", progress=False, resume=True, **arguments)
    assert result.preset.mlm_weight == 0.1
    first, second = (folder / "model.safetensors" for folder in (tmp_path / "killed", undisturbed))
    assert first.read_bytes() == second.read_bytes()
