"""Sources on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simlte_st.cli.main import build_parser, main
from simlte_st.cli.sources import expand_sources
from simlte_st.errors import DataError


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
    with pytest.raises(DataError, match=r"pattern 'notes/\*\.csv'"):
        expand_sources(["rows.jsonl", "notes/*.csv"])
    with pytest.raises(DataError, match=r"no file .*'nothing\.jsonl'"):
        expand_sources(["rows.jsonl", "nothing.jsonl"])


@pytest.mark.parametrize(
    "command",
    [
        "train SOURCE --output out",
        "encode model SOURCE --output out.parquet",
        "index model SOURCE --output out",
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
    assert re.fullmatch(r"simlte: .*'notes/\*\.csv'\.\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    "command",
    [
        "train rows.jsonl --output rows.jsonl",
        "train notes --output .",
        "encode MODEL rows.jsonl --output rows.jsonl",
        "encode MODEL table.parquet --output table.parquet",
        "encode MODEL rows.jsonl table.parquet --output table.parquet",
        "index MODEL notes --output notes",
        "dedupe rows.jsonl --output rows.jsonl",
        "dedupe rows.jsonl copies.jsonl --output rows.jsonl --exact",
        "dedupe kept.removed.jsonl --output kept.jsonl",
        "explore MODEL table.parquet --output table.html",
        "explore MODEL notes --output notes/pile.html",
        "convert MODEL --lsa rows.jsonl --output rows.jsonl",
        "convert MODEL --lsa notes --output .",
        "evaluate MODEL --data rows.jsonl --output rows.jsonl",
    ],
)
def test_no_command_replaces_its_documents(
    command: str, notes: Path, encoder_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("copies.jsonl", "kept.removed.jsonl"):
        (notes / name).write_bytes((notes / "rows.jsonl").read_bytes())
    pq.write_table(pa.table({"text": ["one two", "three"]}), notes / "table.parquet")
    before = {path: path.read_bytes() for path in notes.rglob("*") if path.is_file()}
    overwrite = "" if command.startswith("index") else " --overwrite"
    assert main(f"{command.replace('MODEL', str(encoder_path))} --quiet{overwrite}".split()) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert re.search("holds the documents|would replace the documents|would be read as one of the documents", said)
    assert {path: path.read_bytes() for path in notes.rglob("*") if path.is_file()} == before


def test_an_empty_name_is_not_the_working_folder(
    notes: Path, encoder_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (notes / "document.txt").write_text("one two")
    for command in (
        ["train", "", "--output", "m"],
        ["train", "rows.jsonl", "--output", ""],
        ["encode", str(encoder_path), "", "--output", "v.parquet"],
        ["encode", str(encoder_path), "rows.jsonl", "--output", ""],
        ["encode", "", "rows.jsonl", "--output", "v.parquet"],
        ["dedupe", " ", "--output", "k.jsonl"],
        ["dedupe", "rows.jsonl", "--output", ""],
        ["compare", ""],
        ["index", str(encoder_path), "", "--output", "ix"],
        ["evaluate", str(encoder_path), "--data", ""],
        ["explore", "", "rows.jsonl", "--output", "p.html"],
        ["convert", "", "--output", "m"],
        ["convert", str(encoder_path), "--output", ""],
    ):
        assert main([*command, "--quiet"]) == 1, command
        said = " ".join(capsys.readouterr().err.split())
        assert "This should not happen" not in said
        assert re.search(
            "no file or folder|does not name a file|holds the documents|a name that ends in|there is no such", said
        ), said
    assert sorted(path.name for path in notes.iterdir()) == ["a[1].txt", "document.txt", "notes", "rows.jsonl"]


def test_several_sources_are_read_and_copies_told(
    notes: Path, encoder_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = ["notes", "rows.jsonl", "a[[]1].txt"]
    assert main(["encode", str(encoder_path), *sources, "--output", "v.parquet", "--quiet"]) == 0
    assert re.search(r"5 documents \(83 .*'text'; 3 are duplicates", "".join(capsys.readouterr()))
    assert main(["evaluate", "no", "--data", "notes", "rows.jsonl", "--output", "rows.jsonl"]) == 1
    assert "rows.jsonl holds the documents" in capsys.readouterr().err
