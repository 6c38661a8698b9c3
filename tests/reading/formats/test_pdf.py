"""PDF files; those without text are counted."""

from __future__ import annotations

from pathlib import Path

import pypdf
import pytest
from reading_support import texts, write_pdf

from simlte_st.reading.documents import read_documents


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
