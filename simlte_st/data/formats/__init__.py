"""The table of file formats: a new one is a file of this folder and a line of :data:`FORMATS`."""

from __future__ import annotations

from pathlib import Path

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats import (
    csv,
    docx,
    epub,
    html,
    json,
    mail,
    markdown,
    odt,
    parquet,
    pdf,
    rtf,
    subtitles,
    text,
)
from simlte_st.data.formats.base import Format, TableFormat, TextFormat
from simlte_st.data.tables import Table
from simlte_st.data.text_files import COMPRESSED
from simlte_st.errors import DataError

PLAIN_TEXT = TextFormat((".txt",), text.read)
MAIL = TextFormat((".eml",), mail.read)

FORMATS: tuple[Format, ...] = (
    PLAIN_TEXT,
    TextFormat((".md", ".markdown"), markdown.read),
    TextFormat((".srt", ".vtt"), subtitles.read),
    MAIL,
    TextFormat((".html", ".htm", ".xhtml"), html.read, libraries=("selectolax", "webencodings")),
    TextFormat((".pdf",), pdf.read, libraries=("pypdf",)),
    TextFormat((".docx", ".docm", ".dotx", ".dotm"), docx.read, libraries=("lxml",)),
    TextFormat((".odt", ".ott"), odt.read, libraries=("lxml",)),
    TextFormat((".rtf",), rtf.read, libraries=("striprtf",)),
    TextFormat((".epub",), epub.read, libraries=("lxml", "selectolax", "webencodings")),
    TableFormat((".jsonl", ".ndjson"), json.open_lines),
    TableFormat((".json",), json.open_table),
    TableFormat((".csv",), csv.open_csv),
    TableFormat((".tsv",), csv.open_tsv),
    TableFormat((".mbox",), mail.open_mbox),
    TableFormat((".parquet",), parquet.open_table, packable=False, count_rows=parquet.count_rows),
)

_BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}


def _listed(suffixes: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))


def _suffixes(kind: type[Format], packable: bool) -> list[str]:
    return [suffix for suffix, each in _BY_SUFFIX.items() if isinstance(each, kind) and each.packable == packable]


TABLE_SUFFIXES = (*_suffixes(TableFormat, packable=True), *_suffixes(TableFormat, packable=False))

DESCRIPTION = (
    f"a folder of {_listed(_suffixes(TextFormat, packable=False))} files, or one such file; "
    f"a {_listed(_suffixes(TableFormat, packable=True))} file (also with {_listed(list(COMPRESSED))} after it) "
    f"or a {_listed(_suffixes(TableFormat, packable=False))} file"
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
