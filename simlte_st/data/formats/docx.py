"""DOCX files, by python-docx."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import BinaryIO

from simlte_st.data.formats.base import tidy_lines
from simlte_st.data.rows import ReadSettings
from simlte_st.data.streams import BadTextError

UNPACKS = "unpacking to far more than text does"

# Bytes, below which a file is unpacked however it is packed; its tree takes 30 times as much memory.
_LARGE = 20_000_000
_MOST_PACKED = 100  # times smaller than what it unpacks to


def read(path: Path, settings: ReadSettings) -> str:
    """Give the paragraphs of the body in order: those in tables, text boxes and fields, and what was inserted.

    Raises:
        BadTextError: It would unpack to far more than text does.
        OSError: It cannot be read.
    """
    import docx
    from docx.oxml.ns import qn

    with path.open("rb") as stream:
        _check_unpacked(stream, path.stat().st_size, settings.max_characters)
        body = docx.Document(stream).element.body
    # Text boxes stand there a second time, for old readers.
    for again in list(body.iter("{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback")):
        again.getparent().remove(again)
    between = {qn("w:p"): "\n\n", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:tab"): " ", qn("w:noBreakHyphen"): "-"}
    text = qn("w:t")
    return tidy_lines(
        (node.text or "") if node.tag == text else between[node.tag] for node in body.iter(text, *between)
    )


def _check_unpacked(stream: BinaryIO, size: int, max_characters: int) -> None:
    """Refuse a file that unpacks to far more than text does: its parts are held in memory, pictures too.

    Raises:
        BadTextError: It does.
    """
    with zipfile.ZipFile(stream) as archive:  # which reads no more of a part than the size that its directory says
        unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > min(size + 4 * max_characters + (1 << 20), max(_LARGE, _MOST_PACKED * size)):
        raise BadTextError(UNPACKS, f"to {unpacked:,} bytes from {size:,}")
