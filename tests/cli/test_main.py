from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
import torch
from support import write_jsonl

from simlte_st.cli.main import main
from simlte_st.errors import ModelError
from simlte_st.models.passes import TextReader

EXPORT = ["export", "m", "--output", "x"]


@pytest.fixture
def labelled(documents: list[str], tmp_path: Path) -> Path:
    rows = [{"id": str(i), "body": text, "kind": f"class {i % 3}"} for i, text in enumerate(documents)]
    return write_jsonl(tmp_path / "labelled.jsonl", rows)


def test_train_encode_evaluate(
    folder: Path, labelled: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.txt").write_text("  \n")
    (folder / "binary.txt").write_bytes(b"\x00\x01\x02" * 50)
    model, vectors = tmp_path / "model", tmp_path / "vectors.parquet"
    train = f"train {folder} --base {encoder_path} --output {model} --batch-size 8 --max-steps 4"
    assert main(shlex.split(f"{train} --scale 20 --mlm-weight 0.1 --seed 3 --quiet")) == 0
    out = capsys.readouterr().out
    assert "empty (1)" in out
    assert "binary (1)" in out
    assert re.search(f"{model} holds the untrained base.* {model}.trained", out)
    assert f'model = SentenceTransformer("{model}")' in out
    run = json.loads((model / "simlte.json").read_text())
    assert run["preset"]["view"] == "DocSplit(p=0.5)"

    assert main(shlex.split(f"encode {model} {folder} --output {vectors} --quiet --json")) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 48
    assert pq.read_table(vectors)["id"].to_pylist()[0] == "00.txt"

    evaluate = f"evaluate {model} --data {labelled} --label kind --draws 2 --quiet"
    assert main(shlex.split(evaluate)) == 0
    table = capsys.readouterr().out
    base = f"{encoder_path}, in chunks"  # found in the model's folder, with the same limit as the model
    for row in ("TF-IDF", base, str(model)):
        assert len(re.findall(rf"^\| {re.escape(row)} +\|", table, re.MULTILINE)) == 2, table
    assert f"{model}, against {base}: " in table


def test_evaluate_with_test_data_and_base(
    labelled: Path, encoder_path: Path, static_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"evaluate {encoder_path} --base {static_path} --data {labelled} --label kind --test-data {labelled} "
    assert main(shlex.split(command + "--head logistic --draws 2 --shots 3 --max-seq-length 9 --json")) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)["results"][str(encoder_path)]
    assert {"halves", "probes"} < set(result)
    assert "read 48 documents" in captured.err


def test_errors_are_printed_without_traceback(
    folder: Path, static_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = f"train {folder} --base {static_path} --output {tmp_path / 'out'} --quiet"
    for command, message in (
        (f"{train} --text-column body", "text-column|column"),
        (f"{train} --view crop --p 0.5", "'crop' .*--p.*--least, --most"),
        (f"{train} --resume", "no interrupted run"),
        (f"evaluate {static_path} --data {folder} --label nothing", "no column 'nothing'"),
    ):
        assert main(shlex.split(command)) == 1
        error = capsys.readouterr().err
        assert re.search(message, error), error
        assert "Traceback" not in error


def test_closed_streams_and_early_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["dedupe", "-", "--output", str(tmp_path / "kept.jsonl")]) == 1
    assert "Standard input is closed" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert main(["--version"]) == 0
    monkeypatch.setattr("simlte_st.cli.command_line.run", Mock(side_effect=KeyboardInterrupt))
    assert main([]) == 130
    assert capsys.readouterr().err == "simlte: stopped.\n"


def test_unexpected_errors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(error: Exception) -> None:
        def check_model(name: str) -> None:
            raise error

        monkeypatch.setattr("simlte_st.cli.commands.check_model", check_model)

    fail(OSError(errno.ENOSPC, "No space left on device", "/some/file"))
    assert main(EXPORT) == 1
    assert re.fullmatch("simlte: No space .*: /some/file\n", capsys.readouterr().err)
    fail(torch.OutOfMemoryError("CUDA out of memory."))
    assert main(EXPORT) == 1
    assert capsys.readouterr().err.startswith("simlte: Out of memory: use a smaller batch size")
    fail(KeyError("x"))
    assert main(EXPORT) == 1
    assert capsys.readouterr().err.startswith("simlte: KeyError: 'x'\n")
    with pytest.raises(KeyError):
        main([*EXPORT, "--debug"])


def test_source_names_need_not_be_utf8(
    folder: Path, static_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder.rename(tmp_path / os.fsdecode(b"D\xe9p\xf4t"))
    (source / "00.txt").rename(source / os.fsdecode(b"z\xe9ro.txt"))
    vectors, latin = tmp_path / "v.parquet", os.fsdecode(b"\xe9t\xe9")
    assert main(["encode", str(static_path), str(source), "--output", str(vectors), "--quiet"]) == 0
    assert "z\ufffdro.txt" in pq.read_table(vectors)["id"].to_pylist()
    assert main(["index", str(static_path), str(source), "--output", str(tmp_path / "ix"), "--quiet"]) == 0
    assert main(["search", str(tmp_path / "ix"), f"ba {latin}"]) == 0
    assert main(["link", str(tmp_path / "ix"), f"ba {latin}"]) == 0


@pytest.mark.parametrize(
    ("command", "number", "status", "kept"),
    [
        ("encode", signal.SIGINT, 130, r"Stopped\. Finished parts of 1,024 documents .*: continue with --resume\."),
        ("index", signal.SIGTERM, 143, r"Stopped\. .* has 0 documents: run it again to add the rest\."),
        ("explore", signal.SIGTERM, 143, r"simlte: stopped\."),
    ],
)
def test_signal_message_says_what_is_saved(
    command: str,
    number: signal.Signals,
    status: int,
    kept: str,
    folder: Path,
    encoder_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / {"encode": "v.parquet", "index": "my.index", "explore": "page.html"}[command]
    encode = TextReader.__init__

    def stopped(*arguments: Any, **options: Any) -> None:
        encode(*arguments, **options)
        signal.raise_signal(number)

    monkeypatch.setattr(TextReader, "__init__", stopped)
    before = signal.getsignal(signal.SIGTERM)
    assert main([command, str(encoder_path), str(folder), "--output", str(output), "--quiet"]) == status
    assert re.search(f"{kept}$", " ".join(capsys.readouterr().err.split()))
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_ends_child_that_inherits_the_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = []

    def check_model(name: str) -> None:
        if (child := os.fork()) == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        statuses.append(os.waitpid(child, 0)[1])
        raise ModelError("no model")

    monkeypatch.setattr("simlte_st.cli.commands.check_model", check_model)
    assert main(EXPORT) == 1
    assert [os.waitstatus_to_exitcode(one) for one in statuses] == [-signal.SIGTERM]
