"""Update the table of lines of code in CONTRIBUTING.md, without comments, blank lines and docstrings.

    make sizes

``tests/test_sizes.py`` checks the limits.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
PAGE = CHECKOUT / "CONTRIBUTING.md"
HEAD = "| room | lines of code |\n|---|---:|\n"
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip


def count_lines(source: str) -> int:
    """Count the lines of code. Strings that document attributes are docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", [])
        for statement in body if isinstance(body, list) else []:
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                docstrings.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


def sizes(folder: str) -> dict[str, int]:
    """Count the lines of a folder by subfolder; modules directly in it form one group."""
    lines: Counter[str] = Counter()
    for path in (CHECKOUT / folder).rglob("*.py"):
        parts = path.relative_to(CHECKOUT / folder).parts
        lines[f"{folder}/{parts[0]}/" if len(parts) > 1 else f"{folder}/"] += count_lines(path.read_text("utf-8"))
    return dict(sorted(lines.items()))


def total(folder: str) -> int:
    """Count all lines of a folder."""
    return sum(sizes(folder).values())


def table() -> str:
    """Return the table: the package by subfolder, and a row for each other folder."""
    rows = {**sizes("simlte_st"), "all of `simlte_st/`": total("simlte_st")}
    rows |= {f"all of `{folder}/`": total(folder) for folder in ("benchmarks", "tests")}
    return HEAD + "".join(f"| {name if '`' in name else f'`{name}`'} | {lines:,} |\n" for name, lines in rows.items())


if __name__ == "__main__":
    before, _, after = PAGE.read_text(encoding="utf-8").partition(HEAD)
    PAGE.write_text(before + table() + "\n" + after.partition("\n\n")[2], encoding="utf-8")
