"""Word files (DOCX and its variants), by lxml: the final text of the document."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import DAMAGED, FileText, tidy_lines
from simlte_st.data.formats.zipped import open_zip, tree_of
from simlte_st.data.text_files import BadTextError

HEADERS = "headers and footers"

_MATH = {  # by the namespace of text, which differs in strict files
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "http://purl.oclc.org/ooxml/officeDocument/math",
}
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
# The font Symbol, from 0x20 and from 0xa0 on.
_SYMBOLS = {
    0x20: " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
    0xA0: "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑",
}


def read(path: Path, config: SourceConfig) -> FileText:
    """Return the final text, with tracked changes accepted: paragraphs in their order, then footnotes and endnotes.

    Tables, text boxes, fields and formulas are read. Hidden text, placeholders of empty fields, readings beside East
    Asian words (ruby) and comments are not; nor are headers and footers, which are reported.
    """
    with open_zip(path, config) as archive:
        return _final_text(archive)


def _final_text(archive: zipfile.ZipFile) -> FileText:
    main = next((name for kind, name in _related(archive, "") if kind == "officeDocument"), "word/document.xml")
    root = tree_of(archive, main)
    namespace = root.tag.rpartition("}")[0].lstrip("{")
    if namespace not in _MATH or not root.tag.endswith("}document"):
        raise BadTextError(DAMAGED, f"not a Word document: it holds a {root.tag.rpartition('}')[2]}")
    related: dict[str, list[str]] = {}
    for kind, name in _related(archive, main):
        related.setdefault(kind, []).append(name)
    styles = [name for name in related.get("styles", ()) if b"vanish" in archive.read(name)]
    words = _Words(namespace, tree_of(archive, styles[0]) if styles else None)
    parts = list(words.parts(root))
    for kind in ("footnote", "endnote"):
        notes = [note for name in related.get(f"{kind}s", ()) for note in tree_of(archive, name)]
        by_id = {note.get(f"{words.w}id"): note for note in notes if note.get(f"{words.w}type") in (None, "normal")}
        for reference in root.iter(f"{words.w}{kind}Reference"):
            note = by_id.pop(reference.get(f"{words.w}id"), None)
            parts += words.parts(note) if note is not None else ()
    margins = [
        tidy_lines(words.parts(tree_of(archive, name)))
        for kind in ("header", "footer")
        for name in related.get(kind, ())
    ]
    shown = " | ".join(filter(None, margins))
    return FileText(tidy_lines(parts), ((HEADERS, shown),) if shown else ())


def _related(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[str, str]]:
    """Return the kind and the name of each part that a part (or, for "", the file) refers to."""
    folder, name = posixpath.split(part)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    if place not in archive.namelist():
        return
    for relation in tree_of(archive, place):
        target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
        if relation.get("TargetMode") != "External" and target in archive.namelist():
            yield relation.get("Type", "").rpartition("/")[2], target


class _Words:
    """Reads the text of parts of a document."""

    def __init__(self, namespace: str, styles: Any | None) -> None:
        self.w = w = f"{{{namespace}}}"
        self._math = f"{{{_MATH[namespace]}}}"
        self._between = {
            f"{w}p": "\n\n", f"{w}br": "\n", f"{w}cr": "\n", f"{w}tab": " ", f"{w}ptab": " ", f"{w}noBreakHyphen": "-",
            f"{self._math}den": "/",
        }  # fmt: skip
        self._texts = (f"{w}t", f"{self._math}t")
        self._hiding: dict[str | None, bool] = {}
        self._default: dict[str, str | None] = {}
        based: dict[str | None, tuple[str | None, bool | None]] = {}
        for style in styles.iter(f"{w}style") if styles is not None else ():
            base, name = style.find(f"{w}basedOn"), style.get(f"{w}styleId")
            based[name] = (None if base is None else base.get(f"{w}val"), self._switch(style, "vanish"))
            if style.get(f"{w}default") in ("1", "true"):
                self._default[style.get(f"{w}type")] = name
        if any(hides for _, hides in based.values()):
            self._hiding = {name: _inherited(name, based) for name in based}

    def parts(self, root: Any) -> Iterator[str]:
        """Return the text of a tree in parts; parts outside the final document are removed from the tree."""
        self._accept_changes(root)
        self._take_out_hidden(root)
        # A text box in the middle of a paragraph is read after it.
        for box in reversed(list(root.iter(f"{self.w}txbxContent"))):
            around = next(box.iterancestors(f"{self.w}p"), None)
            if around is not None:
                around.addnext(box)
        joined = False
        for node in root.iter(*self._texts, f"{self.w}sym", *self._between):
            if node.tag in self._texts:
                yield node.text or ""
            elif node.tag == f"{self.w}sym":
                yield _symbol(node.get(f"{self.w}font", ""), node.get(f"{self.w}char", ""))
            elif node.tag == f"{self.w}p":
                yield "" if joined else "\n\n"
                joined = node.get("joined") is not None
            else:
                yield self._between[node.tag]

    def _accept_changes(self, root: Any) -> None:
        w = self.w
        for paragraph in root.iter(f"{w}p"):  # with a deleted end: the next one continues it
            mark = paragraph.find(f"{w}pPr/{w}rPr")
            if mark is not None and (mark.find(f"{w}del") is not None or mark.find(f"{w}moveFrom") is not None):
                paragraph.set("joined", "")
        gone = [row.getparent() for row in root.iter(f"{w}trPr") if row.find(f"{w}del") is not None]
        gone += [cell.getparent() for cell in root.iter(f"{w}tcPr") if cell.find(f"{w}cellDel") is not None]
        gone += root.iter(f"{w}del", f"{w}moveFrom", f"{w}rt")
        for choice in root.iter(f"{_COMPATIBILITY}Choice"):  # the same content for old readers
            gone += choice.itersiblings(f"{_COMPATIBILITY}Fallback")
        gone += [field for field in root.iter(f"{w}sdt") if self._switch(field, "showingPlcHdr", "sdtPr")]
        _remove(gone)

    def _take_out_hidden(self, root: Any) -> None:
        w = self.w
        if not self._hiding and next(root.iter(f"{w}vanish"), None) is None:
            return
        hidden = []
        for run in root.iter(f"{w}r", f"{self._math}r"):
            hides = self._switch(run, "vanish")
            if hides is None:  # one style reverses another
                around = next(run.iterancestors(f"{w}p"), None)
                hides = self._style_hides(run, "rPr", "rStyle", "character") != (
                    around is not None and self._style_hides(around, "pPr", "pStyle", "paragraph")
                )
            if hides:
                hidden.append(run)
        _remove(hidden)

    def _style_hides(self, node: Any, properties: str, tag: str, kind: str) -> bool:
        style = node.find(f"{self.w}{properties}/{self.w}{tag}")
        name = self._default.get(kind) if style is None else style.get(f"{self.w}val")
        return self._hiding.get(name, False)

    def _switch(self, node: Any, name: str, properties: str = "rPr") -> bool | None:
        """Return whether a property of a node is on; None if it is missing."""
        found = node.find(f"{self.w}{properties}/{self.w}{name}")
        return None if found is None else found.get(f"{self.w}val") not in ("0", "false", "off")


def _inherited(name: str | None, based: Mapping[str | None, tuple[str | None, bool | None]]) -> bool:
    seen = set()
    while name in based and name not in seen:
        seen.add(name)
        name, hides = based[name]
        if hides is not None:
            return hides
    return False


def _remove(nodes: Iterable[Any]) -> None:
    for node in nodes:
        if (around := node.getparent()) is not None:
            around.remove(node)


def _symbol(font: str, char: str) -> str:
    """Return the character of a symbol; "" for a picture of a symbol font."""
    try:
        code = int(char, 16)
    except ValueError:
        return ""
    if not 0xF000 <= code <= 0xF0FF:
        return chr(code) if 0x20 <= code < 0xD800 else ""
    code -= 0xF000
    start = max((start for start in _SYMBOLS if start <= code), default=0x100)
    return _SYMBOLS[start][code - start : code - start + 1] if font == "Symbol" and start < 0x100 else ""
