"""The table of file formats: a new one is a file of this folder and a line of :data:`FORMATS`."""

from __future__ import annotations

from pathlib import Path

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats import csv, html, json, mail, office, parquet, pdf, text
from simlte_st.data.formats.base import Format, TableFormat, TextFormat
from simlte_st.data.tables import Table
from simlte_st.data.text_files import COMPRESSED
from simlte_st.errors import DataError

PLAIN_TEXT = TextFormat((".txt",), text.read)
MAIL = TextFormat((".eml",), mail.read)

FORMATS: tuple[Format, ...] = (
    PLAIN_TEXT,
    TextFormat((".md", ".markdown"), text.read_markdown),
    MAIL,
    TextFormat((".html", ".htm", ".xhtml"), html.read, libraries=("selectolax", "webencodings")),
    TextFormat((".pdf",), pdf.read, libraries=("pypdf",)),
    TextFormat((".docx", ".docm", ".dotx", ".dotm"), office.read_docx, libraries=("lxml",)),
    TextFormat((".odt", ".ott"), office.read_odt, libraries=("lxml",)),
    TextFormat((".rtf",), office.read_rtf, libraries=("striprtf",)),
    TextFormat((".epub",), office.read_epub, libraries=("lxml", "selectolax", "webencodings")),
    TableFormat((".jsonl", ".ndjson"), json.open_lines),
    TableFormat((".json",), json.open_table),
    TableFormat((".csv",), csv.open_csv),
    TableFormat((".tsv",), csv.open_tsv),
    TableFormat((".mbox",), mail.open_mbox),
    TableFormat((".parquet",), parquet.open_table, packable=False, count_rows=parquet.count_rows),
)

_BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}


def _suffixes(kind: type[Format]) -> tuple[str, ...]:
    return tuple(suffix for suffix, each in _BY_SUFFIX.items() if isinstance(each, kind))


TABLE_SUFFIXES = _suffixes(TableFormat)

DESCRIPTION = (
    f"a folder of files that hold a document each ({', '.join(_suffixes(TextFormat))}), or one such file; a table "
    f"({', '.join(TABLE_SUFFIXES)}; all but parquet also with {' or '.join(COMPRESSED)} after it)"
)
"""All formats in words, for messages and ``--help``."""


def format_of(path: Path) -> Format | None:
    """Return the format of a file by its suffix, with or without ``.gz`` or ``.zst`` after it, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in COMPRESSED
    if packed:
        suffixes.pop()
    known = _BY_SUFFIX.get(suffixes[-1]) if suffixes else None
    return None if known is None or (packed and not known.packable) else known


def open_table(path: Path, config: SourceConfig) -> Table:
    """Open a table in the format of its suffix."""
    known = format_of(path)
    if not isinstance(known, TableFormat):
        raise DataError(f"{path} is not a table: its name should end in {', '.join(TABLE_SUFFIXES)}.")
    return known.open(path, config)
