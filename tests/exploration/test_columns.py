from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pytest

from simlte_st.data import Document
from simlte_st.exploration.columns import apart_from_ours, columns_of, titles_of
from simlte_st.exploration.follow import follow


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
        (["n/a", *map(str, range(19))], "number"),
        (["31.12.2020", *(f"2020-01-{day:02d}" for day in range(1, 20))], "date"),
        (["n/a", "none", *map(str, range(10))], "text"),
        ([f"label {number % 50}" for number in range(60)], "category"),
    ],
)
def test_kinds(values: list[Any], kind: str) -> None:
    [column] = columns_of(documents(column=values))
    assert column.kind == kind
    assert all(isinstance(shown, str) for shown in column.shown())
    assert len(column.to_arrow()) == len(values)


def test_columns_that_are_called_as_ours() -> None:
    columns = columns_of(documents(x=[1, 2], x_=[3, 4], topic=["a", "b"], y_=[5, 6], y=[7, 8]))
    named = apart_from_ours(columns)
    assert [column.name for column in named] == ["x_", "x__", "topic_", "y_", "y__"]
    assert [list(column.values) for column in named] == [list(column.values) for column in columns]


def test_dates_are_seconds() -> None:
    [column] = columns_of(documents(day=["1970-01-02", None]))
    assert list(column.numbers) == [86_400.0, None]


def test_titles() -> None:
    pile = documents(Title=["One <b>", "", "Three"], other=["x", "y", "z" * 500])
    columns = columns_of(pile)
    assert titles_of(pile, columns) == ["One <b>", "Text 1", "Three"]
    assert titles_of(pile, columns, "other")[0] == "x"
    assert len(titles_of(pile, columns, "other")[2]) == 120
    assert titles_of([Document("a", "\n\n The first line \nsecond")], []) == ["The first line"]
    assert titles_of([Document("a", "Hello,\n\nwho knows the way?\nThanks")], []) == ["Hello, who knows the way?"]
    assert titles_of([Document("a", "12\n34")], []) == ["12 34"]


def test_topics_beside_classes_and_dates() -> None:
    assigned = np.array([0, 0, 1, 1, -1, 1])
    pile = documents(
        kind=["<a>", "<a>", "b", "b", "b", None],
        day=[f"20{number // 2:02d}-01-01" for number in range(6)],
        own=[f"20{number:02d}-01-01" for number in range(6)],
    )
    kind, day, own = columns_of(pile)
    beside = follow(kind, assigned, 2)
    assert (beside.nmi, beside.ari) == (1.0, 1.0)
    assert "&lt;a&gt;" in beside.rows[0]
    assert "100%" in beside.rows[0]
    assert "NMI 1.00, ARI 1.00" in beside.summary()
    assert follow(day, assigned, 2).nmi is not None, "a few different dates are classes"
    assert follow(own, assigned, 2).summary() == "No two documents share a value of own."
    long = documents(day=[f"20{number % 20:02d}-03-01" for number in range(60)])
    parts = follow(columns_of(long)[0], np.repeat([0, 1], 30), 2)
    assert parts.nmi is None
    assert parts.summary() == ""
    assert "2000-03-01 …" in parts.rows[0]
    long[3].metadata["day"] = "last week"  # type: ignore[index]
    damaged = columns_of(long)[0]
    assert (damaged.kind, damaged.mistakes) == ("date", 1)
    assert follow(damaged, np.repeat([0, 1], 30), 2).summary() == "1 values of day are no dates and left out."
    nothing = columns_of(documents(day=[None] * 6))[0]
    assert follow(nothing, assigned, 2).summary() == "No document of a topic has a value of day."
