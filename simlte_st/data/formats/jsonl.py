"""JSON lines: an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from simlte_st.data.rows import RawRow, ReadSettings, Skip
from simlte_st.data.streams import read_lines
from simlte_st.data.tables import BLANK_LINE, Table, mappings_table

MALFORMED_JSON = "malformed JSON"
NOT_AN_OBJECT = "not an object"


def open_table(path: Path, settings: ReadSettings) -> Table:
    """Open a file of JSON lines. A line that is none is counted, and has a number too."""
    return mappings_table(str(path), _objects(path, settings))


def _objects(path: Path, settings: ReadSettings) -> Iterator[RawRow | Skip]:
    for line in read_lines(path, settings.encoding, settings.max_characters):
        where = f"line {line.number:,}"
        if line.problem:
            yield Skip(where, line.problem, line.what)
            continue
        if not line.text.strip():
            yield Skip(where, BLANK_LINE, ignored=True)
            continue
        try:
            values = json.loads(line.text)
        except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
            yield Skip(where, MALFORMED_JSON, getattr(error, "msg", str(error)).removesuffix(" at"))
            continue
        if isinstance(values, dict):
            yield RawRow(where, str(line.number - 1), values)
        else:
            yield Skip(where, NOT_AN_OBJECT, f"a JSON {type(values).__name__}")
