"""Damaged files of every kind give a clear error, or a report of the skipped rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_texts import texts
from reading_support import page, write_docx, write_epub, write_odt, write_packed, write_pdf

from simlte_st.errors import DataError
from simlte_st.reading.documents import read_documents

SUFFIXES = (
    ".txt", ".md", ".jsonl", ".csv", ".tsv", ".parquet", ".jsonl.gz", ".csv.zst"
)  # fmt: skip
FORMATTED = (".eml", ".mbox", ".html", ".pdf", ".docx", ".odt", ".rtf", ".epub", ".pptx", ".xlsx", ".msg")
# Bytes that parsers look for: quotes, line ends, byte order marks, escapes, compression headers.
ODD_BYTES = [
    b"\0", b'"', b"\n", b"\r", b"\xff\xfe", b"\xef\xbb\xbf", b"\xff\xfe\0\0", b"\\ud800", b"{", b"]", b"PAR1",
    b"\x1f\x8b",
]  # fmt: skip


def plain(text: str) -> str:
    """Remove characters that a PDF's simplest font or XML cannot hold."""
    return "".join(character for character in text if character.isascii() and character.isprintable())


def write(path: Path, rows: list[str]) -> bytes:
    """Write an intact file of texts and return its bytes."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"id": [str(n) for n in range(len(rows))], "text": pa.array(rows, pa.string())}), path)
    elif ".jsonl" in path.suffixes:
        write_packed(path, "".join(json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(rows)).encode())
    elif path.suffix in (".txt", ".md"):
        path.write_bytes("\n\n".join(rows).encode())
    elif path.suffix in (".eml", ".mbox"):
        mail = "From: a@b.c\nSubject: =?utf-8?B?R3LDvMOfZQ==?=\nDate: Thu, 22 Aug 2002 18:26:25 +0700\n\n{}\n\n"
        envelope = "From a@b.c Thu Aug 22 12:36:23 2002\n" if path.suffix == ".mbox" else ""
        path.write_bytes("".join(envelope + mail.format(row) for row in rows).encode())
    elif path.suffix == ".html":
        path.write_bytes(page("<p>".join(rows)).encode())
    elif path.suffix == ".pdf":
        write_pdf(path, *([plain(row)] for row in rows))
    elif path.suffix == ".odt":
        write_odt(
            path, f"<office:text>{''.join(f'<text:p>{escape(plain(row))}</text:p>' for row in rows)}</office:text>"
        )
    elif path.suffix == ".rtf":
        path.write_bytes(f"{{\\rtf1\\ansi {' '.join(map(plain, rows))}}}".encode())
    elif path.suffix == ".epub":
        write_epub(path, {f"{number}.xhtml": page(row) for number, row in enumerate(rows)})
    elif path.suffix in (".pptx", ".xlsx", ".msg"):
        path.write_bytes(next(Path(__file__).parent.glob(f"formats/files/*{path.suffix}")).read_bytes())
    elif path.suffix == ".docx":
        write_docx(path, [plain(row) for row in rows])
    else:
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter="," if ".csv" in path.suffixes else "\t")
        writer.writerows([["id", "text"], *([n, text] for n, text in enumerate(rows))])
        write_packed(path, stream.getvalue().encode())
    return path.read_bytes()


@st.composite
def damages(draw: st.DrawFn, data: bytes) -> bytes:
    """Truncate, overwrite, insert, repeat and delete bytes at random places, or leave nothing."""
    if draw(st.integers(0, 7)) == 0:
        return draw(st.binary(max_size=200))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.integers(0, 40)))
        put = draw(st.one_of(st.binary(max_size=20), st.sampled_from(ODD_BYTES)))
        kind = draw(st.sampled_from(("cut", "overwrite", "insert", "repeat", "leave out")))
        between = {"cut": b"", "overwrite": put, "insert": put + data[start:stop], "repeat": 2 * data[start:stop]}
        data = data[:start] + between.get(kind, b"") + (b"" if kind == "cut" else data[stop:])
    return data


@pytest.mark.parametrize("suffix", [*SUFFIXES, *FORMATTED])
@settings(max_examples=25)
@given(data=st.data(), rows=st.lists(texts, min_size=1, max_size=4))
def test_damaged_files_raise_or_are_counted(
    suffix: str, data: st.DataObject, rows: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    path.write_bytes(data.draw(damages(write(path, rows))))
    reader = read_documents(path, max_characters=1000)
    documents = []
    told = ""
    try:
        documents.extend(reader)
    except DataError as error:
        told = str(error)
    assert (path.name in told) if told else (documents and reader.report.finished)
    assert len(told) < 5000
    report = reader.report
    assert report.documents == len(documents)
    assert report.characters == sum(len(document.text) for document in documents)
    assert len({document.id for document in documents}) == len(documents)
    for document in documents:
        assert document.text.encode("utf-8")
        assert document.text.strip()
        assert len(document.text) <= 1000
    assert report.summary().encode("utf-8")


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=15)
@given(rows=st.lists(texts.filter(lambda text: "\0" not in text and text.strip()), min_size=1, max_size=4))
def test_intact_files_are_read_exactly(suffix: str, rows: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / f"sound{suffix}"
    write(path, rows)
    if suffix in (".txt", ".md"):
        joined = "\n\n".join(rows).removeprefix("\ufeff")
        rows = [joined.replace("\r\n", "\n").replace("\r", "\n")]
    reader = read_documents(path)
    try:
        found = [document.text for document in reader]
    except DataError:
        assert suffix in (".txt", ".md"), "many control characters: no text file"
        assert "binary" in reader.report.skipped or not rows[0].strip()
    else:
        assert found == rows
