"""Presentations, workbooks and Outlook messages: files that other programs wrote, number formats, and crafted files."""

from __future__ import annotations

import time
import tracemalloc
import zipfile
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from reading_support import skipped, texts, write_zip

from simlte_st.errors import DataError
from simlte_st.reading.documents import read_documents

FILES = Path(__file__).parent / "files"  # LibreOffice 7.4 wrote deck.pptx and book.xlsx, extract-msg wrote mail.msg
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIL_TEXT = "Grüße vom Hafen\n\nThe ferry leaves at dawn.\n\nGröße\n\nInner text."
DECK = (
    "Ferry timetable|The ferry leaves at dawn.|It returns at noon.|Port|Price|Oban|12.50|Mention the storm.|Questions?"
)
FORMATS = {
    "0.0%": [(0.125, "12.5%")], "#,##0.00": [(1234.565, "1,234.57"), (-0.001, "0.00")], "00000": [(123, "00123")],
    '$#,##0_);[Red]("$"#,##0)': [(-1234.5, "($1,235)")], "0,,\\M": [(12345678, "12M")], "0.0E+00": [(123, "1.2E+02")],
    '_-* 0\\ [$€-407]_-;;_-* "-"??_-': [(3, "3 €"), (0, "-")], "dd\\.mm\\.yyyy;@": [(45000, "15.03.2023"), (-5, "-5")],
    "d mmm yy h:mm AM/PM": [(45000.75, "15 Mar 23 6:00 PM")], "[h]:mm": [(1.5, "36:00")], "# ?/?": [(0.5, "0.5")],
    "General": [(0.1 + 0.2, "0.3"), (12345678901234567890, "12345678901234567890")], "@": [(5, "5")],
    "yyyy-mm-dd": [(59, "1900-02-28"), (2958465, "9999-12-31"), (9e9, "9000000000")],
}  # fmt: skip


def write_workbook(path: Path, *sheets: str, styles: str = "", **parts: str) -> Path:
    """Write a workbook with the rows of each sheet."""
    numbers = range(1, len(sheets) + 1)
    links = "".join(f'<r Id="r{n}" Type="x/worksheet" Target="/xl/sheet{n}.xml"/>' for n in numbers)
    names = "".join(f'<sheet name="S{n}" r:id="r{n}"/>' for n in numbers)
    rows = {f"xl/sheet{n}.xml": f"<w><sheetData>{sheet}</sheetData></w>" for n, sheet in enumerate(sheets, start=1)}
    return write_zip(path, {
        "_rels/.rels": '<l><r Id="a" Type="x/officeDocument" Target="xl/workbook.xml"/></l>',
        "xl/workbook.xml": f'<w xmlns:r="{RELATION}">{names}</w>', "xl/styles.xml": f"<w>{styles}</w>",
        "xl/_rels/workbook.xml.rels": f'<l>{links}<r Id="s" Type="x/styles" Target="styles.xml"/></l>', **rows, **parts,
    })  # fmt: skip


def row(*cells: object, style: int = 0) -> str:
    """Return a row of texts and numbers."""
    pairs = (("str" if isinstance(cell, str) else "n", cell) for cell in cells)
    return "<row>" + "".join(f'<c t="{kind}" s="{style}"><v>{cell}</v></c>' for kind, cell in pairs) + "</row>"


@pytest.mark.parametrize(
    ("name", "expected", "left_out"),
    [
        ("deck.pptx", [f"{DECK}|in a group".replace("|", "\n\n")], {"hidden slide": 1}),
        ("mail.msg", [MAIL_TEXT], {}),
        ("book.xlsx", ["The harbour café was lovely.", "Too loud.",
                       "Invoice\nTotal\t1,234.50 €\nDue\t2024-02-29 14:05:00\nPaid\tTRUE"], {"hidden sheet": 1}),
    ],
)  # fmt: skip
def test_files_of_other_programs(name: str, expected: list[str], left_out: dict[str, int]) -> None:
    assert texts(FILES / name) == expected
    assert skipped(FILES / name) == left_out


def test_columns_keep_their_types() -> None:
    first, *_, form = read_documents(FILES / "book.xlsx", metadata=True)
    expected = {"price": 12.5, "when": date(2023, 3, 15), "share": 0.125, "zip": "00123", "sum": 25}
    assert (first.id, first.metadata, form.id) == ("a", expected, "Form")
    (mail,) = read_documents(FILES / "mail.msg", metadata=True)
    sent = datetime(2024, 2, 29, 14, 5, tzinfo=timezone.utc)
    columns = {"subject": "Grüße vom Hafen", "sender": "Ann Lee <ann@example.com>", "recipients": "Bob; Cyd"}
    assert mail.metadata == {**columns, "date": sent}


def test_numbers_and_dates_are_shown(tmp_path: Path) -> None:
    codes = "".join(f"<numFmt numFmtId='{n}' formatCode='{code}'/>" for n, code in enumerate(FORMATS, start=164))
    styles = "".join(f'<xf numFmtId="{n}"/>' for n in range(164, 164 + len(FORMATS)))
    rows = [row(1, number, style=n) for n, pairs in enumerate(FORMATS.values()) for number, _ in pairs]
    path = write_workbook(tmp_path / "a.xlsx", "".join(rows), styles=f"{codes}<cellXfs>{styles}</cellXfs>")
    shown = [line.split("\t")[1] for line in texts(path)[0].split("\n")]
    assert shown == [text for pairs in FORMATS.values() for _, text in pairs]


@pytest.mark.parametrize(
    ("sheets", "options", "expected"),
    [
        ([row("text", "n") + row("One.", 1) + row("Two.")], {}, ["One.", "Two."]),
        ([row("a", "text") + row(1, "One.") + row(2, 404) + row(3, "Two.", 5)], {}, ["One.", "404", "Two."]),
        ([row("Title") + row("a", "b") + row(1, 2)], {}, ["Title\na\tb\n1\t2"]),
        ([row("a", "b") + row("x", "One.") * 2, row("c") + row("y")], {"text_column": "b"}, ["One.", "One."]),
        ([row("a", "b") + row("x", "y")], {}, "Cannot tell which column"),
        ([row("a", "b") + row("x", "y")], {"text_column": "c"}, "no column 'c'"),
        ([row(1, "b") + row(2, "y")], {"text_column": "c"}, "no columns"),
    ],
)
def test_sheets_with_a_header_are_tables(tmp_path: Path, sheets: list[str], options: Any, expected: Any) -> None:
    path = write_workbook(tmp_path / "a.xlsx", *sheets)
    if isinstance(expected, list):
        assert texts(path, **options) == expected
    else:
        with pytest.raises(DataError, match=expected):
            texts(path, **options)


LAUGHS = '<!DOCTYPE w [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><w><row><c t="str"><v>&b;</v></c></row></w>'
CRAFTED = {
    "many": ("".join(f'<row r="{n}" ht="15" customHeight="1"/>' for n in range(30_000)), {}, {"empty": 1}),
    "wide": ('<row><c r="XFD1"/></row>' * 10_000, {}, {"empty": 1}),
    "far": (f'<row r="{10**12}"><c r="ZZZ1"><v>1</v></c></row>', {}, {"empty": 1}),
    "deep": ("<row>" * 10_000 + "</row>" * 10_000, {}, {"empty": 1}),
    "laughs": ("", {"xl/sheet2.xml": LAUGHS}, {"damaged": 1}),
    "cut": ("", {"xl/sheet2.xml": "<w><row>"}, {"damaged": 1}),
    "formula": ('<row><c r="A1"><f>1+1</f></c></row>', {}, {"formula without a stored value": 1, "empty": 1}),
    "missing": (None, {}, {"missing part": 1}),
}


@pytest.mark.parametrize("kind", CRAFTED)
def test_crafted_workbooks_are_reported(tmp_path: Path, kind: str) -> None:
    second, parts, reasons = CRAFTED[kind]
    path = write_workbook(tmp_path / "a.xlsx", row("x", 1), second or "", **parts)
    if second is None:
        with zipfile.ZipFile(path) as archive:
            write_zip(path, {n: archive.read(n).decode() for n in archive.namelist() if n != "xl/sheet2.xml"})
    began = time.process_time()
    tracemalloc.start()
    try:
        assert skipped(path) == reasons
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 60
