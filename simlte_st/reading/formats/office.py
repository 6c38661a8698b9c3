"""Read office documents, books and XML: lxml reads DOCX, PPTX, ODT, EPUB and XML; striprtf RTF; pypdf PDF."""

from __future__ import annotations

import contextlib
import html
import logging
import posixpath
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import regex

from simlte_st.reading.formats.html import page_text
from simlte_st.reading.rows import DAMAGED, EMPTY, ENCRYPTED, BadTextError, Content, Reading
from simlte_st.reading.text_files import read_whole, tidy_lines

if TYPE_CHECKING:
    from lxml import etree

UNPACKS = "unpacks to far more than text would"

# Bytes of an archive (or 100 times its size), and of a part of it, whose tree takes 30 times as much memory.
_MAX_UNPACKED, _MAX_PARSED = 20_000_000, 100_000_000
_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")  # signature of the container of encrypted documents

_WORD_PARTS = (re.compile(r"word/document\d*\.xml"), re.compile(r"word/(?:foot|end)notes\d*\.xml"))
_WORD_BREAKS = {"br": "\n", "cr": "\n", "tab": " ", "noBreakHyphen": "-"}
_WORD_UNREAD = frozenset(("moveFrom", "Fallback"))  # moved text where it was, and duplicates for old readers
_ODT_BREAKS = {"line-break": "\n", "s": " ", "tab": " "}
_ODT_UNREAD = frozenset(("tracked-changes", "annotation", "note-citation", "forms"))
_XML_UNREAD = frozenset((  # elements of JATS and TEI that are not prose: metadata, references, formulas
    "journal-meta", "contrib-group", "aff", "article-id", "pub-date", "history", "permissions", "funding-group",
    "ref-list", "math", "tex-math", "encodingDesc", "publicationStmt", "sourceDesc", "revisionDesc", "listBibl",
))  # fmt: skip
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_PICTURE = re.compile(r"[0-9a-fA-F\r\n]{2000,}")  # a picture in RTF, in hexadecimal digits

_RTF_TOKEN = re.compile(r"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'[0-9a-fA-F]{2}|\\[^a-z]|[{}]|[^\\{}]+|\\", re.DOTALL)
_RTF_HIDING = frozenset(("deleted", "mvf", "v"))  # deleted, moved to another place, hidden

_LIGATURE = re.compile("[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc]")  # including Arabic presentation forms
_SIGN = r"[\p{L}\p{M}\p{N}]"
_TORN = regex.compile(rf"({_SIGN}+)([-\u2010\xad])[ \t]*\n[ \t]*({_SIGN}+)")
_WHOLE_WORD = regex.compile(rf"{_SIGN}+(?:[-\u2010]{_SIGN}+)*+(?![-\u2010\xad])")
_NUMBER = regex.compile(r"\p{N}")
# Words that, before a hyphen at the end of a line, usually begin a compound.
_FIRST_OF_TWO = frozenset((
    "cross", "double", "end", "first", "four", "full", "half", "hand", "hard", "high", "human", "large", "last", "left",
    "light", "long", "low", "mid", "multi", "near", "new", "non", "off", "one", "open", "peer", "post", "pre", "real",
    "right", "second", "self", "semi", "short", "single", "small", "third", "three", "time", "top", "two", "well",
))  # fmt: skip


def read_docx(path: Path, reading: Reading) -> str:
    """Return the text with tracked changes accepted: the paragraphs in order, then footnotes and endnotes.

    Hidden text, placeholders of forms, comments, headers and footers are not read.
    """
    with open_zip(path) as archive:
        names = archive.namelist()
        trees = [parse_part(archive, name) for part in _WORD_PARTS for name in names if part.fullmatch(name)]
    for mark in [mark for tree in trees for mark in tree.iter("{*}vanish")]:
        run = mark.getparent().getparent()
        if run.getparent() is not None and mark.get(f"{mark.tag.removesuffix('vanish')}val") not in ("0", "false"):
            run.getparent().remove(run)
    for mark in [mark for tree in trees for mark in tree.iter("{*}showingPlcHdr")]:
        if mark.get(f"{mark.tag.removesuffix('showingPlcHdr')}val") not in ("0", "false", "off"):
            for content in mark.getparent().getparent().findall("{*}sdtContent"):
                content.getparent().remove(content)
    return tidy_lines(piece for tree in trees for piece in _pieces(tree, _WORD_BREAKS, _WORD_UNREAD, "t"))


def read_pptx(path: Path, reading: Reading) -> Content:
    """Return the text of the slides in order: the title, the shapes and tables, then the notes.

    Hidden slides, comments, headers and footers are not read.
    """
    texts, hidden = list[str](), list[str]()
    with open_zip(path) as archive:
        deck = dict(linked_parts(archive, "").values())["officeDocument"]
        slides = linked_parts(archive, deck)
        for number, node in enumerate(parse_part(archive, deck).iter("{*}sldId"), start=1):
            _, slide = slides[relation(node)]
            tree, notes = parse_part(archive, slide), dict(linked_parts(archive, slide).values()).get("notesSlide")
            if tree.get("show") in ("0", "false"):
                hidden.append(str(number))
                continue
            texts.append(_slide_text(tree))
            if notes:
                texts.append(_slide_text(parse_part(archive, notes)))
    repairs = {"hidden slide": f"slide {', '.join(hidden)}"} if hidden else {}
    return Content("\n\n".join(filter(None, texts)), repairs=repairs)


def _slide_text(tree: etree._Element) -> str:
    """Return the text of a slide or of its notes, with the title first."""
    for shape in list(tree.iter("{*}sp")):
        kind = next((node.get("type") for node in shape.iter("{*}ph")), None)
        if kind in ("dt", "ftr", "hdr", "sldNum"):  # dates, footers, headers and page numbers
            shape.getparent().remove(shape)
        elif kind in ("title", "ctrTitle"):
            tree.insert(0, shape)
    return tidy_lines(_pieces(tree, _WORD_BREAKS, _WORD_UNREAD, "t"))


def read_odt(path: Path, reading: Reading) -> str:
    """Return the text: paragraphs, headings, lists, tables, and notes at their references.

    Deleted text, comments, headers and footers are not read.
    """
    with open_zip(path) as archive:
        body = parse_part(archive, "content.xml").find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise BadTextError(DAMAGED, "not a text document")
    return tidy_lines(_pieces(body, _ODT_BREAKS, _ODT_UNREAD))


def read_epub(path: Path, reading: Reading) -> Content:
    """Return the text of a book's pages in reading order, without the table of contents."""
    with open_zip(path) as archive:
        # In any namespace, because it differs between versions of the format.
        name = next(parse_part(archive, "META-INF/container.xml").iter("{*}rootfile")).get("full-path", "")
        package = parse_part(archive, name)
        items = {item.get("id"): item for item in package.iter("{*}item")}
        spine = [items[ref.get("idref")] for ref in package.iter("{*}itemref") if ref.get("idref") in items]
        pages = [
            posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(item.get("href", "").partition("#")[0])))
            for item in spine
            if item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split()
        ]
        texts, unread = list[str](), list[str]()
        for page in dict.fromkeys(pages):  # a page may be listed once for each of its fragments
            try:
                texts.append(page_text(archive.read(page.lstrip("/")), reading.encoding, xml=True))
            except (KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):  # missing, encrypted or damaged
                unread.append(page)
    if unread and not any(texts):
        raise BadTextError(DAMAGED, f"{unread[0]} cannot be read")
    return Content("\n\n".join(filter(None, texts)), repairs={"page missing or damaged": unread[0]} if unread else {})


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
    from striprtf.striprtf import rtf_to_text

    data = read_whole(path, reading)
    if not data.lstrip().startswith(b"{\\rtf"):
        raise BadTextError(DAMAGED, "it does not begin with {\\rtf")
    text = rtf_to_text(_accept_changes(_PICTURE.sub("", data.decode("latin-1"))), errors="replace")
    # RTF encodes characters beyond the basic plane as surrogate pairs.
    return tidy_lines(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _accept_changes(rtf: str) -> str:
    """Remove deleted, moved and hidden text, and move footnotes to the end."""
    from striprtf.striprtf import specialchars

    body, notes = list[str](), list[str]()
    groups: list[tuple[frozenset[str], list[str]]] = []
    hidden, pieces = frozenset[str](), body
    for match in _RTF_TOKEN.finditer(rtf):
        token, word, number = match[0], match[1], match[2]
        if token == "{":
            groups.append((hidden, pieces))
        elif token == "}" and groups:
            if len(groups) == 1:
                pieces.extend(notes)
            pieces.append(token)
            hidden, outside = groups.pop()
            if outside is pieces:
                continue
            pieces = outside  # where the group of the note began
        elif word == "footnote":
            pieces, token = notes, "{" if hidden else "{\\par "
        elif word in _RTF_HIDING:
            hidden = hidden - {word} if number == "0" else hidden | {word}
        elif word == "plain":
            hidden = frozenset()
        elif hidden and (word in specialchars or word in (None, "u")):
            continue
        pieces.append(token)
    return "".join(body)


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


def parse_part(archive: zipfile.ZipFile, name: str) -> etree._Element:
    """Parse a part of an archive, once; raise ``BadTextError`` if its tree would not fit in memory."""
    info = archive.NameToInfo.pop(name)  # a crafted file may refer to one part many times
    if info.file_size > _MAX_PARSED:
        raise BadTextError(UNPACKS, f"{name} to {info.file_size:,} bytes of XML")
    return _parse_xml(archive.read(info))


def linked_parts(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """Return the kind and the name of each part that a part of an Office Open XML file refers to, by id."""
    folder, name = posixpath.split(part)
    links = parse_part(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    targets = (posixpath.normpath(posixpath.join("/", folder, link.get("Target", ""))) for link in links)
    kinds = (link.get("Type", "").rpartition("/")[2] for link in links)
    return {link.get("Id", ""): (kind, target[1:]) for link, kind, target in zip(links, kinds, targets, strict=True)}


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
        raise BadTextError("without text (scanned?)", f"{len(pages):,} pages")
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
