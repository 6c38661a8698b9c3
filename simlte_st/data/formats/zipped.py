"""What documents that are zip archives of XML share: Word files, OpenDocument texts and EPUB books."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import ENCRYPTED
from simlte_st.data.text_files import BadTextError

UNPACKS = "unpacking to far more than text does"

_LARGE = 20_000_000  # bytes; smaller files are unpacked whatever their compression; the tree takes 30 times as much
_MOST_PACKED = 100  # times smaller than the unpacked file
_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")  # around an encrypted document


@contextlib.contextmanager
def open_zip(path: Path, config: SourceConfig) -> Iterator[zipfile.ZipFile]:
    """Open an archive, unless it is encrypted or unpacks to far more than text does: its parts are held in memory."""
    with path.open("rb") as stream:
        if stream.read(8) == _COMPOUND_FILE:
            raise BadTextError(ENCRYPTED, "it needs a password, or is an old .doc file")
        with zipfile.ZipFile(stream) as archive:
            # No more of a part is read than its size in the archive's directory.
            size, unpacked = path.stat().st_size, sum(part.file_size for part in archive.infolist())
            if unpacked > min(size + 4 * config.max_characters + (1 << 20), max(_LARGE, _MOST_PACKED * size)):
                raise BadTextError(UNPACKS, f"to {unpacked:,} bytes from {size:,}")
            yield archive


def tree_of(archive: zipfile.ZipFile, name: str) -> Any:
    """Parse a part of an archive, without entities and anything outside it."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    return etree.fromstring(archive.read(name), parser)
