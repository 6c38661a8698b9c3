"""PDF files: those that hold no text are counted."""

from __future__ import annotations

from pathlib import Path

import pypdf
from reading_support import write_pdf

from simlte_st.data.documents import read_documents


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
