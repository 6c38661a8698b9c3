"""File formats by suffix. To add a format, write a function that reads it and add a line to :data:`FORMATS`."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from simlte_st.extras import check_installed
from simlte_st.reading.document import PLACES
from simlte_st.reading.formats.html import read_html
from simlte_st.reading.formats.mail import is_mail, open_mbox, read_eml, read_msg
from simlte_st.reading.formats.office import read_docx, read_epub, read_odt, read_pdf, read_pptx, read_rtf, read_xml
from simlte_st.reading.formats.records import open_csv, open_json, open_json_lines, open_workbook
from simlte_st.reading.rows import EXTRA, BadTextError, Content, Event, Reading, Row, Skip, make_skip
from simlte_st.reading.tables import Table, count_rows, folder_columns, open_parquet
from simlte_st.reading.text_files import COMPRESSED, open_bytes, read_markdown, read_notebook, read_text


@dataclass(frozen=True)
class TextFormat:
    """A format with one document per file.

    ``read_file`` returns the text of a file, with any columns. It raises ``BadTextError`` with the reason if there is
    no text, and ``OSError`` or any library's error if the file is damaged.
    """

    suffixes: tuple[str, ...]  # in lower case
    read_file: Callable[[Path, Reading], str | Content]
    libraries: tuple[str, ...] = ()  # modules that the "documents" extra installs

    def check_library(self) -> None:
        """Raise :class:`MissingExtraError` if a library is not installed."""
        for library in self.libraries:
            check_installed(library, EXTRA, f"reading {self.suffixes[0]} files")

    def row(self, path: Path, name: str, reading: Reading) -> Row | Skip:
        """Return a file as a row, or as a skip that gives the reason; ``name`` is its path in the source folder."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe may never end
                raise BadTextError("pipe, socket or device")
            self.check_library()
            content = self.read_file(path, reading)
        except Exception as error:  # libraries raise errors of every class for damaged files
            return make_skip(error, name, name)
        content = Content(content) if isinstance(content, str) else content
        places = dict(zip(PLACES, (os.path.dirname(name) or None, path.stem), strict=True))
        columns = {**places, **folder_columns(path), **content.columns}
        label, metadata = columns.get(reading.label_column or ""), columns if reading.metadata else None
        return Row(name, name, content.text, label=label, metadata=metadata, repairs=content.repairs)


@dataclass(frozen=True)
class TableFormat:
    """A format with one document per row; ``open`` raises ``DataError`` for a file without columns.

    It returns a table, or the documents of several tables.
    """

    suffixes: tuple[str, ...]  # in lower case
    open: Callable[[Path, Reading], Table | Iterator[Event]]
    count_rows: Callable[[Path], int | None] = lambda path: None  # if counting is cheap
    compressible: bool = True  # as .gz or .zst


PLAIN_TEXT = TextFormat((".txt",), read_text)
MAIL = TextFormat((".eml",), read_eml)

FORMATS: tuple[TextFormat | TableFormat, ...] = (
    PLAIN_TEXT,
    TextFormat((".md", ".markdown"), read_markdown),
    MAIL,
    TextFormat((".msg",), read_msg, ("olefile", "selectolax")),
    TextFormat((".ipynb",), read_notebook),
    TextFormat((".html", ".htm", ".xhtml", ".hocr"), read_html, ("selectolax",)),
    TextFormat((".xml", ".nxml", ".tei"), read_xml, ("lxml",)),
    TextFormat((".pdf",), read_pdf, ("pypdf",)),
    TextFormat((".docx", ".docm", ".dotx", ".dotm"), read_docx, ("lxml",)),
    TextFormat((".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"), read_pptx, ("lxml",)),
    TextFormat((".odt", ".ott"), read_odt, ("lxml",)),
    TextFormat((".rtf",), read_rtf, ("striprtf",)),
    TextFormat((".epub",), read_epub, ("lxml", "selectolax")),
    TableFormat((".jsonl", ".ndjson"), open_json_lines),
    TableFormat((".json",), open_json),
    TableFormat((".csv", ".tsv"), open_csv),
    TableFormat((".mbox",), open_mbox),
    TableFormat((".xlsx", ".xlsm", ".xltx", ".xltm"), open_workbook, compressible=False),
    TableFormat((".parquet",), open_parquet, count_rows, compressible=False),
)

_MARKS = {b"<?xml": ".xml", b"<!doctype html": ".html", b"<html": ".html", b"%pdf-": ".pdf", b"{\\rtf": ".rtf"}
_BY_SUFFIX = {suffix: file_format for file_format in FORMATS for suffix in file_format.suffixes}
_TEXT_SUFFIXES = [suffix for suffix, file_format in _BY_SUFFIX.items() if isinstance(file_format, TextFormat)]
_TABLE_SUFFIXES = [suffix for suffix, file_format in _BY_SUFFIX.items() if isinstance(file_format, TableFormat)]

DESCRIPTION = (
    f"a folder with one document per file ({', '.join(_TEXT_SUFFIXES)}), a single such file, or any other text file; "
    f"a table ({', '.join(_TABLE_SUFFIXES)}; all except workbooks and parquet may end in {' or '.join(COMPRESSED)})"
)
"""Description of all formats, for messages and ``--help``."""


def format_by_suffix(path: Path) -> TextFormat | TableFormat | None:
    """Return a file's format by its suffix, ignoring a final ``.gz`` or ``.zst``; None if unknown."""
    suffixes = [suffix.strip().lower() for suffix in path.suffixes]
    if not suffixes or suffixes[-1] not in COMPRESSED:
        return _BY_SUFFIX.get("".join(suffixes[-1:]))
    file_format = _BY_SUFFIX.get("".join(suffixes[-2:-1]))
    return file_format if isinstance(file_format, TableFormat) and file_format.compressible else None


def find_format(path: Path, mails: bool) -> TextFormat | TableFormat | None:
    """Return a file's format by its suffix; with ``mails``, text files and files of unknown format may be e-mails."""
    file_format = format_by_suffix(path)
    return MAIL if mails and file_format in (None, PLAIN_TEXT) and is_mail(path) else file_format


def format_by_content(path: Path) -> TextFormat | TableFormat | None:
    """Return a file's format by its first bytes: a known format, plain text, or None for binary files."""
    with open_bytes(path) as stream:
        start = stream.read(8_192)
    for mark, suffix in _MARKS.items():
        if start.lstrip().lower().startswith(mark):
            return _BY_SUFFIX[suffix]
    is_binary = b"\0" in start and start[:2] not in (b"\xff\xfe", b"\xfe\xff")  # UTF-16
    return None if is_binary else PLAIN_TEXT
