"""Plain text, and Markdown files with the values of their front matter as columns."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import FileText
from simlte_st.data.text_files import decode_text, read_whole

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LONGEST = 1 << 16  # characters of front matter
_VALUES = (str, int, float, date)  # and bool and datetime, which are such


def read(path: Path, config: SourceConfig) -> FileText:
    """Return the text of a file."""
    return FileText(decode_text(read_whole(path, config.max_characters), config.encoding))


def read_markdown(path: Path, config: SourceConfig) -> FileText:
    """Return the text below the front matter, YAML between two lines ``---``; all of it where that is no mapping.

    Numbers, dates and text are values of columns, and lists of them are joined; other values are not read.
    """
    whole = read(path, config).text
    match = _FRONT_MATTER.match(whole, 0, _LONGEST)
    columns = None if match is None else _mapping(match[1] or "")
    if match is None or columns is None:
        return FileText(whole)
    return FileText(whole[match.end() :].lstrip("\n"), columns=columns)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Without aliases, by which a few lines can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _mapping(matter: str) -> dict[str, Any] | None:
    """Return the values of front matter by name; None if it is no mapping in YAML."""
    try:
        values = yaml.load(matter, _Loader)
    except Exception:  # also of dates and numbers that are none
        return None
    if not isinstance(values, dict):
        return None
    return {str(name): kept for name, value in values.items() if (kept := _value(value)) is not None}


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(str(each) for each in value if isinstance(each, _VALUES)) or None
    return value if isinstance(value, _VALUES) else None
