"""Tables without a schema: rows that are looked at ahead are given in their order, before what breaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simlte_st.data import tables
from simlte_st.data.config import SourceConfig
from simlte_st.data.tables import Columns, RawRow, Row, Skip, mappings_table, read_table
from simlte_st.data.text_files import BrokenSourceError


def test_rows_before_a_break_are_given_first() -> None:
    def rows() -> Iterator[RawRow | Skip]:
        yield Skip("line 1", "malformed JSON")
        yield RawRow("line 2", "1", {"a": 1})
        raise BrokenSourceError("cut off")

    table = mappings_table("source", rows())
    assert table.columns == ["a"]
    given = []
    with pytest.raises(BrokenSourceError, match="cut off"):
        given.extend(row.where for row in table.rows(["a"], ()))
    assert given == ["line 1", "line 2"]


def test_rows_after_endless_skips_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LOOK_AHEAD_SKIPS", 3)

    def rows() -> Iterator[RawRow | Skip]:
        yield from (Skip(f"line {number}", "malformed row") for number in range(5))
        yield RawRow("line 5", "5", {"a": 1, "text": "one"})

    events = list(read_table(mappings_table("source", rows(), header=["a", "text"]), SourceConfig()))
    assert [type(event) for event in events] == [Columns, *[Skip] * 3, Row, *[Skip] * 2]
    assert [event.text for event in events if isinstance(event, Row)] == ["one"]
    counted = [
        event.reason
        for event in read_table(mappings_table("source", rows()), SourceConfig())
        if isinstance(event, Skip)
    ]
    assert counted == ["malformed row"] * 5
