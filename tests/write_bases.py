"""The table of ``docs/bases.md``: which kinds of models work with which commands.

    make bases

tries all of them and writes the table anew; ``tests/models/test_bases.py`` tries them too, and compares.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

PAGE = Path(__file__).parent.parent / "docs" / "bases.md"
HEAD = (
    "| kind | for example | `encode`, `index`, `search` | `train` | `compare` | `export` | what is said |\n"
    "|---|---|---|---|---|---|---|\n"
)


def rows() -> list[str]:
    """Read the lines of the table."""
    return PAGE.read_text(encoding="utf-8").partition(HEAD)[2].partition("\n\n")[0].strip().split("\n")


def write() -> None:
    """Try all kinds and write the table."""
    from bases_support import BASES, row_of, try_base

    lines = []
    for name, one in BASES.items():
        if one.missing:
            raise SystemExit(f"{one.missing}: write the table with a newer one.")
        with TemporaryDirectory() as folder:
            os.environ["SIMLTE_ST_HOME"] = f"{folder}/home"
            lines.append(row_of(name, try_base(one, Path(folder))))
    before, _, after = PAGE.read_text(encoding="utf-8").partition(HEAD)
    PAGE.write_text(before + HEAD + "\n".join(lines) + "\n\n" + after.partition("\n\n")[2], encoding="utf-8")


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    write()
