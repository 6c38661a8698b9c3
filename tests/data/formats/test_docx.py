"""DOCX files: what of them is text, and files that are made to do harm."""

from __future__ import annotations

import itertools
import re
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_support import skipped, texts, write_docx

from simlte_st.data.documents import read_documents
from simlte_st.errors import EmptyCorpusError


def test_a_docx_is_read_whole_and_in_order(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Heading")
    paragraph = document.add_paragraph("One ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" word.\nNext\tline.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    inserted = document.add_paragraph("Kept.")._p
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    for tag, text in (("ins", "t"), ("del", "delText")):  # changes that are tracked
        change = inserted.makeelement(f"{{{word}}}{tag}")
        run = inserted.makeelement(f"{{{word}}}r")
        content = inserted.makeelement(f"{{{word}}}{text}")
        content.text = f" {tag}"
        run.append(content)
        change.append(run)
        inserted.append(change)
    document.save(str(tmp_path / "a.docx"))
    assert texts(tmp_path / "a.docx") == [
        "Heading\n\nOne bold word.\nNext line.\n\nleft\n\nright\n\nKept. ins"
    ]  # fmt: skip


def test_a_docx_that_unpacks_to_very_much_is_not_unpacked(tmp_path: Path) -> None:
    write_docx(tmp_path / "good.docx", ["good"])
    for name, part in (("text", "word/document.xml"), ("picture", "word/media/image1.png")):
        with (
            zipfile.ZipFile(tmp_path / "good.docx") as sound,
            zipfile.ZipFile(tmp_path / f"{name}.docx", "w", zipfile.ZIP_DEFLATED) as bomb,
        ):
            for one in sound.infolist():
                if one.filename != part:
                    bomb.writestr(one, sound.read(one))
            with bomb.open(part, "w") as stream:
                for _ in range(30):
                    stream.write(bytes(1 << 20))
    assert (tmp_path / "text.docx").stat().st_size < 200_000
    tracemalloc.start()
    try:
        assert skipped(tmp_path) == {"unpacking to far more than text does": 2}
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_entities_of_a_docx_are_not_expanded(tmp_path: Path) -> None:
    write_docx(tmp_path / "good.docx", ["good"])
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    with zipfile.ZipFile(tmp_path / "good.docx") as sound, zipfile.ZipFile(tmp_path / "bomb.docx", "w") as bomb:
        for one in sound.infolist():
            data = sound.read(one)
            if one.filename == "word/document.xml":
                data = data.replace(b"good", b"&e9;").replace(
                    b"<w:document", f'<!DOCTYPE x [<!ENTITY e0 "lol">{entities}]><w:document'.encode(), 1
                )
            bomb.writestr(one, data)
    reader = read_documents(tmp_path)
    assert [document.text for document in reader] == ["good"]
    assert sum(reader.report.skipped.values()) == 1


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write(path: Path, body: str, strict: bool = False, **parts: str) -> Path:
    """Write a Word file of its parts, the main one of which holds the body."""
    names = {"w": WORD, "m": MATH, "r": RELATIONS, "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006"}
    declared = " ".join(f'xmlns:{name}="{space}"' for name, space in names.items())
    files = {
        "_rels/.rels": f'<Relationships><Relationship Id="a" Type="{RELATIONS}/officeDocument" Target="w/d.xml"/>'
        "</Relationships>",
        "w/_rels/d.xml.rels": "<Relationships>"
        + "".join(f'<Relationship Id="{kind}" Type="{RELATIONS}/{kind}" Target="/w/{kind}.xml"/>' for kind in parts)
        + "</Relationships>",
        "w/d.xml": f"<w:document {declared}><w:body>{body}</w:body></w:document>",
        **{f"w/{kind}.xml": f"<w:{kind} {declared}>{content}</w:{kind}>" for kind, content in parts.items()},
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            if strict:
                content = content.replace(WORD, "http://purl.oclc.org/ooxml/wordprocessingml/main")
                content = content.replace(MATH, "http://purl.oclc.org/ooxml/officeDocument/math")
                content = content.replace(RELATIONS, "http://purl.oclc.org/ooxml/officeDocument/relationships")
            archive.writestr(name, content)
    return path


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def paragraph(*content: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(content)}</w:p>"


def box(*paragraphs: str) -> str:
    inside = f"<w:txbxContent>{''.join(paragraphs)}</w:txbxContent>"
    twice = f"<mc:Choice>{inside}</mc:Choice><mc:Fallback>{inside}</mc:Fallback>"
    return f"<w:r><mc:AlternateContent>{twice}</mc:AlternateContent></w:r>"


def field(text: str, properties: str = "") -> str:
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{run(text)}</w:sdtContent></w:sdt>"


def math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (paragraph("<w:moveFrom>", run("a"), "</w:moveFrom>") + paragraph("<w:moveTo>", run("a"), "</w:moveTo>"), "a"),
        (paragraph(run("75"), "<w:del>", run("90"), "</w:del><w:ins>", run("80"), "</w:ins>"), "7580"),
        (paragraph(run("one"), properties="<w:rPr><w:del/></w:rPr>") + paragraph(run(" line")), "one line"),
        (paragraph(run("a"), run("b", "<w:vanish/>"), run("c", '<w:vanish w:val="0"/>')), "ac"),
        (
            paragraph(f"<w:r><w:ruby><w:rt>{run('kan')}</w:rt><w:rubyBase>{run('漢')}</w:rubyBase></w:ruby></w:r>"),
            "漢",
        ),
        (paragraph(run("E is "), "<m:oMath>", math("mc"), "</m:oMath>"), "E is mc"),
        (paragraph("<m:f><m:num>", math("1"), "</m:num><m:den>", math("2"), "</m:den></m:f>"), "1/2"),
        (paragraph(field("Click here", "<w:showingPlcHdr/>"), field("filled in")), "filled in"),
        (paragraph(run("a"), box(paragraph(run("in")), paragraph(run("box"))), run("b")), "ab\n\nin\n\nbox"),
        (paragraph(run("20"), '<w:r><w:sym w:font="Symbol" w:char="F0B0"/></w:r>'), "20°"),
        (paragraph("<w:r><w:t>soft</w:t><w:softHyphen/><w:t>ware</w:t></w:r>"), "software"),
        (paragraph('<w:r><w:sym w:font="Wingdings" w:char="F0FC"/><w:sym w:font="X" w:char="00E9"/></w:r>'), "é"),
        ("<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc>" + paragraph(run("no")) + "</w:tc></w:tr><w:tr><w:tc>"
         + paragraph(run("row")) + "</w:tc></w:tr></w:tbl>", "row"),
        (paragraph("<w:fldSimple>", run("May"), "</w:fldSimple><w:r><w:instrText>PAGE</w:instrText></w:r>"), "May"),
    ],
)  # fmt: skip
def test_the_final_text_is_read(tmp_path: Path, body: str, expected: str, strict: bool) -> None:
    assert texts(write(tmp_path / "a.docx", body, strict)) == [expected]


def test_styles_hide_text(tmp_path: Path) -> None:
    def style(name: str, kind: str, inside: str) -> str:
        return f'<w:style w:styleId="{name}" w:type="{kind}">{inside}</w:style>'

    vanish = "<w:rPr><w:vanish/></w:rPr>"
    styles = (
        style("Secret", "character", vanish)
        + style("Based", "character", '<w:basedOn w:val="Secret"/>')
        + style("Open", "character", '<w:basedOn w:val="Secret"/><w:rPr><w:vanish w:val="false"/></w:rPr>')
        + style("Draft", "paragraph", vanish)
        + style("Round", "character", '<w:basedOn w:val="Round"/>')
    )
    runs = [run(name, f'<w:rStyle w:val="{name}"/>') for name in ("Secret", "Based", "Open", "Round", "Unknown")]
    draft = '<w:pStyle w:val="Draft"/>'
    body = paragraph(*runs) + paragraph(run("no"), runs[0], run("x", '<w:vanish w:val="0"/>'), properties=draft)
    assert texts(write(tmp_path / "a.docx", body, styles=styles)) == ["OpenRoundUnknown\n\nSecretx"]


def test_notes_are_read_and_headers_are_counted(tmp_path: Path) -> None:
    def note(number: int, text: str, kind: str = "") -> str:
        return f'<w:footnote w:id="{number}" {kind}>{paragraph(run(text))}</w:footnote>'

    body = paragraph(
        run("See"), '<w:r><w:footnoteReference w:id="3"/></w:r><w:r><w:footnoteReference w:id="2"/></w:r>',
        '<w:del><w:r><w:footnoteReference w:id="4"/></w:r></w:del>', run("."),
    )  # fmt: skip
    footnotes = note(0, "line", 'w:type="separator"') + note(2, "Two") + note(3, "Three") + note(4, "gone")
    path = write(tmp_path / "a.docm", body, footnotes=footnotes, header=paragraph(run("ACME")), footer=paragraph())
    reader = read_documents(path)
    assert [document.text for document in reader] == ["See.\n\nThree\n\nTwo"]
    assert reader.report.left_out == {"headers and footers": 1}
    assert re.search(r"1 with headers and footers .*a\.docm", reader.report.summary())


def test_what_is_no_word_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "locked.docx").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500))
    with zipfile.ZipFile(tmp_path / "sheet.docx", "w") as archive:
        archive.writestr("word/document.xml", "<workbook/>")
    write(tmp_path / "good.dotx", paragraph(run("good")))
    reader = read_documents(tmp_path)
    assert [document.text for document in reader] == ["good"]
    assert reader.report.skipped == {"encrypted": 1, "damaged": 1}
    assert re.match(r"sheet\.docx: .*workbook", *reader.report.examples["damaged"])


KINDS = ("p", "ins", "del", "moveFrom", "moveTo", "hyperlink", "smartTag", "tbl", "box", "hidden", "math", "sdt", "plc")


@st.composite
def contents(draw: st.DrawFn, depth: int = 3) -> Any:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return "word"
    return [draw(st.sampled_from(KINDS)), *draw(st.lists(contents(depth - 1), min_size=1, max_size=3))]


@settings(max_examples=150)
@given(trees=st.lists(contents(), min_size=1, max_size=4))
def test_whatever_is_not_taken_back_or_hidden_is_in_the_text(
    trees: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    numbers = itertools.count()
    wanted: list[str] = []

    def markup(tree: Any, seen: bool) -> str:
        if tree == "word":
            word = f"w{next(numbers)}"
            wanted.extend([word] * seen)
            return run(f" {word} ")
        kind, *inside = tree
        if kind in ("hidden", "math"):
            word = f"w{next(numbers)}"
            wanted.extend([word] * (seen and kind == "math"))
            return run(word, "<w:vanish/>") if kind == "hidden" else f"<m:oMath>{math(f' {word} ')}</m:oMath>"
        content = "".join(markup(each, seen and kind not in ("del", "moveFrom", "plc")) for each in inside)
        if kind == "tbl":
            return f"<w:tbl><w:tr><w:tc>{paragraph(content)}</w:tc></w:tr></w:tbl>"
        if kind in ("sdt", "plc"):
            properties = "<w:showingPlcHdr/>" if kind == "plc" else ""
            return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"
        return box(paragraph(content)) if kind == "box" else f"<w:{kind}>{content}</w:{kind}>"

    body = "".join(paragraph(markup(tree, True)) for tree in trees)
    path = write(tmp_path_factory.getbasetemp() / "odd.docx", body)
    try:
        (text,) = texts(path)
    except EmptyCorpusError:
        text = ""
    assert sorted(text.split()) == sorted(wanted)
