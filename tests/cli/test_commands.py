"""Run each command that no other file tests."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document

import simlte_st
from simlte_st.cli.main import main


def test_dedupe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, output = tmp_path / "texts", tmp_path / "kept.jsonl"
    folder.mkdir()
    for number, text in enumerate([make_document(0), f"{make_document(0)} More.", make_document(0), " "]):
        (folder / f"{number}.txt").write_text(text)
    assert main(shlex.split(f"dedupe {folder} --output {output} --json")) == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["kept"], report["copies"]["exact"], report["copies"]["near"]) == (1, 1, 1)
    assert "empty (1)" in captured.err
    removed = [json.loads(line) for line in Path(report["removed"]).read_text().splitlines()]
    assert removed == [{"id": "1.txt", "copy_of": "0.txt"}, {"id": "2.txt", "copy_of": "0.txt"}]

    assert main(shlex.split(f"dedupe {folder} --output {output} --exact --overwrite --quiet")) == 0
    out, err = capsys.readouterr()
    assert ("1 of 3 documents" in out, err) == (True, "skipped 1: empty (1), first: 3.txt: only white space\n")


@pytest.fixture
def source(documents: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "corpus.csv"
    path.write_text("id,text,kind\n" + "".join(f'd{n},"{text}",{n % 2}\n' for n, text in enumerate(documents[:20])))
    return path


def test_explore(source: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "corpus.html"
    command = f"explore {encoder_path} {source} --output {output} --topics 2"
    assert main(shlex.split(f"{command} --json")) == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["documents"], len(report["topics"])) == (20, 2)
    assert "read 20 documents" in captured.err
    assert output.exists()
    assert (tmp_path / "corpus.parquet").exists()
    assert main(shlex.split(command)) == 1
    assert "--overwrite" in capsys.readouterr().err


def test_export(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "onnx"
    assert main(shlex.split(f"export {encoder_path} --output {output}")) == 0
    out = capsys.readouterr().out
    assert "its vectors" in out
    assert f'simlte_st.load_onnx("{output}")' in out
    texts = ["ba wei mo.", "do"]
    expected = SentenceTransformer(str(encoder_path), device="cpu").encode(texts)
    assert np.abs(simlte_st.load_onnx(output).encode(texts) - expected).max() < 1e-5
