"""JSON: lines of an object each (``.jsonl``), or one array, which is read as a whole (``.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from simlte_st.data.config import SourceConfig
from simlte_st.data.tables import BLANK_LINE, RawRow, Skip, Table, item_rows, mappings_table
from simlte_st.data.text_files import BadTextError, decode_text, read_lines, read_whole
from simlte_st.errors import DataError

MALFORMED_JSON = "malformed JSON"
NOT_AN_OBJECT = "not an object"

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
    lines = read_lines(path, config.encoding, config.max_characters)
    if _is_object(next((line.text for line in lines if line.problem or line.text.strip()), "")):
        return open_lines(path, config)
    try:
        value = json.loads(decode_text(read_whole(path, config.max_characters), config.encoding))
    except BadTextError as error:
        raise DataError(f"{path} cannot be read as one JSON value: {': '.join(error.args)}. {_ADVICE}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}. {_ADVICE}") from error
    if not isinstance(value, list):
        raise DataError(f"{path} holds one {type(value).__name__}. {_ADVICE}")
    return mappings_table(str(path), item_rows(value, str(path), config))


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
