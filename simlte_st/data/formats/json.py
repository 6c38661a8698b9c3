"""JSON: lines of an object each (``.jsonl``), or one array, which is read as a whole (``.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simlte_st.data.config import SourceConfig
from simlte_st.data.tables import BLANK_LINE, TEXT_COLUMNS, RawRow, Skip, Table, item_rows, mappings_table, value_at
from simlte_st.data.text_files import TOO_LONG, BadTextError, read_lines, read_whole
from simlte_st.errors import DataError

MALFORMED_JSON = "malformed JSON"
NOT_AN_OBJECT = "not an object"

_SHOWN_KEYS = 8
_ADVICE = "Make it an array of objects or of strings, or JSON lines (.jsonl: one object per line)."


def open_lines(path: Path, config: SourceConfig) -> Table:
    """Open a file of JSON lines; a line that is not an object is counted, and takes a row number too."""
    return mappings_table(str(path), _objects(path, config))


def _objects(path: Path, config: SourceConfig) -> Iterator[RawRow | Skip]:
    for line in read_lines(path, config.encoding, config.max_characters):
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


def open_table(path: Path, config: SourceConfig) -> Table:
    """Open a file that holds an array of objects or of strings, or JSON lines."""
    items = _array(path, config)
    if items is None:
        return open_lines(path, config)
    return mappings_table(str(path), item_rows(items, str(path), config))


def _array(path: Path, config: SourceConfig) -> Sequence[Any] | None:
    """Return the items of the array in a file; None for JSON lines, which may be one line that has a text."""
    lines = read_lines(path, config.encoding, config.max_characters)
    texts = (line.text for line in lines if line.text.strip())
    first, more = _object(next(texts, "")), next(texts, None)
    text_columns = (config.text_column,) if config.text_column else TEXT_COLUMNS
    if first is not None and (more is not None or any(isinstance(value_at(first, name), str) for name in text_columns)):
        return None
    try:
        text = read_whole(path, config.encoding, config.max_characters)
        value = json.loads(text)
    except BadTextError as error:
        reason, what = error.args
        remedy = "name its encoding with encoding="
        if reason == TOO_LONG:
            remedy = "write it as JSON lines (.jsonl: one object per line), which may have any length"
        raise DataError(f"{path} cannot be read as one JSON value: {reason} ({what}); {remedy}.") from error
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{"):
            return None  # lines, the first of which is malformed: they are counted
        raise DataError(f"{path} is not valid JSON: {error}. {_ADVICE}") from error
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
