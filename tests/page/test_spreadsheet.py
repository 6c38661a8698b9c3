from __future__ import annotations

import csv
import io

import pytest
from odd_texts import CELLS

from simlte_st.page.spreadsheet import as_cell, spreadsheet_csv


@pytest.mark.parametrize(("text", "cell"), CELLS.items())
def test_a_text_is_no_formula(text: str, cell: str) -> None:
    assert as_cell(text) == cell


@pytest.mark.parametrize("value", [-0.25, -3, 0, True, None, float("-inf")])
def test_numbers_stay_as_they_are(value: object) -> None:
    assert as_cell(value) is value


def test_a_table_is_read_as_it_was_written() -> None:
    rows = [{"id": text, "=cosine": -0.25, "a, b": 'say "yes"\nor no', "none": None} for text in CELLS]
    written = spreadsheet_csv(rows)
    read = list(csv.DictReader(io.StringIO(written, newline="")))
    assert [row["id"] for row in read] == list(CELLS.values())
    assert {(row["'=cosine"], row["a, b"], row["none"]) for row in read} == {("-0.25", 'say "yes"\nor no', "")}
    assert all(line.startswith('"') for line in written.splitlines()[:2])
