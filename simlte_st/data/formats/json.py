"""``.json`` files: an array, which is read as a whole, or in truth JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simlte_st.data.formats import jsonl
from simlte_st.data.rows import ReadSettings
from simlte_st.data.streams import TOO_LONG, BadTextError, read_lines, read_whole
from simlte_st.data.tables import TEXT_COLUMNS, Table, item_rows, mappings_table
from simlte_st.errors import DataError

_SHOWN_KEYS = 8
_ADVICE = "Make it an array of objects or of strings, or JSON lines (.jsonl: one object per line)."


def open_table(path: Path, settings: ReadSettings) -> Table:
    """Open a file that holds an array of objects or of strings, or JSON lines."""
    columns = (settings.columns.text,) if settings.columns.text else TEXT_COLUMNS
    items = _array(path, settings.encoding, settings.max_characters, columns)
    if items is None:
        return jsonl.open_table(path, settings)
    return mappings_table(str(path), item_rows(items, str(path), settings.columns))


def _array(path: Path, encoding: str, max_characters: int, text_columns: Sequence[str]) -> list[Any] | None:
    """Return the items of the array in a file; None where it is one of JSON lines, if only of one that has a text."""
    lines = (line.text for line in read_lines(path, encoding, max_characters) if line.text.strip())
    first, more = _object(next(lines, "")), next(lines, None)
    if first is not None and (more is not None or any(isinstance(first.get(name), str) for name in text_columns)):
        return None
    try:
        text = read_whole(path, encoding, max_characters)
        value = json.loads(text)
    except BadTextError as error:
        reason, what = error.args
        remedy = "write it as JSON lines (.jsonl: one object per line), of which any number can be read"
        if reason != TOO_LONG:
            remedy = "name its encoding with encoding="
        raise DataError(f"{path} cannot be read as one JSON value: {reason} ({what}); {remedy}.") from error
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{"):
            return None  # lines, the first of which is malformed: they are counted
        raise DataError(f"{path} is no valid JSON: {error}. {_ADVICE}") from error
    if isinstance(value, list):
        return value
    what = f"one {type(value).__name__}"
    if isinstance(value, dict):
        keys = [*map(str, value)]
        what = f"one object (keys: {', '.join(keys[:_SHOWN_KEYS])}{', ...' if keys[_SHOWN_KEYS:] else ''})"
    raise DataError(f"{path} holds {what[:200]}. {_ADVICE}")


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
