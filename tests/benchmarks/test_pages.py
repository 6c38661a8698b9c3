from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pages import RESULTS, document, records, render
from simlte_st.files import read_json


@pytest.mark.parametrize("path", records(), ids=lambda path: str(path.relative_to(RESULTS)))
def test_pages_are_made_of_their_records(path: Path) -> None:
    """Where this fails: python -m benchmarks.pages."""
    assert render(path.stem, read_json(path)) == path.with_suffix(".md").read_text(encoding="utf-8")


def test_a_document_has_an_empty_line_between_its_parts() -> None:
    machines = [{"device": "a", "cores": 2}, {"device": "b"}]
    page = document("# Title", "Text.", machines=machines, command="python -m it")
    assert page == "# Title\n\nText.\n\n- device a, cores 2\n- device b\n\n    python -m it\n"
    assert document("# Title") == "# Title\n"
