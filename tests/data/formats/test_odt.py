"""OpenDocument texts: what of them is text, and files that are made to do harm."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest
from reading_support import skipped, texts, write_odt, write_zip

from simlte_st.errors import EmptyCorpusError


def test_an_odt_is_read_in_order(tmp_path: Path) -> None:
    body = (
        "<office:text>\n <text:tracked-changes><text:p>deleted</text:p></text:tracked-changes> "
        '<text:h>Heading</text:h><text:p>One <text:span>bo</text:span>ld<text:s text:c="3"/>word<text:note>'
        "<text:note-citation>1</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body>"
        "</text:note>"
        "\n goes<text:tab/>on<office:annotation><text:p>comment</text:p></office:annotation>.<text:line-break/>Next "
        "line.</text:p><text:list><text:list-item><text:p>Item</text:p></text:list-item></text:list><table:table>"
        "<table:table-row><table:table-cell><text:p>left</text:p></table:table-cell><table:table-cell><text:p>right"
        "</text:p></table:table-cell></table:table-row></table:table></office:text>"
    )
    write_odt(tmp_path / "a.odt", body)
    assert texts(tmp_path / "a.odt") == [
        "Heading\n\nOne bold word\n\nA note.\n\ngoes on.\nNext line.\n\nItem\n\nleft\n\nright"
    ]


@pytest.mark.parametrize(
    ("body", "manifest", "reason"),
    [
        ("<office:text/>", "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>", "encrypted"),
        ("<office:spreadsheet/>", "", "damaged"),
        ("<office:text/>", "", "empty"),
        ("<office:text>", "", "damaged"),
    ],
)
def test_what_holds_no_text_is_named(tmp_path: Path, body: str, manifest: str, reason: str) -> None:
    write_odt(tmp_path / "a.odt", body, manifest)
    (tmp_path / "b.txt").write_text("Text.")
    assert skipped(tmp_path) == {reason: 1}


def test_other_files_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.odt").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))
    (tmp_path / "b.odt").write_bytes(b"no archive")
    write_zip(tmp_path / "c.odt", {"other.xml": "<a/>"})
    with pytest.raises(EmptyCorpusError, match=r"(?s)1 encrypted.*2 damaged|2 damaged.*1 encrypted"):
        texts(tmp_path)


def test_one_that_unpacks_to_very_much_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.odt", "w", zipfile.ZIP_DEFLATED) as bomb, bomb.open("content.xml", "w") as part:
        for _ in range(30):
            part.write(bytes(1 << 20))
    (tmp_path / "b.txt").write_text("Text.")
    assert skipped(tmp_path) == {"unpacking to far more than text does": 1}


def test_entities_are_not_expanded_and_depth_takes_no_time(tmp_path: Path) -> None:
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    text = "<text:p xmlns:text='t'>&l9;</text:p>"
    write_zip(tmp_path / "a.odt", {"content.xml": f'<!DOCTYPE d [<!ENTITY l0 "lol">{lol}]>{text}'})
    write_odt(tmp_path / "b.odt", f"<office:text>{'<text:p>' * 50_000}deep{'</text:p>' * 50_000}</office:text>")
    write_odt(tmp_path / "c.odt", f"<office:text>{'<text:p>flat</text:p>' * 50_000}</office:text>")
    began = time.process_time()
    assert skipped(tmp_path) == {"damaged": 2}
    assert time.process_time() - began < 10
