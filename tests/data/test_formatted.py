"""HTML, PDF and DOCX files: what of them is text, and what cannot be read is counted."""

from __future__ import annotations

import sys
import tracemalloc
import zipfile
from pathlib import Path

import docx
import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_texts import texts as odd_texts
from reading_support import page, texts, write_docx, write_pdf

from simlte_st.data.documents import read_documents
from simlte_st.errors import EmptyCorpusError, MissingExtraError


def skipped(folder: Path, **settings: int) -> dict[str, int]:
    reader = read_documents(folder, **settings)  # type: ignore[arg-type]
    list(reader)
    return reader.report.skipped


def test_all_kinds_are_read_alone_and_in_a_folder(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", ["First line.", "Second line."], ["Next page."])
    write_docx(tmp_path / "b.DOCX", ["One.", "Two."])
    (tmp_path / "c.htm").write_text(page("<p>One.</p>Two."))
    (tmp_path / "d.txt").write_text("plain")
    found = {"a.pdf": "First line.\nSecond line.\nNext page.", "b.DOCX": "One.\n\nTwo.", "c.htm": "One.\n\nTwo."}
    reader = read_documents(tmp_path)
    assert {document.id: document.text for document in reader} == {**found, "d.txt": "plain"}
    assert reader.report.skipped == {}
    for name, text in found.items():
        assert [(document.id, document.text) for document in read_documents(tmp_path / name)] == [(name, text)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>The <b>c</b>at\n   <i>sat</i>&nbsp;&amp; ate.</p>", "The cat sat\xa0& ate."),
        ("<h1>A</h1>\n<p>b<br>c</p><ul><li>d</li><li>e</li></ul>f", "A\n\nb\nc\n\nd\n\ne\n\nf"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a  b\n\nc"),
        ("<nav>Home</nav><p>a</p><script>var b</script><style>c</style><!-- d --><svg><text>e</text></svg>f", "a\n\nf"),
        ("<pre>one\n  two</pre>three\nfour", "one\ntwo\n\nthree four"),
        ("<p>not closed <b>at <i>all", "not closed at all"),
        ("a < b &unknown; <foo>c</foo>", "a < b &unknown; c"),
    ],
)
def test_html_is_what_a_reader_sees(tmp_path: Path, body: str, expected: str) -> None:
    (tmp_path / "a.html").write_text(page(body))
    assert texts(tmp_path / "a.html") == [expected]
    (tmp_path / "a.html").write_text(body)
    assert texts(tmp_path / "a.html") == [expected], "without a frame around it"


def test_encodings_of_html(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    for declared, used in (("utf-8", "utf-8"), ("ISO-8859-1", "cp1252"), ("koi8-r", "koi8-r"), ("nonsense", "utf-8")):
        text = "дом" if used == "koi8-r" else "“café”"
        for head in (f'<meta charset="{declared}">', f"<META http-equiv=x content='text/html; charset={declared}'>"):
            path.write_bytes(page(text, head).encode(used))
            assert texts(path) == [text]
    path.write_bytes(page("café").encode("latin-1"))
    assert texts(path, encoding="latin-1") == ["café"]
    with pytest.raises(EmptyCorpusError, match=r"wrong encoding .*\n.*--encoding"):
        texts(path)
    path.write_bytes(page("Ωmega", '<meta charset="latin-1">').encode("utf-16"))
    assert texts(path) == ["Ωmega"], "a byte order mark goes first"
    path.write_text(
        '<?xml version="1.0" encoding="latin-1"?><html xmlns="http://www.w3.org/1999/xhtml"><p>é</p></html>'
    )
    assert texts(path) == ["é"]


def test_odd_html_is_counted(tmp_path: Path) -> None:
    (tmp_path / "deep.html").write_text("<div>" * 9_000 + "lost" + "</div>" * 9_000)
    (tmp_path / "long.html").write_text(page("word " * 1000))
    (tmp_path / "large.html").write_text(page("<b></b>" * 200_000))
    (tmp_path / "binary.html").write_bytes(b"<p>\0\0</p>")
    (tmp_path / "empty.html").write_text("")
    (tmp_path / "tags.html").write_text(page("<br>"))
    (tmp_path / "good.html").write_text(page("good"))
    found = skipped(tmp_path, max_characters=1000)
    assert found == {"damaged": 1, "too long": 2, "binary": 1, "empty": 2}


def test_pdfs_that_hold_no_text_are_counted(tmp_path: Path) -> None:
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


def test_without_the_extra_they_are_counted_or_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pdf(tmp_path / "a.pdf", ["One."])
    write_docx(tmp_path / "b.docx", ["Two."])
    (tmp_path / "c.html").write_text(page("Three."))
    (tmp_path / "d.txt").write_text("Four.")
    for name in ("lxml", "pypdf", "docx"):
        monkeypatch.setitem(sys.modules, name, None)
    reader = read_documents(tmp_path)
    assert [document.text for document in reader] == ["Four."]
    assert reader.report.skipped == {'not readable without the extra documents: pip install "simlte-st[documents]"': 3}
    for name in ("a.pdf", "b.docx", "c.html"):
        with pytest.raises(MissingExtraError, match=r"simlte-st\[documents\]"):
            read_documents(tmp_path / name)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(rows=st.lists(odd_texts, min_size=1, max_size=4))
def test_any_html_is_a_document_or_counted(rows: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "odd.html"
    path.write_text("<p>".join(rows), encoding="utf-8", errors="surrogatepass")
    try:
        (text,) = texts(path)
    except EmptyCorpusError:
        return
    assert text.strip()
