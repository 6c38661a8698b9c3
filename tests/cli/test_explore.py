from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from simlte_st.cli.main import main


@pytest.fixture
def source(documents: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "corpus.csv"
    path.write_text("id,text,kind\n" + "".join(f'd{n},"{text}",{n % 2}\n' for n, text in enumerate(documents[:20])))
    return path


def test_explore(source: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "corpus.html"
    command = f"explore {encoder_path} {source} --output {output} --label kind --topics 2 --quiet"
    assert main(shlex.split(f"{command} --json")) == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["documents"] == 20
    assert len(report["topics"]) == 2
    assert "read 20 documents" in captured.err
    assert output.exists()
    assert (tmp_path / "corpus.parquet").exists()
    assert main(shlex.split(command)) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main(shlex.split(f"{command} --overwrite --label knd")) == 1
    assert "--label knd" in capsys.readouterr().err
    assert main(shlex.split(f"explore {encoder_path} {source} --output {source} --overwrite")) == 1
    assert ".html" in capsys.readouterr().err


def test_an_index_has_been_read(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(f"explore {tmp_path / 'none'} --output {tmp_path / 'p.html'}")) == 1
    assert "no index" in capsys.readouterr().err
    assert main(shlex.split(f"explore {tmp_path / 'none'} --output {tmp_path / 'p.html'} --limit 5")) == 1
    assert "reading options" in capsys.readouterr().err
