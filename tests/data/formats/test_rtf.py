"""Rich Text Format: escapes of all kinds, and what is none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from reading_support import skipped, texts


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"One \b bold\b0  word.\par Next\line line.", "One bold word.\nNext\nline."),
        (r"\ansicpg1252 Gr\'fc\'dfe", "Grüße"),
        (r"\ansicpg1251 \'e4\'ee\'ec", "дом"),
        (r"\uc1 Gr\u252?\u223?e \u-10179?\u-8704?", "Grüße 😀"),
        (r"\uc0 \u1076\u1086\u1084", "дом"),
        (r"lone \u-10179?half", "lone \ufffdhalf"),
        (r"{\fonttbl{\f0\fcharset0 Arial;}}{\colortbl;\red0;}{\*\generator Word;}{\info{\author Ann}}Text", "Text"),
        (r"{\pict\pngblip " + "89504e47\n" * 9_000 + r"}Text", "Text"),
        (r"a\{b\}c\\d\~e\_f", "a{b}c\\d\xa0e\u2011f"),
        (r"left\cell right\cell\row", "left|right|"),
    ],
)
def test_escapes(tmp_path: Path, written: str, meant: str) -> None:
    (tmp_path / "a.rtf").write_bytes(f"{{\\rtf1\\ansi {written}}}".encode())
    assert texts(tmp_path) == [meant]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"Only text.", "damaged"),
        (b"{\\rtf1}", "empty"),
        (b"{\\rtf1 \\u99999999999 x", "damaged"),
        (b"PK\3\4", "damaged"),
        (b"", "damaged"),
    ],
)
def test_what_is_none_is_counted(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a.rtf").write_bytes(data)
    (tmp_path / "b.txt").write_text("Text.")
    assert skipped(tmp_path) == {reason: 1}


@pytest.mark.parametrize(
    "part",
    ["{", "{\\fonttbl", "\\f0", '{\\field{\\*\\fldinst HYPERLINK "x"}{\\fldrslt ', "\\'", "{\\f0\\fcharset0 ", "\\u1"],
)
def test_time_grows_with_the_length_of_hostile_files(tmp_path: Path, part: str) -> None:
    (tmp_path / "b.txt").write_text("Text.")
    (tmp_path / "a.rtf").write_bytes(b"{\\rtf1 " + part.encode() * (200_000 // len(part)))
    began = time.process_time()
    texts(tmp_path)
    assert time.process_time() - began < 5
