from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

import pytest

from simlte_st.cli.main import build_parser, main
from simlte_st.cli.parser import CommandParser


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
        ("train x --limit few", "argument --limit: 'few' is no whole number\n"),
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
    assert told.splitlines()[1:] == [f"{prog} --help lists all arguments, with examples."]
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main(shlex.split(command))
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 60
