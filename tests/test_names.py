"""Names say what they hold or do: no ``each`` and ``found``, no ``rows_of``, no bare participle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from write_sizes import CHECKOUT

VAGUE = re.compile(
    "again|alike|alone|apart|asked|both|drawn|each|every|few|found|given|here|kept|known|least|made|more|most|one|"
    "others?|own|read|said|shown|taken|there|told|wanted|whole"
)
PARTICIPLE = re.compile(r"_*(\w*[^e]ed|drawn|found|given|kept|known|made|read|shown|taken|told|written)")
ALLOWED = {"changed", "embed", "_embed", "installed", "read"}
"""Verbs, and methods that users call."""


def nodes(folder: str) -> Iterator[ast.AST]:
    for path in (CHECKOUT / folder).rglob("*.py"):
        yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("folder", ["simlte_st", "benchmarks"])
def test_names_say_what_they_hold_or_do(folder: str) -> None:
    names, functions = [], []
    for node in nodes(folder):
        if isinstance(node, ast.arg):
            names.append(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.FunctionDef):
            functions.append(node.name)
    vague = [name for name in names if VAGUE.fullmatch(name)]
    assert len(vague) < 0.003 * len(names), vague
    assert [name for name in functions if name.endswith("_of")] == []
    participles = [name for name in functions if "_" not in name.strip("_") and PARTICIPLE.fullmatch(name)]
    assert set(participles) <= ALLOWED
