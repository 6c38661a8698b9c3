from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from simlte_st.cli.main import build_parser, main
from simlte_st.cli.parser import CommandParser, utf8_words


def parsers(parser: CommandParser) -> Iterator[CommandParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)


PARSERS = {parser.prog: parser for parser in parsers(build_parser())}


@pytest.mark.parametrize("name", PARSERS)
def test_the_examples_of_every_help_are_command_lines(name: str) -> None:
    parser = PARSERS[name]
    assert 2 <= len(parser.examples) <= 4
    assert any(line.startswith(name) for line in parser.examples)
    for line in parser.examples:
        assert f"  {line}\n" in parser.format_help()
        assert len(line) <= 78
        words = shlex.split(line)
        assert words[0] == "simlte"
        if "--help" not in words:
            assert callable(build_parser().parse_args(words[1:]).run)


def test_the_help_still_wraps_what_it_describes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for parser in PARSERS.values():
        assert max(map(len, parser.format_help().splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("train", "simlte train: error: the following arguments are required: SOURCE"),
        ("train x --epoch 3", "unrecognized arguments: --epoch 3. Did you mean --epochs?"),
        ("train --epoch 3", "Did you mean --epochs?"),
        ("encode m x --outptu=v.parquet", "are required: --output. Did you mean --output?"),
        ("evaluate m --data x --wholly-different-thing", "unrecognized arguments: --wholly-different-thing\n"),
        ("train x --limit few", "argument --limit: 'few' is not a whole number\n"),
        ("models buid --seed 3", "argument ACTION: invalid choice: 'buid'"),
        ("search articles.index words --quiet --seed 3", "unrecognized arguments: --quiet --seed 3"),
        ("--versoin", "Did you mean --version?"),
    ],
)
def test_wrong_arguments_are_told_in_a_few_lines(
    command: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as end:
        main(shlex.split(command))
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    prog = told.partition(": error: ")[0]
    [advice] = told.splitlines()[1:]
    assert advice.startswith(f"{prog} --help ")
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main(shlex.split(command))
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 60


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("trian texts", "train"),
        ("models lst", "list"),
        ("train texts --pooling mena", "mean"),
        ("train texts --view crpo", "crop"),
        ("train texts --output m --preset docsplit-brt", "docsplit-bert"),
        ("encode simlte-brt texts --output v.parquet", "simlte-bert"),
        ("encode modle texts --output v.parquet", "model"),
        ("encode model text --output v.parquet", "texts"),
        ("encode model rows.jsonl --text-column bdy --output v.parquet", "body"),
        ("search articles.indx word", "articles.index"),
        ("models remove simlte-brt", "mine"),
    ],
)
def test_a_misspelled_name_is_answered_by_the_nearest(
    command: str,
    meant: str,
    encoder_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIMLTE_ST_HOME", str(tmp_path / "home"))
    shutil.copytree(encoder_path, "model")
    shutil.copytree(encoder_path, tmp_path / "home" / "models" / "mine")
    Path("texts").mkdir()
    Path("texts/a.txt").write_text("A text.")
    Path("rows.jsonl").write_text('{"body": "A text.", "other": "Another."}')
    Path("articles.index").mkdir()
    Path("articles.index/settings.json").write_text('{"format": 1}')
    if meant == "mine":
        command = "models remove mien"
    try:
        status: object = main(shlex.split(command))
    except SystemExit as end:
        status = end.code
    assert status in (1, 2)
    assert f"Did you mean {meant!r}?" in " ".join(capsys.readouterr().err.split())


def test_words_that_are_no_utf8_are_mended_and_places_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    latin = os.fsdecode(b"caf\xe9")
    words = [f"{latin} au lait", f"--where={latin}", "caf\u00e9", "--top", "5"]
    assert utf8_words(words) == ["caf\ufffd au lait", "--where=caf\ufffd", "caf\u00e9", "--top", "5"]
    assert capsys.readouterr().err.count("is not UTF-8") == 2
    os.mkdir(latin)
    assert utf8_words([latin, f"--data={latin}", f"{latin}/new"]) == [latin, f"--data={latin}", f"{latin}/new"]
    assert capsys.readouterr().err == ""
