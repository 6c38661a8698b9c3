"""Lines of the package by room, as CONTRIBUTING.md has them: code and docstrings, without comments and blank lines.

    make sizes

writes the table anew. A room that grows changes the table in the same commit, whose message says why.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
PACKAGE = CHECKOUT / "simlte_st"
TABLE = CHECKOUT / "CONTRIBUTING.md"
HEAD = "| room | code | docstrings |\n|---|---:|---:|\n"
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip


def lines_of(source: str) -> tuple[int, int]:
    """Return the lines of code and of docstrings; strings that document an attribute are docstrings, too."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", [])
        for each in body if isinstance(body, list) else []:
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                docstrings.update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings), len(docstrings)


def sizes() -> dict[str, tuple[int, int]]:
    """Return lines of code and of docstrings by room; modules beside the rooms are one together."""
    code: Counter[str] = Counter()
    docstrings: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        room = parts[0] if len(parts) > 1 else "(root)"
        lines = lines_of(path.read_text(encoding="utf-8"))
        code[room] += lines[0]
        docstrings[room] += lines[1]
    return {room: (code[room], docstrings[room]) for room in sorted(code)}


def allowed() -> dict[str, tuple[int, int]]:
    """Read the table."""
    text = TABLE.read_text(encoding="utf-8").partition(HEAD)[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(.+?)` \| ([\d,]+) \| ([\d,]+) \|$", text, re.MULTILINE)
    return {room: (int(code.replace(",", "")), int(docs.replace(",", ""))) for room, code, docs in rows}


if __name__ == "__main__":
    rows = "".join(f"| `{room}` | {code:,} | {docs:,} |\n" for room, (code, docs) in sizes().items())
    before, _, after = TABLE.read_text(encoding="utf-8").partition(HEAD)
    TABLE.write_text(before + HEAD + rows + "\n" + after.partition("\n\n")[2], encoding="utf-8")
