"""The table of bases agrees with what works on a tiny model of each kind."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from bases_support import BASES, group_status, try_base

PAGE = Path(__file__).parents[2] / "docs" / "bases.md"
ROWS = re.findall(r"^\| (.*?) \| .*? \| ((?:(?:yes|no) \| ){4})", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

pytestmark = pytest.mark.skipif(  # not imported here: LanceDB reads its log level once per process
    not all(importlib.util.find_spec(extra) for extra in ("lancedb", "model2vec", "onnx", "onnxruntime")),
    reason="needs extras",
)


@pytest.mark.parametrize("name", BASES)
def test_base_works_as_documented(name: str, tmp_path: Path) -> None:
    if BASES[name].missing:
        pytest.skip(BASES[name].missing)
    found = group_status(try_base(BASES[name], tmp_path))
    assert (name, found) in [(kind, re.findall("yes|no", row)) for kind, row in ROWS]


def test_table_lists_all_bases() -> None:
    assert [kind for kind, _ in ROWS] == [*BASES]
