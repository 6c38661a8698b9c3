"""DOCX files: what of them is text, and files that are made to do harm."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path

import docx
from reading_support import texts, write_docx

from simlte_st.data.documents import read_documents


def skipped(folder: Path, **settings: int) -> dict[str, int]:
    reader = read_documents(folder, **settings)  # type: ignore[arg-type]
    list(reader)
    return reader.report.skipped


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
