"""The table of bases is what comes out when a tiny model of each kind goes through every command."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from bases_support import BASES, row_of, try_base
from write_bases import rows

pytestmark = pytest.mark.skipif(  # not imported here: LanceDB reads the level of its log once in a process
    not all(importlib.util.find_spec(extra) for extra in ("lancedb", "onnx", "onnxruntime")), reason="needs extras"
)


@pytest.mark.parametrize("name", BASES)
def test_a_base(name: str, tmp_path: Path) -> None:
    if BASES[name].missing:
        pytest.skip(BASES[name].missing)
    assert row_of(name, try_base(BASES[name], tmp_path)) in rows(), "the table is old: make bases"


def test_the_table_has_these_bases() -> None:
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows()] == [*BASES]
