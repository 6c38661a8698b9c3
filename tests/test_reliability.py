"""Each promise on the page names an existing test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability.md"
TEST = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


def test_every_promise_names_an_existing_test() -> None:
    _, *promises = re.split(r"^- \*\*", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(promises) > 10
    for promise in promises:
        found = TEST.findall(promise)
        assert found, f"no test: {promise}"
        for name, file in found:
            assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {name}"
