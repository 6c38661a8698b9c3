"""EPUB books: their pages in reading order, as HTML files are read, and what they say of themselves as columns."""

from __future__ import annotations

import posixpath
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import DAMAGED, ENCRYPTED, FileText
from simlte_st.data.formats.html import page_text
from simlte_st.data.formats.zipped import open_zip, tree_of
from simlte_st.data.text_files import BadTextError

_COLUMNS = {"title": "title", "creator": "author", "date": "date", "language": "language"}  # by Dublin Core's names
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")


def read(path: Path, config: SourceConfig) -> FileText:
    """Return the pages of a book, without its table of contents; title, author, date and language are columns."""
    with open_zip(path, config) as archive:
        names = [each.get("full-path", "") for each in _all(tree_of(archive, "META-INF/container.xml"), "rootfile")]
        if not names:
            raise BadTextError(DAMAGED, "no package is named")
        package = tree_of(archive, names[0])
        items = {item.get("id"): item for item in _all(package, "item")}
        spine = [items[each.get("idref")] for each in _all(package, "itemref") if each.get("idref") in items]
        pages = [
            posixpath.normpath(posixpath.join(posixpath.dirname(names[0]), unquote(item.get("href", ""))))
            for item in spine
            if item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split()
        ]
        if locked := _encrypted(archive).intersection(pages):
            raise BadTextError(ENCRYPTED, f"{len(locked):,} of {len(pages):,} pages")
        texts = [page_text(archive.read(page), config.encoding, xml=True) for page in pages]
    return FileText("\n\n".join(filter(None, texts)), columns=_columns(package))


def _all(tree: Any, name: str) -> Any:
    """Return the elements of a name, in whatever namespace, as versions of the format differ in them."""
    return tree.iter(f"{{*}}{name}")


def _encrypted(archive: zipfile.ZipFile) -> set[str]:
    """Return the names of encrypted parts; fonts often are, to protect them, in books that anybody may read."""
    name = "META-INF/encryption.xml"
    if name not in archive.namelist():
        return set()
    return {unquote(each.get("URI", "")) for each in _all(tree_of(archive, name), "CipherReference")}


def _columns(package: Any) -> dict[str, Any]:
    return {
        column: ", ".join(texts)
        for name, column in _COLUMNS.items()
        if (texts := [" ".join(each.text.split()) for each in _all(package, name) if each.text and each.text.strip()])
    }
