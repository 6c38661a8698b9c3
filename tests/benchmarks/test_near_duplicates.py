from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import near_duplicates
from simlte_st.data import find_duplicates
from simlte_st.files import read_json


def test_times_by_kind_and_number(tmp_path: Path) -> None:
    near_duplicates.main(["--mails", "20", "40", "--output", str(tmp_path)])
    kinds = read_json(tmp_path / "near_duplicates.json")["kinds"]
    assert {name: [each["documents"] for each in found] for name, found in kinds.items()} == {
        name: [20, 40] for name in near_duplicates.KINDS
    }
    page = (tmp_path / "near_duplicates.md").read_text()
    assert "python -m benchmarks.near_duplicates --mails 20 40" in page
    assert [line.split("|")[1].strip() for line in page.splitlines()[-20:] if line.startswith("| a form")]


@pytest.mark.parametrize("name", ["one number differs", "nine words of its own", "a form with five fields"])
def test_mails_of_one_template_are_near_each_other(name: str) -> None:
    texts = list(islice(near_duplicates.KINDS[name](random.Random(0)), 30))
    assert len(set(texts)) == 30
    whole = find_duplicates(texts, threshold=0.5).report
    assert whole.near == 29
    assert whole.exact == 0
