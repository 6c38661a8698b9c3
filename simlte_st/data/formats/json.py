"""``.json`` files: an array, which is read as a whole, or in truth JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from simlte_st.data.formats import jsonl
from simlte_st.data.rows import ReadSettings
from simlte_st.data.streams import TOO_LONG, BadTextError, read_lines, read_whole
from simlte_st.data.tables import Table, item_rows, mappings_table
from simlte_st.errors import DataError

_SHOWN_KEYS = 8
_ADVICE = "Make it an array of objects or of strings, or JSON lines (.jsonl: one object per line)."


def open_table(path: Path, settings: ReadSettings) -> Table:
    """Open a file that holds an array of objects or of strings, or JSON lines.

    Args:
        path: The file, also with ``.gz`` or ``.zst`` after its name.
        settings: How to read it. An array may be about 12 times as long as the longest text wanted, as a line of JSON
            lines may.

    Raises:
        DataError: It holds something else, is malformed, or is too large to be read as a whole.
    """
    items = _array(path, settings.encoding, settings.max_characters)
    if items is None:
        return jsonl.open_table(path, settings)
    return mappings_table(str(path), item_rows(items, str(path), settings.columns))


def _array(path: Path, encoding: str, max_characters: int) -> list[Any] | None:
    """Give the items of the array in a file; None where the file is one of JSON lines."""
    first = next((line for line in read_lines(path, encoding, max_characters) if line.text.strip()), None)
    if first is not None and first.text.lstrip().startswith("{") and _is_object(first.text):
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


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
