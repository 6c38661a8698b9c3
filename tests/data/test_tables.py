from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from simlte_st.data import tables
from simlte_st.data.columns import Columns, RawRow, Row, Skip, read_table
from simlte_st.data.streams import BrokenSourceError
from simlte_st.data.tables import mappings_table, open_table, table_suffix
from simlte_st.errors import DataError


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.jsonl", ".jsonl"),
        ("a.b.JSON.gz", ".json"),
        ("a.csv.zst", ".csv"),
        ("a.parquet", ".parquet"),
        ("a.parquet.gz", None),
        ("a.txt", None),
        ("a", None),
        (".gz", None),
    ],
)
def test_suffixes(name: str, suffix: str | None) -> None:
    assert table_suffix(Path(name)) == suffix


def test_columns_of_lines_are_those_of_the_first_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"a": 1}, {"b": 2}, *({"a": n} for n in range(200)), {"c": 3}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = open_table(path, "utf-8", 1000)
    assert table.columns == ["a", "b"]
    assert table.strings == []
    assert [row.values for row in table.rows(["a"], ()) if isinstance(row, RawRow)] == rows


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


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.txt is no table: its name should end in \.jsonl"):
        open_table(tmp_path / "a.txt", "utf-8", 1000)


def test_rows_after_endless_skips_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LOOK_AHEAD_SKIPS", 3)

    def rows() -> Iterator[RawRow | Skip]:
        yield from (Skip(f"line {number}", "malformed row") for number in range(5))
        yield RawRow("line 5", "5", {"a": 1, "text": "one"})

    events = list(read_table(mappings_table("source", rows(), header=["a", "text"]), Columns()))
    assert [type(event) for event in events] == [Skip] * 5 + [Columns, Row]
    with pytest.raises(DataError, match=r"Cannot tell .* columns are: none"):
        list(read_table(mappings_table("source", rows()), Columns()))
