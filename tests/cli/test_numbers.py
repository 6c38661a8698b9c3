"""Every number that is an option of some command."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from simlte_st.cli import numbers
from simlte_st.cli.main import build_parser, main
from simlte_st.cli.parser import CommandParser

BAD = {
    numbers.count: ("0", "-1", "1.5", "x", "nan", "inf", "1e9", "99999999999999999999"),
    numbers.count_from_zero: ("-1", "1.5", "x", "nan", "inf", "99999999999999999999"),
    numbers.seed: ("-1", "1.5", "x", "nan", "inf", "4294967296"),
    numbers.whole_number: ("1.5", "x", "nan", "inf", "99999999999999999999"),
    numbers.finite_number: ("x", "nan", "inf", "-inf", "1e999", ""),
    numbers.number_or_base: ("0", "-1", "x", "Base", "1.5", "99999999999999999999"),
    numbers.number_or_range: ("0", "-1", "x", "1-x", "0-3", "1.5", "99999999999999999999"),
}
GOOD = {
    numbers.count: "7",
    numbers.count_from_zero: "0",
    numbers.seed: "4294967295",
    numbers.whole_number: "-1",
    numbers.finite_number: "-0.5",
    numbers.number_or_base: "base",
    numbers.number_or_range: "2-12",
}


def leaves(parser: CommandParser) -> Iterator[CommandParser]:
    children = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not children:
        yield parser
    for action in children:
        for child in action.choices.values():
            yield from leaves(child)


OPTIONS = [
    (parser, action)
    for parser in leaves(build_parser())
    for action in parser._actions
    if action.type is not None and action.type in BAD
]


def test_all_numbers_are_read_by_these() -> None:
    for parser in leaves(build_parser()):
        for action in parser._actions:
            assert action.type not in (int, float), f"{parser.prog} {action.option_strings}"
    assert {action.type for _, action in OPTIONS} == BAD.keys()
    assert len(OPTIONS) > 40


@pytest.mark.parametrize(
    ("parser", "action"), OPTIONS, ids=lambda each: getattr(each, "prog", None) or each.option_strings[0]
)
def test_what_is_no_number_or_out_of_range_is_told_by_the_parser(
    parser: CommandParser, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    option = action.option_strings[0]
    parser.exit_on_error = True
    for bad in BAD[action.type]:  # type: ignore[index]
        with pytest.raises(SystemExit) as end:
            parser.parse_args([f"{option}={bad}"])
        assert end.value.code == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"error: argument {option}: " in said
    taken = argparse.ArgumentParser()
    taken.add_argument(option, type=action.type)
    assert taken.parse_args([f"{option}={GOOD[action.type]}"])  # type: ignore[index]


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
