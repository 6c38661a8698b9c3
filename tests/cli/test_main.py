from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer
from support import write_jsonl

from simlte_st.cli.main import main
from simlte_st.models.passes import TextReader
from simlte_st.modules import PositionPooling


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "empty.txt").write_text("  \n")
    (folder / "binary.txt").write_bytes(b"\x00\x01\x02" * 50)
    return folder


@pytest.fixture
def labelled(documents: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "labelled.jsonl"
    rows = [{"id": str(i), "body": text, "kind": f"class {i % 3}"} for i, text in enumerate(documents)]
    write_jsonl(path, rows)
    return path


def test_train_encode_evaluate(
    folder: Path, labelled: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    train = f"train {folder} --base {encoder_path} --output {model} --batch-size 8 --epochs 2"
    objective = "--scale 20 --mlm-weight 0.1"
    assert main(shlex.split(f"{train} {objective} --seed 3 --quiet")) == 0
    out = capsys.readouterr().out
    assert "empty (1)" in out
    assert "binary (1)" in out
    assert "one pass sees" in out
    assert "Too few documents" in out
    assert re.search(f"{model} holds the untrained base.* {model}.trained", out)
    said = " ".join(out.split())
    assert re.search("whole, up to 32,768 tokens,.*chunks of 64", said)
    assert "--max-length base" in said
    assert (model.with_name("model.trained") / "modules.json").exists()
    assert f'model = SentenceTransformer("{model}")' in out
    run = json.loads((model / "simlte.json").read_text())
    assert run["preset"]["view"] == "DocSplit(p=0.5)"
    assert run["preset"]["batch_size"] == 8

    vectors = tmp_path / "vectors.parquet"
    assert main(shlex.split(f"encode {model} {folder} --output {vectors} --quiet")) == 0
    assert "Encoded 48 documents" in capsys.readouterr().out
    assert pq.read_table(vectors)["id"].to_pylist()[0] == "00.txt"

    results = tmp_path / "results.json"
    evaluate = f"evaluate {model} --data {labelled} --label kind --head logistic --draws 3 --output {results} --quiet"
    assert main(shlex.split(evaluate)) == 0
    table = capsys.readouterr().out
    base = f"{encoder_path}, in chunks"  # found in the model's folder, and reading as the model does
    for row in ("TF-IDF", base, str(model)):
        assert len(re.findall(rf"^\| {re.escape(row)} +\|", table, re.MULTILINE)) == 2, table
    values = json.loads(results.read_text())["results"]
    assert set(values) == {"TF-IDF", base, str(model)}
    assert {"halves", "probes", "truncation", "verdict", "max_seq_length"} == set(values[str(model)])
    assert f"{model}, against {base}: " in table


def test_no_base_is_fetched_because_a_file_names_it(
    labelled: Path,
    encoder_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tmp_path / "model"
    shutil.copytree(encoder_path, model)
    (model / "simlte.json").write_text('{"base": "somebody/model"}')
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *arguments, **options: pytest.fail("it was asked"))
    assert main(["evaluate", str(model), "--data", str(labelled), "--quiet"]) == 0
    assert re.search("somebody/model, .*base=", caplog.text)
    assert str(model) in capsys.readouterr().out


def test_evaluate_on_a_test_set_and_against_a_base(
    labelled: Path, encoder_path: Path, bert_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"evaluate {encoder_path} --base {bert_path} --data {labelled} --label kind --test-data {labelled} "
    assert main(shlex.split(command + "--head logistic --draws 2 --shots 3 --quiet")) == 0
    table = capsys.readouterr().out
    assert "3-shot F1" in table
    assert str(bert_path) in table


def test_evaluate_fits_the_terminal_and_says_what_was_read(
    labelled: Path,
    encoder_path: Path,
    bert_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = f"evaluate {encoder_path} --base {bert_path} --data {labelled} --label kind --head logistic --draws 2"
    assert main(shlex.split(f"{command} --quiet")) == 0
    out = capsys.readouterr().out
    paths = (str(encoder_path), str(bert_path))
    for line in out.splitlines():
        assert len(line) <= 80 or any(path in line for path in paths), line
    assert max(len(line) for line in out.splitlines() if line.startswith("|")) <= 80
    said = " ".join(out.split())
    assert said.startswith(f"{encoder_path}, against {bert_path}: ")  # the verdict
    assert f": {bert_path} 64 tokens, {encoder_path} 64 tokens." in said
    assert re.search(rf"{re.escape(paths[0])} reads .* 64 tokens .* 48 of 48 ", said)
    assert f"simlte convert {encoder_path} --backbone chunk-mean" in out

    assert main(shlex.split(f"{command} --max-seq-length 9 --quiet --json")) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)["results"][str(encoder_path)]
    assert (result["max_seq_length"], result["truncation"]["max_seq_length"]) == (64, 9)
    assert result["truncation"]["cut_texts"] == 48
    assert {"halves", "probes", "verdict"} < set(result)
    assert "read 48 documents" in captured.err


def test_what_to_do_about_cut_texts_fits_the_model(
    labelled: Path, model: SentenceTransformer, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model[1] = PositionPooling(32)
    model.save_pretrained(str(tmp_path / "pooled"))
    command = f"evaluate {tmp_path / 'pooled'} {encoder_path} --data {labelled} --label kind --head logistic --draws 2"
    assert main(shlex.split(f"{command} --quiet")) == 0
    out = capsys.readouterr().out
    assert out.count(f"simlte convert {encoder_path} --backbone chunk-mean") == 1
    assert out.count("simlte convert") == 1, "no other model in the place of the user's own"


def test_train_and_encode_report_as_json(
    folder: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, vectors = tmp_path / "model", tmp_path / "vectors.parquet"
    train = f"train {folder} --base {encoder_path} --output {model} --max-steps 1 --batch-size 4 --held-out 0"
    assert main(shlex.split(f"{train} --max-length base --quiet --json")) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["output"], values["steps"], values["kept"]) == (str(model), 1, "trained")
    assert main(shlex.split(f"encode {model} {folder} --output {vectors} --quiet --json")) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["output"], values["documents"], values["truncation"]["cut_texts"]) == (str(vectors), 48, 48)


def test_a_model_that_is_nowhere_is_told_in_the_words_of_the_command(
    labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(f"encode nomodel {labelled} --output {tmp_path / 'v.parquet'}")) == 1
    said = capsys.readouterr().err
    assert re.match("simlte: .*'nomodel'", said)
    assert "--base" not in said


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train nowhere --base {base} --output {out}", "'nowhere'"),
        ("train {folder} --base {base} --output {out} --text-column body", "text-column|column"),
        ("train {folder} --base {base} --output {out} --view crop --p 0.5", "'crop' .*--p: .*--least, --most"),
        ("train {folder} --base {base} --output {out} --resume", "no interrupted run"),
        ("encode {out} {folder} --output v.parquet", "{out}"),
        ("evaluate {base} --data {labelled} --label nothing", "--label"),
    ],
)
def test_errors_are_one_line_without_a_traceback(
    command: str,
    message: str,
    folder: Path,
    labelled: Path,
    encoder_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"folder": folder, "labelled": labelled, "base": encoder_path, "out": tmp_path / "out"}
    assert main(shlex.split(command.format(**places) + " --quiet")) == 1
    error = capsys.readouterr().err
    assert re.search(message.replace("{out}", str(places["out"])), error), error
    assert "Traceback" not in error


def test_help_is_there_and_quick() -> None:
    code = (
        "import sys; from simlte_st.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "assert 'torch' not in sys.modules, 'help must not wait for torch'"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    for command in ("train", "encode", "evaluate"):
        assert command in out


def test_errors_that_nobody_has_foreseen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(error: Exception) -> None:
        def run(arguments: object) -> int:
            raise error

        monkeypatch.setattr("simlte_st.cli.models.run_list", run)

    fail(OSError(errno.ENOSPC, "No space left on device", "/some/file"))
    assert main(["models", "list"]) == 1
    assert re.fullmatch("simlte: No space .*: /some/file\n", capsys.readouterr().err)
    fail(KeyError("x"))
    assert main(["models", "list"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("simlte: KeyError: 'x'\n")
    assert "--debug" in told
    with pytest.raises(KeyError):
        main(["models", "list", "--debug"])


@pytest.mark.parametrize("command", ["train SOURCE --base MODEL --output", "encode MODEL SOURCE --output"])
def test_an_output_that_cannot_be(
    command: str, labelled: Path, encoder_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = command.replace("SOURCE", str(labelled)).replace("MODEL", str(encoder_path))
    assert main(shlex.split(f"{command} {labelled}/inside --quiet")) == 1
    assert f"{labelled} is not a folder." in capsys.readouterr().err


def test_a_source_whose_name_is_no_utf8(
    folder: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder.rename(tmp_path / os.fsdecode(b"D\xe9p\xf4t"))
    (source / "00.txt").rename(source / os.fsdecode(b"z\xe9ro.txt"))
    vectors, model, latin = tmp_path / "v.parquet", tmp_path / "m", os.fsdecode(b"\xe9t\xe9")
    assert main(["encode", str(encoder_path), str(source), "--output", str(vectors), "--quiet"]) == 0
    assert "z\ufffdro.txt" in pq.read_table(vectors)["id"].to_pylist()
    train = ["train", str(source), "--base", str(encoder_path), "--output", str(model), "--max-steps", "1"]
    assert main([*train, "--held-out", "0", "--quiet"]) == 0
    assert main(["index", str(encoder_path), str(source), "--output", str(tmp_path / "ix"), "--quiet"]) == 0
    assert main(["search", str(tmp_path / "ix"), f"ba {latin}"]) == 0
    assert main(["link", str(tmp_path / "ix"), f"ba {latin}"]) == 0
    assert main(["evaluate", str(encoder_path), "--data", str(source), "--json", "--quiet"]) == 0
    capsys.readouterr()
    model.rename(tmp_path / latin)
    for command in (
        ["encode", str(encoder_path), str(source), "--output", str(source / "v.parquet")],
        ["convert", str(encoder_path), "--output", str(source / "long")],
        ["encode", str(tmp_path / latin), str(source), "--output", str(tmp_path / "w.parquet")],
        [*train[:-3], str(source / "m"), "--max-steps", "1"],
    ):
        assert main(command) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert "UTF-8" in said
        assert "should not happen" not in said


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("command", ["encode", "index", "explore"])
def test_a_signal_says_what_is_kept(
    command: str,
    number: signal.Signals,
    status: int,
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
    kept = {
        "encode": "Stopped. Nothing is kept: no part of 1,024 documents was finished (--part-size makes them smaller).",
        "index": f"Stopped. 0 documents are in {output}: start again to add the others.",
        "explore": "simlte: stopped.",
    }[command]
    said = " ".join(capsys.readouterr().err.split())
    assert said.endswith(kept)
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_ends_a_child_that_inherits_the_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = []

    def run(arguments: Any) -> int:
        if (child := os.fork()) == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        statuses.append(os.waitpid(child, 0)[1])
        return 0

    monkeypatch.setattr("simlte_st.cli.dedupe.run", run)
    assert main(["dedupe", "texts", "--output", "out.jsonl"]) == 0
    assert [os.waitstatus_to_exitcode(one) for one in statuses] == [-signal.SIGTERM]
