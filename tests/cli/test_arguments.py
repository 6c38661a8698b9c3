from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import huggingface_hub
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.cli.arguments import expand_sources, print_result
from simlte_st.cli.main import build_parser, main
from simlte_st.errors import DataError


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


def test_results_are_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"name": "\x1b[2J\x9b\u202ea", "mean": float("nan"), "text": "Größe"}
    print_result(argparse.Namespace(json=True, flags={}), "for people", values)
    out = capsys.readouterr().out
    assert json.loads(out) == {**values, "mean": None}
    assert "Größe" in out
    assert not {"\x1b", "\x9b", "\u202e"} & set(out)
    print_result(argparse.Namespace(json=False, flags={}), "for people", values)
    assert capsys.readouterr().out == "for people\n"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a few files."""
    for name in ("notes/b.txt", "notes/a.txt", "notes/deep/c.txt", "a[1].txt", "rows.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"text": "one two"}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_patterns_are_replaced_by_what_they_match(notes: Path) -> None:
    assert expand_sources(["notes/*.txt"]) == ["notes/a.txt", "notes/b.txt"]
    assert expand_sources(["rows.jsonl", "notes/**/*.txt"]) == [
        "rows.jsonl", "notes/a.txt", "notes/b.txt", "notes/deep/c.txt"
    ]  # fmt: skip
    assert expand_sources(["a[1].txt"]) == ["a[1].txt"], "a name that is there is no pattern"
    assert expand_sources(["hub:name:train[:10%]", "notes"]) == ["hub:name:train[:10%]", "notes"]
    assert expand_sources(["20news"]) == ["20news"]
    with pytest.raises(DataError, match=r"No file or folder matches the pattern 'notes/\*\.csv'"):
        expand_sources(["rows.jsonl", "notes/*.csv"])
    with pytest.raises(DataError, match=r"no file or folder 'nothing\.jsonl'"):
        expand_sources(["rows.jsonl", "nothing.jsonl"])


@pytest.mark.parametrize(
    "command",
    [
        "train SOURCE --output out",
        "encode model SOURCE --output out.parquet",
        "index model SOURCE --output out",
        "analyze redundancy SOURCE",
        "analyze attention SOURCE --model model",
        "analyze layers SOURCE --model model",
        "evaluate model --data SOURCE",
        "evaluate model --data rows.jsonl --test-data SOURCE",
    ],
)
def test_every_command_takes_several_sources(command: str, notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "test_data" if "--test-data" in command else "data" if "--data" in command else "source"

    def parsed(*sources: str) -> object:
        words = [part for word in command.split() for part in (sources if word == "SOURCE" else [word])]
        return getattr(build_parser().parse_args(words), name)

    assert parsed("rows.jsonl") == "rows.jsonl"
    assert parsed("rows.jsonl", "notes/*.txt") == ["rows.jsonl", "notes/a.txt", "notes/b.txt"]
    with pytest.raises(SystemExit) as end:
        parsed("notes/*.csv")
    assert end.value.code == 1
    assert capsys.readouterr().err == "simlte: No file or folder matches the pattern 'notes/*.csv'.\n"


def test_several_sources_are_read_and_copies_told(
    notes: Path, encoder_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = ["notes", "rows.jsonl", "a[[]1].txt"]
    assert main(["encode", str(encoder_path), *sources, "--output", "v.parquet", "--quiet"]) == 0
    assert "read 5 documents (83 characters); 3 are copies of others" in "".join(capsys.readouterr())
    assert main(["analyze", "layers", "notes", "rows.jsonl", "--model", "no", "--output", "rows.jsonl"]) == 1
    assert "rows.jsonl holds the documents (rows.jsonl)" in capsys.readouterr().err


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
