"""A column beside the topics, and columns whose names the table beside the page has already."""

from __future__ import annotations

from typing import Any

import numpy as np

from simlte_st.data import Document
from simlte_st.data.columns import columns_of
from simlte_st.exploration.explore import rename_reserved
from simlte_st.exploration.follow import follow


def documents(**columns: list[Any]) -> list[Document]:
    count = len(next(iter(columns.values())))
    return [
        Document(str(n), f"Text {n}", metadata={name: values[n] for name, values in columns.items()})
        for n in range(count)
    ]


def test_columns_with_reserved_names_are_renamed() -> None:
    columns = columns_of(documents(x=[1, 2], x_=[3, 4], topic=["a", "b"], y_=[5, 6], y=[7, 8]))
    named = rename_reserved(columns)
    assert [column.name for column in named] == ["x_", "x__", "topic_", "y_", "y__"]
    assert [list(column.values) for column in named] == [list(column.values) for column in columns]


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
