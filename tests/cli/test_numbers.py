"""Every option of every command that is a number."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from simlte_st.cli.main import build_parser, main
from simlte_st.cli.parser import CommandParser

BAD = {
    "N": ("1.5", "x", "nan", "inf", "1e9", "99999999999999999999", "-99999999999999999999"),
    "X": ("x", "nan", "inf", "-inf", "1e999", ""),
}


def leaves(parser: CommandParser) -> Iterator[CommandParser]:
    children = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not children:
        yield parser
    for action in children:
        for child in action.choices.values():
            yield from leaves(child)


NUMBERS = [
    (parser, action)
    for parser in leaves(build_parser())
    for action in parser._actions
    if isinstance(action.metavar, str) and re.match(r"[NX]\b", action.metavar)
]


def test_all_numbers_say_so() -> None:
    for parser in leaves(build_parser()):
        for action in parser._actions:
            assert action.type not in (int, float), f"{parser.prog} {action.option_strings}"
            if isinstance(action.default, (int, float)) and not isinstance(action.default, bool):
                assert action.metavar is not None, f"{parser.prog} {action.option_strings}"
    assert len(NUMBERS) > 60


@pytest.mark.parametrize(
    ("parser", "action"), NUMBERS, ids=lambda each: getattr(each, "prog", None) or each.option_strings[0]
)
def test_the_parser_refuses_what_is_not_a_number_or_out_of_range(
    parser: CommandParser, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    option = action.option_strings[0]
    for bad in BAD[str(action.metavar)[0]]:
        with pytest.raises(SystemExit) as end:
            parser.parse_args([f"{option}={bad}"])
        assert end.value.code == 2
        assert f"error: argument {'/'.join(action.option_strings)}: " in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "options",
    [
        "--epochs 0", "--epochs -1", "--epochs 1e300", "--learning-rate 0", "--learning-rate -0.1", "--warmup 1",
        "--warmup -0.1", "--scale 0", "--mlm-weight -1", "--mlm-share 0", "--mlm-share 1.5", "--mlm-probability 0",
        "--mlm-probability 2", "--dropout 1", "--attention-dropout -1", "--batch-size 1", "--held-out 0.6",
        "--held-out -1", "--p 0", "--p 1", "--least 2 --view crop", "--keep-sentence 2 --view inverse-cloze",
        "--block 5-2 --unit block",
    ],
)  # fmt: skip
def test_what_only_the_library_knows_is_told_in_a_sentence(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(f"train nowhere --base b --output {tmp_path / 'm'} {options}")) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"simlte: {options.split()[0]}"), said
    assert "should not happen" not in said
    assert not list(tmp_path.iterdir())
