from __future__ import annotations

import shlex

import pytest
from cli_support import parsers

from simlte_st.cli.main import build_parser, main

PARSERS = {parser.prog: parser for parser in parsers(build_parser())}


@pytest.mark.parametrize("name", PARSERS)
def test_the_examples_of_every_help_are_command_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = PARSERS[name]
    assert any(line.startswith(name) for line in parser.examples)
    assert max(map(len, parser.format_help().splitlines())) <= 80
    for line in parser.examples:
        assert f"  {line}\n" in parser.format_help()
        words = shlex.split(line)
        if "--help" not in words:
            assert callable(build_parser().parse_args(words[1:]).run)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("train", "simlte train: error: the following arguments are required: SOURCE"),
        ("train x --epoch 3", "unrecognized arguments: --epoch 3. Did you mean '--epochs'?"),
        ("evaluate m --data x --wholly-different-thing", "unrecognized arguments: --wholly-different-thing.\n"),
        ("train x --limit few", "argument --limit: 'few' is not a whole number\n"),
        ("trian x", "argument COMMAND: invalid choice: 'trian'"),
    ],
)
def test_wrong_arguments_are_told_in_two_lines(command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(shlex.split(command))
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    [advice] = told.splitlines()[1:]
    assert advice.startswith(f"{told.partition(': error: ')[0]} --help ")
