from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import simlte_st
from simlte_st.cli.main import main


def test_export(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "onnx"
    assert main(shlex.split(f"export {encoder_path} --format onnx --output {output}")) == 0
    out = capsys.readouterr().out
    assert "its vectors" in out
    assert f'simlte_st.load_onnx("{output}")' in out
    texts = ["ba wei mo.", "do"]
    expected = SentenceTransformer(str(encoder_path), device="cpu").encode(texts)
    assert np.abs(simlte_st.load_onnx(output).encode(texts) - expected).max() < 1e-5
    assert main(shlex.split(f"export {encoder_path} --output {output}")) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(shlex.split(f"export {encoder_path} --output {output} --overwrite --int8 --json")) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["dimension"] == 32
    assert made["error"] < 1e-5
    assert 0.9 < made["int8_cosine"] < 1
