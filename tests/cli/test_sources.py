"""Sources on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simlte_st.cli.main import main


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a few files."""
    for name in ("notes/b.txt", "notes/a.txt", "notes/deep/c.txt", "rows.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"text": "one two"}')
    pq.write_table(pa.table({"text": ["one two", "three"]}), tmp_path / "table.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_take_several_sources(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedupe", "rows.jsonl", "table.parquet", "--output", "out.jsonl"]) == 0
    assert "read 3 documents" in capsys.readouterr().err
    assert main(["dedupe", "rows.jsonl", "nothing.jsonl", "--output", "out.jsonl"]) == 1
    assert "no file or folder 'nothing.jsonl'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "train notes --output .",
        "encode MODEL rows.jsonl table.parquet --output table.parquet",
        "index MODEL notes --output notes",
        "dedupe rows.jsonl --output rows.jsonl",
        "explore MODEL table.parquet --output table.html",
        "convert MODEL --lsa rows.jsonl --output rows.jsonl",
        "encode MODEL notes/a.txt --output notes/a.txt",
    ],
)
def test_commands_do_not_overwrite_their_source(
    command: str, notes: Path, static_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in notes.rglob("*") if path.is_file()}
    overwrite = "" if command.startswith("index") else " --overwrite"
    assert main(f"{command.replace('MODEL', str(static_path))} --quiet{overwrite}".split()) == 1
    assert re.search("would overwrite the input documents|would replace the documents", capsys.readouterr().err)
    assert {path: path.read_bytes() for path in notes.rglob("*") if path.is_file()} == before


def test_empty_name_is_not_the_working_directory(
    notes: Path, static_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(notes.rglob("*"))
    for command in (
        ["train", "", "--output", "m"],
        ["train", "rows.jsonl", "--output", ""],
        ["encode", "", "rows.jsonl", "--output", "v.parquet"],
        ["convert", str(static_path), "--output", ""],
    ):
        assert main([*command, "--quiet"]) == 1, command
        assert "This is a bug" not in capsys.readouterr().err
    assert sorted(notes.rglob("*")) == before
