"""DOCX, PPTX, XLSX, MSG, ODT, RTF, EPUB and PDF: the text that is read, files without text, and malicious files."""

from __future__ import annotations

import time
import tracemalloc
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import docx
import olefile
import pypdf
import pytest
from reading_support import page, skipped, texts, write_docx, write_epub, write_odt, write_pdf, write_zip

from simlte_st.reading.documents import read_documents

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
TRANSITIONAL = f'xmlns:w="{WORD}" xmlns:mc="{COMPATIBILITY}"'


def write_word(path: Path, body: str, footnotes: str = "") -> Path:
    """Write a Word file from its parts."""
    parts = {"word/document.xml": f"<w:document {TRANSITIONAL}><w:body>{body}</w:body></w:document>"}
    if footnotes:
        parts["word/footnotes.xml"] = f"<w:footnotes {TRANSITIONAL}>{footnotes}</w:footnotes>"
    write_zip(path, parts)
    return path


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def paragraph(*content: str) -> str:
    return f"<w:p>{''.join(content)}</w:p>"


FORM = f"<w:sdt><w:sdtPr>{{}}</w:sdtPr><w:sdtContent>{run('Enter text.')}</w:sdtContent></w:sdt>"


def box(text: str) -> str:
    inside = f"<w:txbxContent>{paragraph(run(text))}</w:txbxContent>"
    twice = f"<mc:Choice>{inside}</mc:Choice><mc:Fallback>{inside}</mc:Fallback>"
    return f"<w:r><mc:AlternateContent>{twice}</mc:AlternateContent></w:r>"


def test_docx_is_read_in_order(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Heading")
    paragraph = document.add_paragraph("One ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" word.\nNext\tline.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.save(str(tmp_path / "a.docx"))
    assert texts(tmp_path / "a.docx") == ["Heading\n\nOne bold word.\nNext line.\n\nleft\n\nright"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (paragraph("<w:moveFrom>", run("a"), "</w:moveFrom>") + paragraph("<w:moveTo>", run("a"), "</w:moveTo>"), "a"),
        (paragraph("<w:del><w:r><w:delText>9</w:delText></w:r></w:del><w:ins>", run("80"), "</w:ins>"), "80"),
        (paragraph(run("a"), run("b", "<w:vanish/>"), run("c", '<w:vanish w:val="0"/>')), "ac"),
        (paragraph(run("a"), box("in a box"), run("b")), "a\n\nin a box\n\nb"),
        (paragraph(run("a"), FORM.format("<w:showingPlcHdr/>"), FORM.format("<w:text/>")), "aEnter text."),
        (paragraph("<w:fldSimple>", run("May"), "</w:fldSimple><w:r><w:instrText>PAGE</w:instrText></w:r>"), "May"),
    ],
)
def test_docx_revisions_and_fields_give_final_text(tmp_path: Path, body: str, expected: str) -> None:
    assert texts(write_word(tmp_path / "a.docm", body)) == [expected]
    noted = write_word(tmp_path / "a.docm", body, f"<w:footnote>{paragraph(run('A note.'))}</w:footnote>")
    assert texts(noted) == [f"{expected}\n\nA note."]


def test_odt_is_read_in_order(tmp_path: Path) -> None:
    body = (
        "<office:text>\n <text:tracked-changes><text:p>deleted</text:p></text:tracked-changes> "
        '<text:h>Heading</text:h><text:p>One <text:span>bo</text:span>ld<text:s text:c="3"/>word<text:note>'
        "<text:note-citation>1</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body>"
        "</text:note>"
        "\n goes<text:tab/>on<office:annotation><text:p>comment</text:p></office:annotation>.<text:line-break/>Next "
        "line.</text:p><text:list><text:list-item><text:p>Item</text:p></text:list-item></text:list></office:text>"
    )
    write_odt(tmp_path / "a.odt", body)
    assert texts(tmp_path / "a.odt") == ["Heading\n\nOne bold word\n\nA note.\n\ngoes on.\nNext line.\n\nItem"]


def test_epub_pages_are_in_reading_order(tmp_path: Path) -> None:
    pages = {"nav.xhtml": page("Contents"), "2 two.xhtml": page("<p>One.</p>Two."), "1.xhtml": page("<i/>Größe<br/>x")}
    write_epub(tmp_path / "a.epub", pages)
    assert texts(tmp_path / "a.epub") == ["One.\n\nTwo.\n\nGröße\nx"]


def test_epub_pages_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    write_epub(tmp_path / "a.epub", {"1.xhtml": page("One."), "2.xhtml": page("Two.")})
    with zipfile.ZipFile(tmp_path / "a.epub") as book:
        parts = {name: book.read(name).decode() for name in book.namelist()}
    parts["book/a.opf"] = (
        parts["book/a.opf"].replace("text/1.xhtml", "text/cover.xhtml").replace('2.xhtml"', '2.xhtml#a"')
    )
    write_zip(tmp_path / "a.epub", parts)
    reader = read_documents(tmp_path / "a.epub")
    assert [document.text for document in reader] == ["Two."]
    assert reader.report.examples == {"page missing or damaged": ["a.epub: book/text/cover.xhtml"]}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"One \b bold\b0  word.\par Next\line line.", "One bold word.\nNext\nline."),
        (r"\ansicpg1251 \'e4\'ee\'ec", "дом"),
        (r"\uc1 Gr\u252?\u223?e \u-10179?\u-8704?", "Grüße 😀"),
        (r"{\fonttbl{\f0\fcharset0 Arial;}}{\pict\pngblip " + "89504e47\n" * 9_000 + "}Text", "Text"),
        (r"It is {\deleted 9\par 0}{\revised 120}, \v x\'e9\u233?{\b y}\v0 not{\mvf z}\v w\plain .", "It is 120, not."),
        (r"A{\footnote\pard {\b Note} one.}, b{\deleted {\footnote x}}{\footnote Two.}.", "A, b.\nNote one.\nTwo."),
    ],
)
def test_rtf_escapes(tmp_path: Path, written: str, meant: str) -> None:
    (tmp_path / "a.rtf").write_bytes(f"{{\\rtf1\\ansi {written}}}".encode())
    assert texts(tmp_path) == [meant]


def test_files_without_text_are_counted(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("Text.")
    for suffix in ("docx", "odt", "rtf", "epub"):
        (tmp_path / f"other.{suffix}").write_bytes(b"PK\3\4 no archive")
    (tmp_path / "locked.docx").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500))
    write_word(tmp_path / "empty.docx", paragraph())
    write_odt(tmp_path / "sheet.odt", "<office:spreadsheet/>")
    write_zip(tmp_path / "lost.epub", {"META-INF/container.xml": '<rootfile full-path="../../etc/passwd"/>'})
    assert skipped(tmp_path) == {"damaged": 6, "encrypted": 1, "empty": 1}


@pytest.mark.parametrize("name", ["a.docx", "a.odt", "a.epub", "a.pptx", "a.xlsx"])
def test_zip_bombs_are_not_unpacked(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as bomb, bomb.open("x", "w") as stream:
        for _ in range(30):
            stream.write(bytes(1 << 20))
    (tmp_path / "good.txt").write_text("Text.")
    tracemalloc.start()
    try:
        assert skipped([tmp_path / name, tmp_path / "good.txt"]) == {"unpacks to far more than text would": 1}
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_entities_are_not_expanded_and_nesting_is_cheap(tmp_path: Path) -> None:
    write_docx(tmp_path / "good.docx", ["good"])
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f'<!DOCTYPE d [<!ENTITY l0 "lol">{lol}]>'
    write_zip(tmp_path / "a.docx", {"word/document.xml": f'{doctype}<w:p xmlns:w="{WORD}"><w:t>&l9;</w:t></w:p>'})
    write_zip(tmp_path / "a.odt", {"content.xml": f"{doctype}<text:p xmlns:text='t'>&l9;</text:p>"})
    write_odt(tmp_path / "b.odt", f"<office:text>{'<text:p>' * 50_000}deep{'</text:p>' * 50_000}</office:text>")
    began = time.process_time()
    assert sum(skipped(tmp_path).values()) == 3
    assert time.process_time() - began < 10


@pytest.mark.parametrize("part", ["{", "{\\fonttbl", '{\\field{\\*\\fldinst HYPERLINK "x"}{\\fldrslt ', "\\'", "\\u1"])
def test_hostile_rtf_takes_linear_time(tmp_path: Path, part: str) -> None:
    (tmp_path / "b.txt").write_text("Text.")
    (tmp_path / "a.rtf").write_bytes(b"{\\rtf1 " + part.encode() * (200_000 // len(part)))
    began = time.process_time()
    texts(tmp_path)
    assert time.process_time() - began < 5


def test_pdfs_without_text_are_counted(tmp_path: Path) -> None:
    sound = write_pdf(tmp_path / "good.pdf", ["A sentence of a page."]).read_bytes()
    write_pdf(tmp_path / "scan.pdf", [], [])
    write_pdf(tmp_path / "long.pdf", ["word " * 100], ["word " * 100])
    (tmp_path / "cut.pdf").write_bytes(sound[:150])
    (tmp_path / "none.pdf").write_bytes(b"no PDF at all")
    (tmp_path / "empty.pdf").write_bytes(b"")
    for name, password in (("locked", "secret"), ("open", "")):
        writer = pypdf.PdfWriter(tmp_path / "good.pdf")
        writer.encrypt(password, "owner", algorithm="AES-256")
        writer.write(tmp_path / f"{name}.pdf")
    reader = read_documents(tmp_path, max_characters=300)
    assert [(document.id, document.text) for document in reader] == [
        ("good.pdf", "A sentence of a page."),
        ("open.pdf", "A sentence of a page."),
    ]
    assert reader.report.skipped == {
        "damaged": 3, "encrypted": 1, "without text (scanned?)": 1, "too long": 1
    }  # fmt: skip
    assert reader.report.examples["without text (scanned?)"] == ["scan.pdf: 2 pages"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["more infor-", "mation"], "more information"),
        (["infor-", "mation, re-", "search"], "information, research"),
        (["infor-", "ma-", "tion and informa-", "tion"], "information and information"),
        (["a long-", "term plan"], "a long-term plan"),
        (["longterm and long-", "term"], "longterm and longterm"),
        (["co-operate, co-", "operate"], "co-operate, co-operate"),
        (["Anglo-", "Saxon"], "Anglo-Saxon"),
        (["COVID-", "19 and 1-", "2"], "COVID-19 and 1-2"),
        (["river bank, river-", "bank"], "river bank, river-bank"),
        (["soft\\255", "ware and hard\\255ware"], "software and hardware"),
        (["a dash -", "here"], "a dash -\nhere"),
    ],
)
def test_hyphenated_words_are_joined(tmp_path: Path, lines: list[str], expected: str) -> None:
    assert texts(write_pdf(tmp_path / "a.pdf", lines)) == [expected]
    assert texts(write_pdf(tmp_path / "a.pdf", *([line] for line in lines))) == [expected], "from page to page too"


def test_ligatures_become_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pypdf.PageObject, "extract_text", lambda page: "eﬃcient ﬂow, ﬁnd ﬆ ﻻ x² ½ Å")
    assert texts(write_pdf(tmp_path / "a.pdf", ["x"])) == ["efficient flow, find st لا x² ½ Å"]


FILES = Path(__file__).parent / "files"  # LibreOffice 7.4 wrote deck.pptx and book.xlsx, extract-msg wrote mail.msg
SLIDES = ["Ferry timetable", "The ferry leaves at dawn.", "It returns at noon.", "Port", "Price", "Oban", "12.50"]
DECK = "\n\n".join([*SLIDES, "Mention the storm.", "Questions?", "in a group"])
TABLE = ["The harbour café was lovely.", "Too loud."]
FORM = "Invoice\nTotal\t1234.5\nDue\t2024-02-29 14:05:00\nPaid\tTrue"
PRICES = {"price": "12.5", "when": "2023-03-15", "share": "12.5%", "zip": "123", "sum": "25"}
SENT = {"sender": "Ann Lee <ann@example.com>", "date": datetime(2024, 2, 29, 14, 5, tzinfo=UTC)}
OTHER_PROGRAMS = (
    ("deck.pptx", [DECK], {"file": "deck"}, "slide 2"),
    ("book.xlsx", [*TABLE, FORM], PRICES, "Lists"),
    ("mail.msg", ["Grüße vom Hafen\n\nThe ferry leaves\nat dawn\n\nGröße"], SENT, ""),
)


@pytest.mark.parametrize(("name", "expected", "columns", "left_out"), OTHER_PROGRAMS)
def test_files_of_other_programs(name: str, expected: list[str], columns: dict[str, object], left_out: str) -> None:
    reader = read_documents(FILES / name, metadata=True)
    first, *others = reader
    assert [first.text, *(document.text for document in others)] == expected
    assert columns.items() <= (first.metadata or {}).items()
    assert left_out in str(reader.report.examples)


SHOWN = (  # number formats, numbers, and the numbers as shown
    ("General", 0.1 + 0.2, "0.3"), ("0.0%", 0.07, "7%"), ('0 "days"', 2, "2"), ("dd\\.mm\\.yy", 45000, "2023-03-15"),
    ("[h]:mm", 0.25, "6:00:00"), ("[$-409]d/m/yy h:mm", 45000.75, "2023-03-15 18:00:00"), ("[Red]0.00", -1, "-1"),
    ("0%", 2, "200%"), ("0", 12345678901234567890, "12345678901234567890"), ("mm:ss", 0.5, "12:00:00"),
)  # fmt: skip
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
CODES = "".join(f"<numFmt numFmtId='{n + 200}' formatCode='{code}'/>" for n, (code, _, _) in enumerate(SHOWN))
STYLES = "".join(f"<xf numFmtId='{n + 200}'/>" for n in range(len(SHOWN)))
NUMBERS = "".join(f"<row><c s='{n}'><v>{number}</v></c></row>" for n, (_, number, _) in enumerate(SHOWN))
HEADER = "<row><c t='str'><v>a</v></c><c t='str'><v>b</v></c></row>"
LAUGHS = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
SHEETS = (
    (NUMBERS, ["\n".join(shown for _, _, shown in SHOWN)], {}),
    (f"<row><c t='str'><v>Title</v></c></row>{HEADER}{HEADER}", ["Title\na\tb\na\tb"], {}),
    (HEADER + NUMBERS, [], {"sheet without a text column": 1}),
    ("<row><c t='e'><v>#N/A</v></c><c t='inlineStr'><is><t>a</t></is></c><c><f>1+1</f></c></row>", ["a"], {}),
    ("<row><c t='n' s='3'><v>1e9</v></c><c t='b'><v>1</v></c></row>", ["True"], {}),
    (f"<row r='{10**12}'><c r='ZZZ1'><v>1</v></c></row>", ["1"], {}),
    ("<row><c r='ZZZ1'><v>1</v></c></row>" * 100_000, ["\n".join("1" * 100_000)], {}),
    ("<row/>" * 1_000_000, [], {"empty": 1}),
    ("<row><c t='s'><v>99</v></c></row>", [], {"damaged": 1}),
    ("<row>", [], {"damaged": 1}),
    ("", [], {"damaged": 1}),
)


def write_workbook(path: Path, sheet: str, **parts: str) -> Path:
    """Replace the second sheet of book.xlsx, and other parts."""
    with zipfile.ZipFile(FILES / "book.xlsx") as book:
        files = {name: book.read(name).decode() for name in book.namelist()}
    files["xl/styles.xml"] = f"<s xmlns='{SHEET}'>{CODES}<cellXfs>{STYLES}</cellXfs></s>"
    files["xl/worksheets/sheet2.xml"] = sheet
    files |= {f"xl/{name}.xml": part for name, part in parts.items()}
    return write_zip(path, {name: part for name, part in files.items() if part})


@pytest.mark.parametrize(("rows", "expected", "reasons"), SHEETS)
def test_sheets_are_read_or_reported(tmp_path: Path, rows: str, expected: list[str], reasons: dict[str, int]) -> None:
    dimension = "<dimension ref='A1:XFD1048576'/>"
    sheet = f"<w xmlns='{SHEET}'>{dimension}<sheetData>{rows}</sheetData></w>" if rows else ""
    reader, began = read_documents(write_workbook(tmp_path / "a.xlsx", sheet)), time.process_time()
    assert [document.text for document in reader] == [*TABLE, *expected]
    assert time.process_time() - began < 10
    assert reader.report.skipped == {"hidden sheet": 1, **reasons}


def test_sheets_without_a_named_column_are_counted() -> None:
    reader = read_documents(FILES / "book.xlsx", text_column="text", metadata=True)
    assert [document.text for document in reader] == TABLE
    assert reader.report.skipped == {"hidden sheet": 1, "sheet without a text column": 1}
    assert skipped([FILES / "book.xlsx", FILES / "deck.pptx"], label_column="price") == reader.report.skipped


RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
REPEATED = f"<w xmlns='{SHEET}' xmlns:r='{RELATIONS}'><sheets>" + "<sheet name='a' r:id='rId2'/>" * 1_000
LONG_ROW = f"<w xmlns='{SHEET}'><sheetData><row>" + "<c t='s'><v>0</v></c>" * 100_000 + "</row></sheetData></w>"
LONG = f"<s xmlns='{SHEET}'><si><t>{'a ' * 1_000_000}</t></si></s>"
FORMATS = f"<s xmlns='{SHEET}'><numFmt numFmtId='200' formatCode='{'[' * 1_000_000}'/></s>"
ENTITIES = f"<!DOCTYPE s [<!ENTITY l0 'lol'>{LAUGHS}]><s xmlns='{SHEET}'><si><t>&l9;</t></si></s>"


@pytest.mark.parametrize(
    ("parts", "reasons"),
    [
        ({"workbook": f"{REPEATED}</sheets></w>"}, {"damaged": 999}),
        ({"sharedStrings": LONG, "worksheets/sheet2": LONG_ROW}, {"damaged": 1, "hidden sheet": 1, "too long": 1}),
        ({"styles": FORMATS, "worksheets/sheet2": ""}, {"hidden sheet": 1, "damaged": 1}),
        ({"sharedStrings": ENTITIES}, {"damaged": 1}),
        ({"sharedStrings": ""}, {"damaged": 1}),
        ({"workbook": ""}, {"damaged": 1}),
    ],
)
def test_hostile_workbooks_are_reported(tmp_path: Path, parts: dict[str, str], reasons: dict[str, int]) -> None:
    (tmp_path / "good.txt").write_text("Text.")
    began = time.process_time()
    assert skipped([write_workbook(tmp_path / "a.xlsx", "", **parts), tmp_path / "good.txt"]) == reasons
    assert time.process_time() - began < 10


def test_dates_since_1904(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "book.xlsx") as book:
        workbook = book.read("xl/workbook.xml").decode().replace('date1904="false"', 'date1904="1"')
    sheet = f"<w xmlns='{SHEET}'><sheetData><row><c s='3'><v>1</v></c></row></sheetData></w>"
    assert texts(write_workbook(tmp_path / "a.xlsx", sheet, workbook=workbook))[-1] == "1904-01-02"


def write_message(path: Path, names: dict[str, str], text: str = "", encoding: str = "") -> Path:
    """Rename streams in mail.msg, and replace the text in 8 bits a character."""
    data = (FILES / "mail.msg").read_bytes()
    for old, new in names.items():
        data = data.replace(old.encode("utf-16-le"), new.encode("utf-16-le"))
    old = "The ferry leaves\r\nat dawn\r\n".encode("utf-16-le")
    assert old in data
    path.write_bytes(data.replace(old, text.encode(encoding).ljust(len(old))) if text else data)
    return path


@pytest.mark.parametrize(
    ("stream", "text", "encoding", "expected"),
    [
        ("1013001F", "", "", "The ferry leaves at dawn"),
        ("1000001E", "Caf\xe9 \u201copen\u201d", "cp1252", "Caf\xe9 \u201copen\u201d"),
        ("10130102", "<meta charset=koi8-r><i>Паром</i> ушёл", "koi8-r", "Паром ушёл"),
        ("10130102", "<p>Größe", "utf-8", "Größe"),
    ],
)
def test_outlook_texts(tmp_path: Path, stream: str, text: str, encoding: str, expected: str) -> None:
    path = write_message(tmp_path / "a.msg", {"1000001F": stream}, text, encoding)
    assert texts(path) == [f"Grüße vom Hafen\n\n{expected}\n\nGröße"]


def test_outlook_messages_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = read_documents(write_message(tmp_path / "rich.msg", {"1000001F": "10090102"}))
    assert [document.text for document in reader] == ["Grüße vom Hafen\n\nGröße"]
    assert reader.report.repaired == {"text stored only as RTF not read": 1}
    (tmp_path / "cut.msg").write_bytes((FILES / "mail.msg").read_bytes()[:2_000])
    (tmp_path / "none.msg").write_bytes(b"no message")
    names = {"001A001F": "001B001F", "0037001F": "001A001F", "Grüße vom Hafen": "IPM.Note.SMIME\0"}
    write_message(tmp_path / "locked.msg", names)
    assert skipped(tmp_path) == {"unreadable": 2, "encrypted": 1}
    monkeypatch.setattr(olefile.OleFileIO, "get_size", lambda file, path: 1 << 30)
    (tmp_path / "good.txt").write_text("Text.")
    assert skipped([tmp_path / "rich.msg", tmp_path / "good.txt"]) == {"too long": 1}
