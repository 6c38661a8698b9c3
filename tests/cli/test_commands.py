"""Run each command that no other file tests."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document, write_jsonl, write_texts

import simlte_st
from simlte_st.cli.main import main


def test_dedupe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, output = make_document(0), tmp_path / "kept.jsonl"
    folder = write_texts(tmp_path / "texts", [text, f"{text} More.", text, " "])
    assert main(shlex.split(f"dedupe {folder} --output {output} --json")) == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["kept"], report["copies"]["exact"], report["copies"]["near"]) == (1, 1, 1)
    assert "empty (1)" in captured.err
    removed = [json.loads(line) for line in Path(report["removed"]).read_text().splitlines()]
    assert removed == [{"id": "01.txt", "copy_of": "00.txt"}, {"id": "02.txt", "copy_of": "00.txt"}]

    assert main(shlex.split(f"dedupe {folder} --output {output} --exact --overwrite --quiet")) == 0
    out, err = capsys.readouterr()
    assert ("1 of 3 documents" in out, err) == (True, "skipped 1: empty (1), first: 03.txt: only white space\n")


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


def run(command: str, capsys: pytest.CaptureFixture[str], status: int = 0) -> tuple[str, str]:
    assert main(shlex.split(command)) == status
    captured = capsys.readouterr()
    return " ".join(captured.out.split()), " ".join(captured.err.split())


def test_convert(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, chunks = tmp_path / "long", tmp_path / "chunks"
    out, _ = run(f"convert {encoder_path} --max-length 300 --attention-window 32 --output {output}", capsys)
    assert f'SentenceTransformer("{output}")' in out
    assert SentenceTransformer(str(output), device="cpu").max_seq_length == 300
    command = f"convert {encoder_path} --backbone chunk-mean --max-length 300 --chunk-length 32 --output {chunks}"
    assert json.loads(run(f"{command} --json", capsys)[0]) == {"base": str(encoder_path), "output": str(chunks)}
    assert simlte_st.SentenceTransformer(str(chunks), device="cpu").encode(["ba " * 250]).shape == (1, 32)
    _, err = run(f"{command} --attention-window 32 --overwrite", capsys, 1)
    assert re.search("--attention-window 32 .*--backbone", err)


def test_append_lsa(
    encoder_path: Path, documents: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, source = tmp_path / "mine", tmp_path / "texts.jsonl"
    write_jsonl(source, ({"body": text} for text in documents))
    command = f"convert {encoder_path} --lsa {source} --text-column body --output {output}"
    out, err = run(f"{command} --dimension 5 --limit 30", capsys)
    assert "read 30 documents" in err
    assert "5 dimensions of latent semantic analysis" in out
    assert simlte_st.SentenceTransformer(str(output), device="cpu").get_embedding_dimension() == 37
    assert "--max-length cannot be combined" in run(f"{command} --max-length 300 --overwrite", capsys, 1)[1]


def test_distil(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("skeletoken", reason="needs the extra static")
    output = tmp_path / "fast"
    command = f"convert {encoder_path} --static --output {output}"
    assert "vectors of 12 dimensions" in run(f"{command} --dimension 12", capsys)[0]
    assert SentenceTransformer(str(output), device="cpu").encode("ba bun").shape == (12,)
    for wrong in ("--max-length 300", "--lsa x", "--limit 3"):
        assert f"{wrong.split()[0]} cannot be combined with" in run(f"{command} {wrong} --overwrite", capsys, 1)[1]
    other = f"convert {encoder_path} --output {tmp_path / 'x'} --seed 9"
    assert "--seed cannot be combined with" in run(other, capsys, 1)[1]


def test_export_static_model(static_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("model2vec", reason="needs the extra static")
    command = f"export {static_path} --output {tmp_path}/small --dimension 8"
    assert f'model2vec.StaticModel.from_pretrained("{tmp_path}/small")' in run(command, capsys)[0]
    assert json.loads(run(f"{command} --dtype int8 --overwrite --json", capsys)[0])["dimension"] == 8
