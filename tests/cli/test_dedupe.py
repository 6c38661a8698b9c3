from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from support import make_document

from simlte_st.cli.main import main


def test_dedupe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, output = tmp_path / "texts", tmp_path / "kept.jsonl"
    folder.mkdir()
    for number, text in enumerate([make_document(0), f"{make_document(0)} More.", make_document(0), " "]):
        (folder / f"{number}.txt").write_text(text)
    assert main(shlex.split(f"dedupe {folder} --output {output} --json --quiet")) == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["kept"], report["copies"]["exact"], report["copies"]["near"]) == (1, 1, 1)
    assert "empty (1)" in captured.err
    removed = [json.loads(line) for line in Path(report["removed"]).read_text().splitlines()]
    assert removed == [{"id": "1.txt", "copy_of": "0.txt"}, {"id": "2.txt", "copy_of": "0.txt"}]

    assert main(shlex.split(f"dedupe {folder} --output {output} --quiet")) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main(shlex.split(f"dedupe {folder} --output {output} --exact --overwrite --quiet")) == 0
    assert "1 of 3 documents" in capsys.readouterr().out
    for wrong in ("--similarity 2", "--similarity 0.5 --exact"):
        with pytest.raises(SystemExit):
            main(shlex.split(f"dedupe {folder} --output {output} --overwrite {wrong}"))
        assert "argument --" in capsys.readouterr().err
