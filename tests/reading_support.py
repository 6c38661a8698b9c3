"""Write files for tests of reading, and read them."""

from __future__ import annotations

import gzip
import sys
import zipfile
from pathlib import Path
from typing import Any

import docx

from simlte_st.reading.documents import read_documents

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


ODT = "urn:oasis:names:tc:opendocument:xmlns"


def texts(source: Any, **settings: Any) -> list[str]:
    return [document.text for document in read_documents(source, **settings)]


def texts_and_skipped(source: Any, **settings: Any) -> tuple[list[str], dict[str, int]]:
    reader = read_documents(source, **settings)
    return [document.text for document in reader], reader.report.skipped


def skipped(source: Any, **settings: Any) -> dict[str, int]:
    return texts_and_skipped(source, **settings)[1]


def write_packed(path: Path, data: bytes) -> Path:
    """Write a file, compressed according to its suffix."""
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
    path.write_bytes(data)
    return path


def page(body: str, head: str = "") -> str:
    return f"<!DOCTYPE html><html><head><title>Title</title>{head}</head><body>{body}</body></html>"


def write_pdf(path: Path, *pages: list[str]) -> Path:
    """Write a PDF with one page per list and one line per string."""
    objects_before = 3  # the catalogue, the list of pages and the font
    kids = " ".join(f"{objects_before + 1 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, lines in enumerate(pages):
        operators = " ".join(f"({line}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 50 750 Td {operators} ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {objects_before + 2 + 2 * number} 0 R "
            f"/Resources << /Font << /F1 {objects_before} 0 R >> >> >>",
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


def write_zip(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def write_odt(path: Path, body: str, manifest: str = "") -> Path:
    """Write an OpenDocument text with this XML body."""
    spaces = " ".join(f'xmlns:{name}="{ODT}:{name}:1.0"' for name in ("office", "text", "table", "manifest"))
    content = f"<office:document-content {spaces}><office:body>{body}</office:body></office:document-content>"
    manifest = f"<manifest:manifest {spaces}>{manifest}</manifest:manifest>"
    return write_zip(path, {"content.xml": content, "META-INF/manifest.xml": manifest})


def write_epub(path: Path, pages: dict[str, str], metadata: str = "", **parts: str) -> Path:
    """Write a book with these pages in order, and other parts by their names in ``META-INF``."""
    items = "".join(
        f'<item id="{name}" href="text/{name}" media-type="application/xhtml+xml" properties="{name[:3]}"/>'
        for name in pages
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in pages)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{metadata}</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = '<container xmlns="c"><rootfiles><rootfile full-path="book/a.opf"/></rootfiles></container>'
    texts = {f"book/text/{name}": text for name, text in pages.items()}
    meta = {f"META-INF/{name}.xml": text for name, text in parts.items()}
    return write_zip(path, {"META-INF/container.xml": container, "book/a.opf": package, **meta, **texts})
