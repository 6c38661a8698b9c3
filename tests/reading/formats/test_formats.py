"""The table of formats: suffixes identify files, and files that need a missing extra are counted."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import pytest
from reading_support import page, texts, texts_and_skipped, write_docx, write_epub, write_odt, write_pdf

from simlte_st.errors import DataError, MissingExtraError
from simlte_st.extras import install_command
from simlte_st.reading.documents import read_documents
from simlte_st.reading.formats import FORMATS, format_by_suffix
from simlte_st.reading.sources import PLACES

SUFFIXES = (
    ("a.jsonl", ".jsonl"), ("a.b.JSON.gz", ".json"), ("a.csv.zst", ".csv"), ("a.parquet", ".parquet"),
    ("a.TXT", ".txt"), ("a.xlsx.gz", None), ("a.parquet.gz", None), ("a.txt.gz", None), ("a", None), (".gz", None),
)  # fmt: skip


@pytest.mark.parametrize(("name", "suffix"), SUFFIXES)
def test_format_follows_from_suffix(name: str, suffix: str | None) -> None:
    known = format_by_suffix(Path(name))
    assert known is None if suffix is None else known is not None and suffix in known.suffixes


def test_messages_list_every_format(tmp_path: Path) -> None:
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(suffixes) == len(set(suffixes)) > 10
    for suffix in suffixes:
        assert suffix in re.findall(r"\.\w+", PLACES)
    (tmp_path / "a.xls").write_bytes(b"\xd0\xcf\x11\xe0\0\0")
    with pytest.raises(DataError, match="unknown format") as error:
        read_documents(tmp_path / "a.xls")
    with pytest.raises(DataError, match=r"no usable document.*\nignored 1: \.xls.*\n.* FOLDER/\*\.csv") as other:
        texts(tmp_path)
    assert all(suffix in str(each.value) for suffix in suffixes for each in (error, other))


JATS = """<!DOCTYPE article SYSTEM "JATS.dtd" [<!ENTITY own SYSTEM "file:///etc/passwd">]><article xmlns:m="m"><front>
    <journal-meta><p>J</p></journal-meta><title>Rivers &amp; <i>floods</i></title></front><sec><title>So</title><p>CO<b
    >2</b> &eacute;t <!-- no -->rose, &own; <m:math>x</m:math>fell.</p></sec><ref-list>Cited</ref-list></article>"""
TEI = """<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><title>Hamlet</title><publicationStmt>CC</publicationStmt>
    </teiHeader><l>Who is<lb/>there?</l><l>Nay<note>No</note> <hi>answ<lb break="no"/>er</hi>
    <choice><sic>em</sic><corr>me</corr></choice>.</l></TEI>"""
ALTO = """<alto xmlns="x#"><OCR>An engine</OCR><TextBlock><TextLine><String CONTENT="A"/><SP/><String CONTENT="steam"
    SUBS_TYPE="HypPart1" SUBS_CONTENT="steamship"/><HYP CONTENT="-"/></TextLine><TextLine><String CONTENT="ship"
    SUBS_TYPE="HypPart2"/><String CONTENT="tor"/><HYP/></TextLine><TextLine><String CONTENT="n."/></TextLine>
    </TextBlock><TextBlock><String CONTENT="Yes."/></TextBlock></alto>"""
PAGE = """<PcGts xmlns="x"><Creator>An engine</Creator><TextRegion><TextLine><Word><TextEquiv><Unicode>Dear</Unicode>
    </TextEquiv></Word><TextEquiv><Unicode>Dear Sir</Unicode></TextEquiv></TextLine></TextRegion></PcGts>"""
HOCR = """<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>
    <span class="ocr_line" title="bbox 1 2"><span>Old</span>\n<span>page</span></span></body></html>"""
CELLS = """{"cells": [{"source": ["# T\\n", "Text."]}, {"source": "x = 1data:image/png;base64,QUJD/+=", "outputs":
    [{"text": ["1"]}]}, {"source": []}]}"""
NAMED = (
    *((f"a{suffix}", "Some text.", "Some text.") for suffix in ("", ".rst", ".tex", ".log", ".org", ".py", ".b.c")),
    ("utf16", "Größe".encode("utf-16"), "Größe"),
    ("a.log.gz", gzip.compress(b"Some text.", mtime=0), "Some text."),
    ("page.php", "<!DOCTYPE html><html><body><p>Some <b>text</b>.</body></html>", "Some text."),
    ("feed.rss", "<?xml version='1.0'?><rss><a>A</a><b>So<i>me</i> text.</b></rss>", "A\n\nSome text."),
    ("old.doc", "{\\rtf1 Some text.}", "Some text."),
    ("a.nxml", JATS, "Rivers & floods\n\nSo\n\nCO2 ét rose, &own; fell."),
    ("a.xml", TEI, "Hamlet\n\nWho is\nthere?\n\nNay No answer me."),
    ("b.xml", "<a>x <b>y</b></a>", "x y"),
    ("b.alto", f"<?xml version='1.0'?>{ALTO}", "A steamship torn.\n\nYes."),
    ("page.xml", PAGE, "Dear Sir"),
    *((name, HOCR, "Old page") for name in ("c.xml", "c.hocr", "c.aspx")),
    ("new.ipynb", CELLS, "# T\nText.\n\nx = 1"),
    ("old.ipynb", '{"worksheets": [{"cells": [{"input": ["x = 1"]}]}]}', "x = 1"),
)


@pytest.mark.parametrize(("name", "data", "expected"), NAMED)
def test_single_files_of_any_name_are_read(tmp_path: Path, name: str, data: str | bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    assert texts(tmp_path / name) == [expected]


def test_files_that_need_a_missing_extra_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pdf(tmp_path / "a.pdf", ["One."])
    write_docx(tmp_path / "b.docx", ["Two."])
    (tmp_path / "c.html").write_text(page("Three."))
    (tmp_path / "d.txt").write_text("Four.")
    write_odt(tmp_path / "e.odt", "<office:text><text:p>Five.</text:p></office:text>")
    write_epub(tmp_path / "f.epub", {"1": "Six."})
    (tmp_path / "g.rtf").write_text("{\\rtf1 Seven.}")
    assert len(texts(tmp_path)) == 7
    for name in ("lxml", "pypdf", "selectolax", "striprtf"):
        monkeypatch.setitem(sys.modules, name, None)
    reason = f'not readable without the "documents" extra: {install_command("documents")}'
    assert texts_and_skipped(tmp_path) == (["Four."], {reason: 6})
    for name in ("a.pdf", "b.docx", "c.html", "e.odt", "f.epub", "g.rtf"):
        with pytest.raises(MissingExtraError, match=r"\[documents\]"):
            read_documents(tmp_path / name)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"\[documents\]"):
        texts(Path(__file__).parent / "files" / "book.xlsx")
