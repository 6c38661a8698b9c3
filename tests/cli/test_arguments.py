from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path

import huggingface_hub
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.cli.arguments import print_result
from simlte_st.cli.main import main


@pytest.mark.parametrize(
    "command", [["evaluate", "no-model", "--data", "SOURCE", "--output"]], ids=lambda command: " ".join(command[:2])
)
def test_results_do_not_replace_a_file_unasked(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "documents.jsonl"
    source.write_text('{"text": "a"}\n')
    command = [str(source) if word == "SOURCE" else word for word in command]
    precious = tmp_path / "precious.html"
    precious.write_text("years")
    assert main([*command, str(precious)]) == 1
    assert f"{precious} exists already" in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert main([*command, str(tmp_path / "folder"), "--overwrite"]) == 1
    assert "folder is a folder" in capsys.readouterr().err
    if str(source) in command:
        assert main([*command, str(source), "--overwrite"]) == 1
        assert "holds the documents" in capsys.readouterr().err
    assert precious.read_text() == "years"
    assert source.read_text() == '{"text": "a"}\n'


def test_results_are_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"name": "\x1b[2J\x9b\u202ea", "mean": float("nan"), "text": "Größe"}
    print_result(argparse.Namespace(json=True, flags={}), "for people", values)
    out = capsys.readouterr().out
    assert json.loads(out) == {**values, "mean": None}
    assert "Größe" in out
    assert not {"\x1b", "\x9b", "\u202e"} & set(out)
    print_result(argparse.Namespace(json=False, flags={}), "for people", values)
    assert capsys.readouterr().out == "for people\n"


def test_a_hub_that_does_not_answer_is_told_once_and_soon(
    model: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save_pretrained(str(tmp_path / "tiny"))
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    capsys.readouterr()
    begin = time.monotonic()
    command = ["encode", str(tmp_path / "tiny"), "hub:owner/name", "--output", str(tmp_path / "vectors.parquet")]
    assert main(command) == 1
    assert time.monotonic() - begin < 10
    printed = capsys.readouterr().err.splitlines()
    lines = [line for line in printed if line and "Loading weights" not in line]  # which a process of its own hides
    assert len(lines) == 1, "and no bar of what cannot be read"
    assert re.match("simlte: owner/name .*ConnectError", lines[0])
