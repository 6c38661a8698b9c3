"""Files that tests of reading make, and a short way to read them."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import docx

from simlte_st.data.documents import read_documents

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def texts(source: Any, **settings: Any) -> list[str]:
    return [document.text for document in read_documents(source, **settings)]


def skipped(source: Any, **settings: Any) -> dict[str, int]:
    reader = read_documents(source, **settings)
    list(reader)
    return reader.report.skipped


def packed(path: Path, data: bytes) -> Path:
    """Write a file, compressed as its name says."""
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
    path.write_bytes(data)
    return path


def page(body: str, head: str = "") -> str:
    return f"<!DOCTYPE html><html><head><title>Title</title>{head}</head><body>{body}</body></html>"


def write_pdf(path: Path, *pages: list[str]) -> Path:
    """Write a PDF with a line of text for each string, on so many pages."""
    first = 3  # after the catalogue, the list of pages and the font
    kids = " ".join(f"{first + 1 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, lines in enumerate(pages):
        drawn = " ".join(f"({line}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 50 750 Td {drawn} ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {first + 2 + 2 * number} 0 R "
            f"/Resources << /Font << /F1 {first} 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer << /Size {len(objects) + 1} /Root 1 0 R >>"
    path.write_bytes(data + f"{end}\nstartxref\n{len(data)}\n%%EOF".encode("latin-1"))
    return path


def write_docx(path: Path, paragraphs: list[str]) -> Path:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    document.save(str(path))
    return path
