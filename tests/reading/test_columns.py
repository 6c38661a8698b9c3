"""Titles, and the types of the columns of documents."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import pytest

from simlte_st.data import Document
from simlte_st.reading.document import collect_columns, document_titles


def documents(**columns: list[Any]) -> list[Document]:
    count = len(next(iter(columns.values())))
    return [
        Document(str(n), f"Text {n}", metadata={name: values[n] for name, values in columns.items()})
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None], "number"),
        (["1", "2.5", ""], "number"),
        ([float("nan"), 1, 2], "number"),
        ([date(2020, 1, 1), datetime(2021, 1, 1, tzinfo=timezone.utc), None], "date"),
        (["2020-01-01", "2020-02-01T10:00:00", None], "date"),
        (["a", "b", "a"], "category"),
        ([True, False, True], "category"),
        (["a", "b", "c"], "text"),
        (["a", "a", "a"], "text"),
        ([None, None, None], "text"),
        ([["a"], {"b": 1}, 2], "text"),
        (["1", "inf", "2"], "text"),
        ([10**309, -(10**4000), 10**308 * 17], "text"),
        (["n/a", *map(str, range(19))], "number"),
        (["31.12.2020", *(f"2020-01-{day:02d}" for day in range(1, 20))], "date"),
        (["n/a", "none", *map(str, range(10))], "text"),
        ([f"label {number % 50}" for number in range(60)], "category"),
    ],
)
def test_column_kinds(values: list[Any], kind: str) -> None:
    [column] = collect_columns(documents(column=values))
    assert column.kind == kind
    assert all(isinstance(shown, str) for shown in column.short_values())
    assert len(column.to_arrow()) == len(values)


def test_dates_are_seconds() -> None:
    [column] = collect_columns(documents(day=["1970-01-02", None]))
    assert list(column.numbers) == [86_400.0, None]


def test_titles() -> None:
    corpus = documents(Title=["One <b>", "", "Three"], other=["x", "y", "z" * 500])
    columns = collect_columns(corpus)
    assert document_titles(corpus, columns) == ["One <b>", "Text 1", "Three"]
    assert document_titles(corpus, columns, "other")[0] == "x"
    assert len(document_titles(corpus, columns, "other")[2]) == 120
    assert document_titles([Document("a", "\n\n The first line \nsecond")], []) == ["The first line"]
    assert document_titles([Document("a", "Hello,\n\nwho knows the way?\nThanks")], []) == ["Hello, who knows the way?"]
    assert document_titles([Document("a", "12\n34")], []) == ["12 34"]
