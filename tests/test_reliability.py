"""The page of what happens when something is wrong names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability.md"
TEST = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


def names_of(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def rows() -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return [row for row in cells if row[0] != "what comes in"]


def test_every_line_has_a_test_that_is_there() -> None:
    assert len(rows()) > 30
    for row in rows():
        assert len(row) == 3, row
        found = TEST.findall(row[2])
        assert found, f"no test: {row[0]}"
        assert TEST.sub("", row[2]).replace("<br>", "").strip() == "", f"something that is no link to a test: {row[2]}"
        for name, file in found:
            assert (ROOT / file).is_file(), file
            assert name in names_of(ROOT / file), f"{file} has no {name}"


def test_no_input_is_told_twice() -> None:
    told = [row[0] for row in rows()]
    assert len(told) == len(set(told))
