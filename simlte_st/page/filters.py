"""Filters as menus, ranges and dates, made from the columns of an index; and what they are as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

import streamlit as st

from simlte_st.data.columns import Column

PREFIX = "with."
"""Begins the keys of filters, here and in the address."""

_BETWEEN = ".."


def usable(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that there is a filter for: classes, and numbers and dates that differ."""
    return [
        column
        for column in columns
        if column.kind == "category"
        or (column.kind == "date" and len(set(_there(column))) > 1)
        or (column.kind == "number" and not _is_text(column) and len(set(_there(column))) > 1)
    ]


def show_filter(column: Column) -> None:
    """Show the filter of a column, as it is in the session's state."""
    key = PREFIX + column.name
    if column.kind == "category":
        st.multiselect(column.name, classes(column), key=key, placeholder="any")
        return
    low, high = limits(column)
    st.session_state.setdefault(key, (low, high))
    if column.kind == "date":
        st.date_input(column.name, min_value=low, max_value=high, key=key)
    else:
        st.slider(column.name, low, high, key=key)


def classes(column: Column) -> list[str]:
    """Return the different values of a column as texts."""
    return sorted({str(value) for value in column.values if value is not None})


def limits(column: Column) -> tuple[Any, Any]:
    """Return the lowest and the highest value: whole numbers, numbers or dates."""
    low, high = min(_there(column)), max(_there(column))
    if column.kind == "date":
        return _date(low), _date(high)
    if all(isinstance(value, int) for value in column.values if value is not None):
        return int(low), int(high)
    return low, high


def condition(column: Column, value: Any) -> str | None:
    """Return the SQL of a filter; None where it lets everything through."""
    name = f"`{column.name}`"
    if not value or (column.kind != "category" and (len(value) < 2 or tuple(value) == limits(column))):
        return None
    if column.kind == "category":
        literals = [f"'{each}'" for each in (text.replace("'", "''") for text in value)] if _is_text(column) else value
        return f"{name} IN ({', '.join(literals)})"
    low, high = value
    if column.kind == "date":  # dates are texts in an index, and the last day may have a time of day
        return f"{name} >= '{low.isoformat()}' AND {name} < '{(high + timedelta(days=1)).isoformat()}'"
    return f"{name} >= {low!r} AND {name} <= {high!r}"


def to_address(column: Column, value: Any) -> list[str]:
    """Write the value of a filter for the address; nothing where it lets everything through."""
    if condition(column, value) is None:
        return []
    return list(value) if column.kind == "category" else [_BETWEEN.join(map(str, value))]


def from_address(column: Column, texts: Sequence[str]) -> tuple[Any, list[str]]:
    """Read the value of a filter from the address."""
    if column.kind == "category":
        known = classes(column)
        return [text for text in texts if text in known], [text for text in texts if text not in known]
    low, high = limits(column)
    if not texts:
        return (low, high), []
    read = date.fromisoformat if column.kind == "date" else type(low)
    try:
        first, last = map(read, texts[0].split(_BETWEEN))
    except ValueError:
        return (low, high), list(texts)
    if not (first <= last and low <= last and first <= high):
        return (low, high), list(texts)
    return (max(low, first), min(last, high)), list(texts[1:])


def _is_text(column: Column) -> bool:
    return any(isinstance(value, str) for value in column.values)


def _there(column: Column) -> list[float]:
    return [number for number in column.numbers if number is not None]


def _date(seconds: float) -> date:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).date()
