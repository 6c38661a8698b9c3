"""EPUB books: their pages in order, columns, and books that are locked or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_support import page, skipped, write_epub, write_zip

from simlte_st.data.documents import read_documents

LOCK = '<encryption xmlns="e"><CipherData><CipherReference URI="{}"/></CipherData></encryption>'


def test_a_book_is_its_pages_in_reading_order(tmp_path: Path) -> None:
    metadata = (
        "<dc:title>Rain\n and snow</dc:title><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator>"
        "<dc:date>2024-01-15</dc:date><dc:language/><dc:rights>all</dc:rights>"
    )
    pages = {"nav.xhtml": page("Contents"), "2 two.xhtml": page("<p>One.</p>Two."), "1.xhtml": page("<i/>Größe<br/>x")}
    write_epub(tmp_path / "a.epub", pages, metadata, encryption=LOCK.format("book/fonts/a.otf"))
    (document,) = read_documents(tmp_path / "a.epub", metadata=True)
    assert document.text == "One.\n\nTwo.\n\nGröße\nx"
    assert document.metadata == {"title": "Rain and snow", "author": "Ann, Bob", "date": "2024-01-15"}


def test_parts_that_hold_no_page_are_not_read(tmp_path: Path) -> None:
    write_epub(tmp_path / "a.epub", {"1": page("One."), "2": "", "3": page("<img/>")})
    (document,) = read_documents(tmp_path)
    assert document.text == "One."


def test_what_holds_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Text.")
    write_epub(tmp_path / "locked.epub", {"1": page("One.")}, encryption=LOCK.format("book/text/1"))
    assert skipped(tmp_path) == {"encrypted": 1}
    write_zip(tmp_path / "other.epub", {"a.txt": "no book"})
    write_zip(tmp_path / "empty.epub", {"META-INF/container.xml": "<container/>"})
    write_zip(tmp_path / "lost.epub", {"META-INF/container.xml": '<rootfile full-path="../../a.opf"/>'})
    write_epub(tmp_path / "pictures.epub", {"1": page("<img/>")})
    assert skipped(tmp_path) == {"encrypted": 1, "damaged": 3, "empty": 1}


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "http://example.com/a"])
def test_nothing_outside_the_book_is_read(tmp_path: Path, name: str) -> None:
    book = write_epub(tmp_path / "a.epub", {"1": page("One.")})
    package = (
        f'<package><manifest><item id="1" href="{name}" media-type="text/html"/></manifest><spine><itemref idref="1"/>'
        "</spine></package>"
    )
    write_zip(book, {"META-INF/container.xml": '<c><rootfile full-path="a.opf"/></c>', "a.opf": package})
    (tmp_path / "b.txt").write_text("Text.")
    assert skipped(tmp_path) == {"damaged": 1}


def test_a_book_that_unpacks_to_very_much_is_not_unpacked(tmp_path: Path) -> None:
    write_epub(tmp_path / "a.epub", {"1": page("x" * 30_000_000)})
    (tmp_path / "b.txt").write_text("Text.")
    assert skipped(tmp_path, max_characters=5_000_000) == {"unpacking to far more than text does": 1}
