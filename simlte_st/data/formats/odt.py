"""OpenDocument texts, by lxml."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import DAMAGED, ENCRYPTED, FileText, tidy_lines
from simlte_st.data.formats.zipped import open_zip, tree_of
from simlte_st.data.text_files import BadTextError

_SPACE = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _OFFICE, _MANIFEST = (_SPACE % name for name in ("text", "office", "manifest"))
_PARAGRAPHS = {f"{_TEXT}p": "\n\n", f"{_TEXT}h": "\n\n"}
_BREAKS = {**_PARAGRAPHS, f"{_TEXT}line-break": "\n", f"{_TEXT}s": " ", f"{_TEXT}tab": " "}  # where they begin
_UNREAD = frozenset((f"{_TEXT}tracked-changes", f"{_OFFICE}annotation", f"{_TEXT}note-citation", f"{_OFFICE}forms"))


def read(path: Path, config: SourceConfig) -> FileText:
    """Return the text as it is at last: paragraphs, headings, lists, tables, and notes where they are called.

    Deleted text, comments, headers and footers are not read.
    """
    with open_zip(path, config) as archive:
        if _is_encrypted(archive):
            raise BadTextError(ENCRYPTED, "it needs a password")
        body = tree_of(archive, "content.xml").find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise BadTextError(DAMAGED, "not a text document")
    return FileText(tidy_lines(_parts(body)))


def _is_encrypted(archive: zipfile.ZipFile) -> bool:
    name = "META-INF/manifest.xml"
    return (
        name in archive.namelist()
        and next(tree_of(archive, name).iter(f"{_MANIFEST}encryption-data"), None) is not None
    )


def _parts(root: Any) -> Iterator[str]:
    """Walk through the tree, without recursion, as files may be deep."""
    from lxml import etree

    unread = 0
    for event, node in etree.iterwalk(root, events=("start", "end")):
        starts = event == "start"
        if node.tag in _UNREAD:
            unread += 1 if starts else -1
        if unread == 0:
            yield (_BREAKS if starts else _PARAGRAPHS).get(node.tag, "")
        text = node.text if starts else node.tail
        if unread == 0 and text and node is not root:
            yield " ".join(f"|{text}|".split())[1:-1]
