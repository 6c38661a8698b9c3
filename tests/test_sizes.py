"""Rooms do not grow unnoticed."""

from __future__ import annotations

from write_sizes import allowed, lines_of, sizes


def test_no_room_grows_without_a_word() -> None:
    table, grown = allowed(), []
    for room, lines in sizes().items():
        most = table.get(room, (0, 0))
        grown += [f"{room}: {lines}, {most} allowed"] if lines[0] > most[0] or lines[1] > most[1] else []
    assert not grown, f"{'; '.join(grown)}. Run make sizes, and say in the commit why the room needs the lines."
    assert set(table) == set(sizes())


def test_lines_are_counted_as_the_table_says() -> None:
    lines = ['"""Two', 'lines."""', "", "# A comment.", 'x = """not', 'a docstring"""', "", "", "def f():"]
    source = "\n".join([*lines, '    """One."""', "    return x  # y", ""])
    assert lines_of(source) == (4, 3)
