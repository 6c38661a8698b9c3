"""The project stays within its caps on lines of code."""

from __future__ import annotations

import pytest
from write_sizes import CHECKOUT, count_lines, total

CAPS = {"simlte_st": 14_500, "benchmarks": 7_000, "tests": 18_000}
"""Maximum lines of code in each folder."""


@pytest.mark.parametrize(("folder", "most"), CAPS.items())
def test_no_folder_exceeds_its_cap(folder: str, most: int) -> None:
    assert total(folder) <= most, f"remove something from {folder}/: the cap stays"


def test_files_stay_short() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in CHECKOUT.glob("simlte_st/**/*.py")}
    assert {path: count for path, count in lines.items() if count > 400} == {}


def test_only_code_counts() -> None:
    lines = ['"""Two', 'lines."""', "", "# A comment.", 'x = """not', 'a docstring"""', "", "", "def f():"]
    source = "\n".join([*lines, '    """One."""', "    return x  # y", ""])
    assert count_lines(source) == 4
