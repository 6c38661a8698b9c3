from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from support import write_jsonl

import simlte_st
from simlte_st.cli.main import main
from simlte_st.files import hold, write_json


def run(command: str, capsys: pytest.CaptureFixture[str], status: int = 0) -> tuple[str, str]:
    assert main(shlex.split(command)) == status
    captured = capsys.readouterr()
    return " ".join(captured.out.split()), " ".join(captured.err.split())


def test_convert(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, chunks = tmp_path / "long", tmp_path / "chunks"
    out, _ = run(f"convert {encoder_path} --max-length 300 --attention-window 32 --output {output}", capsys)
    assert f"{encoder_path} reads 64 tokens; {output} reads 300." in out
    assert SentenceTransformer(str(output), device="cpu").max_seq_length == 300
    assert "exists already" in run(f"convert {encoder_path} --output {output}", capsys, 1)[1]
    command = f"convert {encoder_path} --backbone chunk-mean --max-length 300 --chunk-length 32 --output {chunks}"
    made = {"base": str(encoder_path), "output": str(chunks), "base_reads": 64, "output_reads": 300}
    assert json.loads(run(f"{command} --json", capsys)[0]) == made
    assert SentenceTransformer(str(chunks), device="cpu").encode(["ba " * 250]).shape == (1, 32)
    _, err = run(f"{command} --attention-window 32 --overwrite", capsys, 1)
    assert re.search("--attention-window 32 .*--backbone", err)


def test_append_an_analysis(
    encoder_path: Path, documents: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, source = tmp_path / "mine", tmp_path / "texts.jsonl"
    write_jsonl(source, ({"body": text} for text in documents))
    command = f"convert {encoder_path} --lsa {source} --text-column body --output {output}"
    out, err = run(f"{command} --dimension 5 --limit 30", capsys)
    assert "read 30 documents" in err
    assert "analysis of 5 dimensions" in out
    assert simlte_st.SentenceTransformer(str(output), device="cpu").get_embedding_dimension() == 37
    assert "--max-length 300" in run(f"{command} --max-length 300 --overwrite", capsys, 1)[1]


def test_distil(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("skeletoken", reason="needs the extra static")
    output, source = tmp_path / "fast", write_jsonl(tmp_path / "texts.jsonl", [{"body": "Zuqbar vorpal."}] * 3)
    command = f"convert {encoder_path} --static --output {output}"
    reading = f"--documents {source} --text-column body --words 1"
    out, err = run(f"{command} --dimension 12 {reading}", capsys)
    assert "vectors of 12 numbers for 134 tokens, 1 of them words of the documents" in out
    assert "read 3 documents" in err
    assert SentenceTransformer(str(output), device="cpu").encode("ba bun").shape == (12,)
    for wrong in ("--max-length 300", f"--lsa {source}", "--text-column body"):
        assert f"{wrong} does not go with --static" in run(f"{command} {wrong} --overwrite", capsys, 1)[1]
    other = f"convert {encoder_path} --output {tmp_path / 'x'} --words 9"
    assert "--words 9 does not go with" in run(other, capsys, 1)[1]


def test_a_name_instead_of_a_folder(
    folder: Path, static_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = "--max-steps 2 --batch-size 4 --held-out 0 --quiet"
    out, _ = run(f"train {folder} --base {static_path} --name mine {steps}", capsys)
    assert 'SentenceTransformer("mine")' in out
    assert simlte_st.SentenceTransformer("mine", device="cpu").encode(["Ba."]).shape[0] == 1
    run(f"encode mine {folder} --output {tmp_path / 'v.parquet'} --quiet", capsys)
    assert "--output DIR or --name NAME" in run(f"train {folder} --base {static_path}", capsys, 1)[1]
    run(f"train {folder} --name a --output b", capsys, 1)


def test_list_and_remove(encoder_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = home / "models"
    for name in ("mine", "other", "simlte-bert"):
        shutil.copytree(encoder_path, models / name)
    (models / "simlte-bert" / "modules.json").unlink()  # damaged
    (models / "notes").mkdir()
    run_folder = models / "mine.run"
    write_json(run_folder / "settings.json", {})
    listed = json.loads(run("models list --json", capsys)[0])
    assert listed["models"] == {name: str(models / name) for name in ("mine", "other")}
    assert listed["unfinished"] == {"mine": str(run_folder)}
    assert listed["shipped"] == ["simlte-bert", "simlte-longformer", "simlte-static"]
    lock = hold(run_folder)
    assert f"is already working in {run_folder}" in run("models remove mine", capsys, 1)[1]
    assert (models / "mine").is_dir(), "nothing is removed while it is being trained anew"
    lock.release()
    removed = json.loads(run("models remove mine --json", capsys)[0])["removed"]
    assert removed == [str(run_folder), str(models / "mine")]
    run("models remove simlte-bert", capsys)
    assert sorted(path.name for path in models.iterdir()) == ["notes", "other"]
    for name in ("../other", "notes", "none"):
        run(f"models remove {name}", capsys, 1)
    assert "Did you mean 'other'?" in run("models remove othr", capsys, 1)[1]
    assert sorted(path.name for path in models.iterdir()) == ["notes", "other"]
