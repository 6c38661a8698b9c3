"""Read office documents, books and XML: lxml reads DOCX, PPTX, ODT, EPUB and XML; striprtf RTF; pypdf PDF."""

from __future__ import annotations

import contextlib
import html
import logging
import posixpath
import re
import unicodedata
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import regex

from simlte_st.reading.formats.html import page_text
from simlte_st.reading.rows import DAMAGED, EMPTY, ENCRYPTED, BadTextError, FileText, Reading
from simlte_st.reading.text_files import read_whole, tidy_lines

if TYPE_CHECKING:
    from lxml import etree

UNPACKS = "unpacks to far more than text would"
NO_TEXT = "without text (scanned?)"
HIDDEN_SLIDE = "hidden slide"
MISSING_PART = "missing part"

_MAX_UNPACKED = 20_000_000  # bytes, or 100 times the file size
_MAX_PARSED = 100_000_000  # bytes of XML; the parsed tree takes 30 times as much memory
_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")  # signature of the container of encrypted documents

_WORD_PARTS = (re.compile(r"word/document\d*\.xml"), re.compile(r"word/(?:foot|end)notes\d*\.xml"))
_WORD_BREAKS = {"br": "\n", "cr": "\n", "tab": " ", "noBreakHyphen": "-"}
_WORD_UNREAD = frozenset(("moveFrom", "Fallback"))  # moved text where it was, and duplicates for old readers
_SLIDE_UNREAD = frozenset(("dt", "ftr", "hdr", "sldImg", "sldNum"))  # placeholders for dates, footers, page numbers
_ODT_BREAKS = {"line-break": "\n", "s": " ", "tab": " "}
_ODT_UNREAD = frozenset(("tracked-changes", "annotation", "note-citation", "forms"))
_XML_UNREAD = frozenset((  # elements of JATS and TEI that are not prose: metadata, references, formulas
    "journal-meta", "contrib-group", "aff", "article-id", "pub-date", "history", "permissions", "funding-group",
    "ref-list", "math", "tex-math", "encodingDesc", "publicationStmt", "sourceDesc", "revisionDesc", "listBibl",
))  # fmt: skip
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_PICTURE = re.compile(r"[0-9a-fA-F\r\n]{2000,}")  # a picture in RTF, in hexadecimal digits

_LIGATURE = re.compile("[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc]")  # including Arabic presentation forms
_SIGN = r"[\p{L}\p{M}\p{N}]"
_TORN = regex.compile(rf"({_SIGN}+)([-\u2010\xad])[ \t]*\n[ \t]*({_SIGN}+)")
_WHOLE_WORD = regex.compile(rf"{_SIGN}+(?:[-\u2010]{_SIGN}+)*+(?![-\u2010\xad])")
_NUMBER = regex.compile(r"\p{N}")
# Words that, before a hyphen at the end of a line, usually begin a compound.
_FIRST_OF_TWO = frozenset((
    "cross", "decision", "double", "end", "first", "five", "four", "full", "half", "hand", "hard", "high", "human",
    "large", "last", "left", "light", "long", "low", "machine", "mid", "multi", "near", "new", "non", "off", "one",
    "open", "peer", "post", "pre", "real", "right", "second", "self", "semi", "short", "single", "six", "small",
    "state", "ten", "third", "three", "time", "top", "two", "user", "well", "wide", "word", "work", "year",
))  # fmt: skip


def read_docx(path: Path, reading: Reading) -> str:
    """Return the text with tracked changes accepted: the paragraphs in order, then footnotes and endnotes.

    Hidden text, comments, headers and footers are not read.
    """
    with open_zip(path) as archive:
        names = archive.namelist()
        trees = parse_parts(archive, *(name for part in _WORD_PARTS for name in names if part.fullmatch(name)))
    for mark in [mark for tree in trees for mark in tree.iter("{*}vanish")]:
        run = mark.getparent().getparent()
        if run.getparent() is not None and mark.get(f"{mark.tag.removesuffix('vanish')}val") not in ("0", "false"):
            run.getparent().remove(run)
    return tidy_lines(piece for tree in trees for piece in _pieces(tree, _WORD_BREAKS, _WORD_UNREAD, "t"))


def read_pptx(path: Path, reading: Reading) -> FileText:
    """Return the text of the slides in order: the title, the shapes, tables and diagrams, then the notes.

    Hidden and missing slides are skipped; comments, headers and footers are not read.
    """
    texts, skips = [], []
    with open_zip(path) as archive:
        unread = set(archive.namelist())  # each part is read once: a crafted file may refer to one many times
        deck = dict(linked_parts(archive, "").values())["officeDocument"]
        slides = linked_parts(archive, deck)
        for number, node in enumerate(parse_parts(archive, deck)[0].iter("{*}sldId"), start=1):
            place, (_, part) = f"slide {number:,}", slides.get(relation(node), ("", ""))
            links = sorted(linked_parts(archive, part).values()) if part in unread else []
            names = [part, *(name for kind, name in links if kind in ("diagramData", "notesSlide"))]
            trees = parse_parts(archive, *(name for name in names if name in unread))
            unread.difference_update(names)
            if len(trees) < len(names):
                skips.append((place, MISSING_PART))
            if trees and trees[0].get("show") in ("0", "false"):
                skips.append((place, HIDDEN_SLIDE))
            else:
                texts.append(tidy_lines(piece for tree in trees for piece in _slide_pieces(tree)))
    return FileText("\n\n".join(filter(None, texts)), skips=tuple(skips))


def _slide_pieces(tree: etree._Element) -> Iterator[str]:
    """Yield the texts of a slide, or of its notes, with the title first."""
    for placeholder in list(tree.iter("{*}ph")):
        shape = next(placeholder.iterancestors("{*}sp", "{*}pic", "{*}graphicFrame"), None)
        if shape is not None and placeholder.get("type") in _SLIDE_UNREAD:
            shape.getparent().remove(shape)
        elif shape is not None and placeholder.get("type") in ("title", "ctrTitle"):
            tree.insert(0, shape)
    return _pieces(tree, _WORD_BREAKS, _WORD_UNREAD, "t")


def read_odt(path: Path, reading: Reading) -> str:
    """Return the text: paragraphs, headings, lists, tables, and notes at their references.

    Deleted text, comments, headers and footers are not read.
    """
    with open_zip(path) as archive:
        body = parse_parts(archive, "content.xml")[0].find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise BadTextError(DAMAGED, "not a text document")
    return tidy_lines(_pieces(body, _ODT_BREAKS, _ODT_UNREAD))


def read_epub(path: Path, reading: Reading) -> str:
    """Return the text of a book's pages in reading order, without the table of contents."""
    with open_zip(path) as archive:
        # In any namespace, because it differs between versions of the format.
        name = next(parse_parts(archive, "META-INF/container.xml")[0].iter("{*}rootfile")).get("full-path", "")
        (package,) = parse_parts(archive, name)
        items = {item.get("id"): item for item in package.iter("{*}item")}
        spine = [items[ref.get("idref")] for ref in package.iter("{*}itemref") if ref.get("idref") in items]
        pages = [
            posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(item.get("href", ""))))
            for item in spine
            if item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split()
        ]
        texts = [page_text(archive.read(page), reading.encoding, xml=True) for page in pages]
    return "\n\n".join(filter(None, texts))


def read_xml(path: Path, reading: Reading) -> str:
    """Return the text of an XML file, such as JATS, TEI, ALTO or PAGE, without tags.

    Elements mixed with text are treated as inline; others become paragraphs. Bibliographic front matter, references and
    formulas are not read.
    """
    data = read_whole(path, reading)
    root = _parse_xml(data)
    if root.tag.rpartition("}")[2] == "html":
        return page_text(data, reading.encoding, xml=True)
    if text := tidy_lines(_scanned_text(root)):
        return text
    originals = "local-name()='choice']/*[contains(' sic orig abbr ', concat(' ', local-name(), ' '))"
    for node in root.xpath(f"//*[@break='no'] | //*[{originals}]"):
        node.tag = "math"  # skip these: TEI has breaks inside words, and the original beside the corrected form
    mixed = set(root.xpath("//*[text()[normalize-space()] or local-name()='choice']"))  # elements with inline children
    for node in root.iter("*"):
        if node.getparent() not in mixed and node.tag.rpartition("}")[2] not in _XML_UNREAD:
            node.tag = "p"
    breaks = {**dict.fromkeys(("br", "break", "lb", "pb", "cb"), "\n"), "note": " "}
    if text := tidy_lines(_pieces(root, breaks, _XML_UNREAD)):
        return text
    raise BadTextError(EMPTY, "no text between the tags; if it is in attributes, convert the file to a table")


def _scanned_text(root: etree._Element) -> Iterator[str]:
    """Yield the text of ALTO, which stores words in attributes, or PAGE, whose lines repeat their words."""
    for block in root.iter("{*}TextBlock"):
        yield "\n\n"
        for word in block.iter("{*}String"):
            if word.get("SUBS_TYPE") != "HypPart2":  # the first half contains the whole word
                yield word.get("SUBS_CONTENT") or word.get("CONTENT", "")
            if word.getnext() is None or not word.getnext().tag.endswith("HYP"):
                yield " "
    for region in root.iter("{*}TextRegion"):
        yield "\n\n"
        lines = region.findall("{*}TextEquiv[1]/{*}Unicode") or region.findall("{*}TextLine/{*}TextEquiv[1]/{*}Unicode")
        yield from (f"{line.text or ''}\n" for line in lines)


def read_rtf(path: Path, reading: Reading) -> str:
    """Return the text, with one paragraph per line."""
    return rtf_text(read_whole(path, reading))


def rtf_text(data: bytes) -> str:
    """Return the text of an RTF file."""
    from striprtf.striprtf import rtf_to_text

    if not data.lstrip().startswith(b"{\\rtf"):
        raise BadTextError(DAMAGED, "it does not begin with {\\rtf")
    text = rtf_to_text(_PICTURE.sub("", data.decode("latin-1")), errors="replace")
    # RTF encodes characters beyond the basic plane as surrogate pairs.
    return tidy_lines(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


@contextlib.contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive; raise ``BadTextError`` if it is encrypted or unpacks to far more than text would."""
    with path.open("rb") as stream:
        if stream.read(8) == _COMPOUND_FILE:
            raise BadTextError(ENCRYPTED, "it needs a password, or is an old .doc, .ppt or .xls file")
        with zipfile.ZipFile(stream) as archive:
            # The sizes in the archive's directory can be trusted: reading stops there.
            size, unpacked = path.stat().st_size, sum(part.file_size for part in archive.infolist())
            if unpacked > max(_MAX_UNPACKED, 100 * size):
                raise BadTextError(UNPACKS, f"to {unpacked:,} bytes from {size:,}")
            yield archive


def parse_parts(archive: zipfile.ZipFile, *names: str) -> list[etree._Element]:
    """Parse XML files of an archive; raise ``BadTextError`` if their trees would not fit in memory."""
    if (size := sum(archive.getinfo(name).file_size for name in names)) > _MAX_PARSED:
        raise BadTextError(UNPACKS, f"to {size:,} bytes of XML")
    return [_parse_xml(archive.read(name)) for name in names]


def linked_parts(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """Return the kind and the name of each part that a part of an Office Open XML file refers to, by id."""
    folder, name = posixpath.split(part)
    try:
        (root,) = parse_parts(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    except KeyError:
        return {}
    kinds = (link.get("Type", "").rpartition("/")[2] for link in root)
    targets = (posixpath.normpath(posixpath.join("/", folder, link.get("Target", ""))).lstrip("/") for link in root)
    return dict(zip((link.get("Id", "") for link in root), zip(kinds, targets, strict=True), strict=True))


def relation(node: etree._Element) -> str:
    """Return the id by which a node refers to a part."""
    return next((value for name, value in node.attrib.items() if name.endswith("}id")), "")


def _parse_xml(data: bytes) -> etree._Element:
    """Parse XML without resolving entities or external files."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    return etree.fromstring(data, parser)


def _pieces(root: etree._Element, breaks: dict[str, str], unread: Collection[str], text_tag: str = "") -> Iterator[str]:
    """Yield the texts and breaks in a tree, without recursion, because trees may be deep.

    Args:
        root: The root element.
        breaks: The text that stands for an empty element, by tag.
        unread: Tags of elements to leave out.
        text_tag: The only tag whose text is read (default: all tags, and the text after each element).
    """
    from lxml import etree

    inside = 0  # depth inside unread elements
    for event, node in etree.iterwalk(root, events=("start", "end")):
        name, starts = etree.QName(node).localname if isinstance(node.tag, str) else "", event == "start"
        if name in unread:
            inside += 1 if starts else -1
        if inside:
            continue
        if name in ("p", "h"):
            yield "\n\n"
        elif starts:
            yield breaks.get(name, "")
        text = node.text if starts else node.tail
        if text_tag and not (starts and name == text_tag):
            text = ""
        text = text if name else html.unescape(text or "")  # an unresolved entity, possibly an HTML one
        if text and (starts or node is not root):
            yield " ".join(f"|{text}|".split())[1:-1]


def read_pdf(path: Path, reading: Reading) -> str:
    """Return the text of all pages, joined, because sentences may continue on the next page.

    Ligatures are replaced by letters, and words hyphenated at line ends are joined.
    """
    import pypdf

    # Silence pypdf's warnings about repairs; unreadable files are reported here.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pages: list[str] = []
    characters = 0
    try:
        with path.open("rb") as stream:
            for page in pypdf.PdfReader(stream).pages:
                pages.append(page.extract_text().strip())
                characters += len(pages[-1])
                if characters > reading.max_characters:
                    break
    except (pypdf.errors.FileNotDecryptedError, pypdf.errors.WrongPasswordError) as error:
        raise BadTextError(ENCRYPTED, "it needs a password") from error
    if not any(pages):
        raise BadTextError(NO_TEXT, f"{len(pages):,} pages")
    return _join_words(_LIGATURE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), "\n".join(pages)))


def _join_words(text: str) -> str:
    """Join words that are hyphenated at line ends.

    A hyphen is removed if it is soft or if the joined word occurs in the text. It is kept if the hyphenated word occurs
    in the text, before a capital, next to a digit, and between two words that occur in the text. Otherwise it is
    removed, unless the first part is a word such as "long" or "self".
    """
    words = {match[0].lower() for match in _WHOLE_WORD.finditer(text)} if _TORN.search(text) else frozenset[str]()

    def join(match: regex.Match[str]) -> str:
        first, hyphen, second = match.groups()
        start, end = first.lower(), second.lower()
        word = start + end
        stays = f"{start}-{end}" in words or second[0].isupper() or _NUMBER.search(word) or start in _FIRST_OF_TWO
        is_word = hyphen == "\xad" or word in words or not (stays or {start, end} <= words)
        return first + second if is_word else f"{first}{hyphen}{second}"

    count = 1
    while count:  # a word may be hyphenated twice
        text, count = _TORN.subn(join, text)
    return text.replace("\xad", "")
