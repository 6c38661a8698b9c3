from __future__ import annotations

import functools
import logging
import time
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from sentence_transformers import SentenceTransformer

import simlte_st.training.train as training
from simlte_st.cli.arguments import in_options
from simlte_st.cli.main import main
from simlte_st.errors import ConfigurationError


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "no-model", "--data", "SOURCE", "--output"],
        ["analyze", "redundancy", "SOURCE", "--output"],
        ["analyze", "attention", "SOURCE", "--model", "no-model", "--bars"],
        ["analyze", "layers", "SOURCE", "--model", "no-model", "--lines"],
        ["analyze", "weights", "A text.", "--model", "no-model", "--heatmap"],
    ],
    ids=lambda command: " ".join(command[:2]),
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
    assert "folder is a folder: name a file" in capsys.readouterr().err
    if str(source) in command:
        assert main([*command, str(source), "--overwrite"]) == 1
        assert "holds the documents" in capsys.readouterr().err
    assert precious.read_text() == "years"
    assert source.read_text() == '{"text": "a"}\n'


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("held_out=0.7: a share.", "--held-out 0.7: a share."),
        ("pooling='keep' is safer.", "--pooling keep is safer."),
        ("batching='tokens' needs batch_tokens=, the", "--batching tokens needs --batch-tokens, the"),
        ("held_out must not be 0.", "--held-out must not be 0."),
        ("shorter views (batch_tokens).", "shorter views (--batch-tokens)."),
        ("bf16=False, bf16=True", "--no-bf16, --bf16"),
        ("The pooling of the base stays, with other=3.", "The pooling of the base stays, with other=3."),
        ("/data/held_out/x.txt and held_out.json", "/data/held_out/x.txt and held_out.json"),
    ],
)
def test_messages_are_in_the_words_of_the_command_line(message: str, shown: str) -> None:
    assert in_options(message, ["held_out", "pooling", "batching", "batch_tokens", "bf16"]) == shown


def test_errors_and_log_lines_are(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["train", "texts", "--output", "model", "--batch-size", "1"]) == 1
    assert capsys.readouterr().err.startswith("simlte: --batch-size 1: the negatives are")
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a process of its own

    @functools.wraps(training.train)
    def train(**options: Any) -> None:
        logging.getLogger("simlte_st").warning("Few steps (%d): pooling='keep' is safer.", 5)
        raise ConfigurationError("max_steps=0: too few.")

    monkeypatch.setattr(training, "train", train)
    assert main(["train", "texts", "--output", "model"]) == 1
    assert capsys.readouterr().err == "Few steps (5): --pooling keep is safer.\nsimlte: --max-steps 0: too few.\n"


def test_a_hub_that_does_not_answer_is_told_once_and_soon(
    model: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save_pretrained(str(tmp_path / "tiny"))
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    begin = time.monotonic()
    command = ["encode", str(tmp_path / "tiny"), "hub:owner/name", "--output", str(tmp_path / "vectors.parquet")]
    assert main(command) == 1
    assert time.monotonic() - begin < 10
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert len(lines) == 1, "and no bar of what cannot be read"
    assert lines[0].startswith("simlte: owner/name on the Hub cannot be reached (ConnectError")
