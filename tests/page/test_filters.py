from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from simlte_st.data.columns import Column, column_of
from simlte_st.page.filters import condition, from_address, limits, to_address, usable

KIND = column_of("kind", ["a'b", "c", "c", None])
YEAR = column_of("year", [2001, 2003, None])
SHARE = column_of("share", [0.5, 1.25])
DAY = column_of("day", ["2020-01-02", "2020-03-01T10:00"])
TRUE = column_of("is_new", [True, False, True])


@pytest.mark.parametrize(
    ("column", "value", "sql", "address"),
    [
        (KIND, ["a'b", "c"], "`kind` IN ('a''b', 'c')", ["a'b", "c"]),
        (KIND, [], None, []),
        (TRUE, ["True"], "`is_new` IN (True)", ["True"]),
        (YEAR, (2002, 2003), "`year` >= 2002 AND `year` <= 2003", ["2002..2003"]),
        (YEAR, (2001, 2003), None, []),
        (SHARE, (0.5, 1.0), "`share` >= 0.5 AND `share` <= 1.0", ["0.5..1.0"]),
        (
            DAY,
            (date(2020, 1, 2), date(2020, 2, 1)),
            "`day` >= '2020-01-02' AND `day` < '2020-02-02'",
            ["2020-01-02..2020-02-01"],
        ),
        (DAY, (date(2020, 1, 2),), None, []),  # the second day is not chosen yet
    ],
)
def test_a_filter_is_sql_and_a_part_of_the_address(
    column: Column, value: Any, sql: str | None, address: list[str]
) -> None:
    assert condition(column, value) == sql
    assert to_address(column, value) == address
    if address:
        assert from_address(column, address) == (value, [])


def test_an_address_is_taken_for_what_it_can_be() -> None:
    assert limits(DAY) == (date(2020, 1, 2), date(2020, 3, 1))
    assert from_address(DAY, []) == (limits(DAY), [])
    assert from_address(YEAR, ["1900..2002"]) == ((2001, 2002), [])


@pytest.mark.parametrize(
    ("column", "texts", "value", "strange"),
    [
        (KIND, ["c", "d"], ["c"], ["d"]),
        (TRUE, ["yes"], [], ["yes"]),
        (YEAR, ["x..y"], (2001, 2003), ["x..y"]),
        (YEAR, ["2002"], (2001, 2003), ["2002"]),
        (YEAR, ["2003..2002"], (2001, 2003), ["2003..2002"]),
        (YEAR, ["1900..1950"], (2001, 2003), ["1900..1950"]),
        (YEAR, ["2002..2003", "2001..2001"], (2002, 2003), ["2001..2001"]),
        (SHARE, ["nan..1.0"], (0.5, 1.25), ["nan..1.0"]),
        (DAY, ["2020-13-01..2020-14-01"], limits(DAY), ["2020-13-01..2020-14-01"]),
    ],
)
def test_what_an_address_asks_in_vain_is_told(column: Column, texts: list[str], value: Any, strange: list[str]) -> None:
    assert from_address(column, texts) == (value, strange)


def test_columns_without_a_menu() -> None:
    numbers_as_text, one_value = column_of("code", ["1", "2"]), column_of("one", [1, 1])
    texts = column_of("text", ["a", "b"])
    assert usable([KIND, YEAR, DAY, TRUE, numbers_as_text, one_value, texts]) == [KIND, YEAR, DAY, TRUE]
