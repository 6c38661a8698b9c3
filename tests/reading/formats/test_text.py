"""Text files: line ends, encodings, and files that are not text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reading_support import texts, texts_and_skipped

from simlte_st.errors import DataError
from simlte_st.reading.documents import read_documents


def test_line_endings_are_normalised(tmp_path: Path) -> None:
    path = tmp_path / "one.md"
    path.write_bytes(b"one\r\n\r\ntwo\rthree\n")
    (document,) = read_documents(str(path))
    assert (document.id, document.text) == ("one.md", "one\n\ntwo\nthree\n")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_set_the_encoding(tmp_path: Path, encoding: str) -> None:
    text = "naïve Ωmega"
    for suffix, written in (("txt", text), ("jsonl", f'{{"text": "{text}"}}\n'), ("csv", f"text,n\n{text},1\n")):
        (tmp_path / f"a.{suffix}").write_bytes(written.encode(encoding))
        assert texts(tmp_path / f"a.{suffix}") == [text]


def test_encoding_option_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("café".encode("latin-1"))
    (tmp_path / "b.txt").write_bytes("plain".encode("latin-1"))
    assert texts(tmp_path, encoding="latin-1") == ["café", "plain"]
    reader = read_documents(tmp_path)
    assert [document.id for document in reader] == ["b.txt"]
    assert reader.report.skipped == {"wrong encoding": 1}
    assert re.match(r"a\.txt: .*utf-8 .*byte 3 \(0xe9\)", *reader.report.examples["wrong encoding"])
    assert "encoding=" in reader.report.summary()
    (tmp_path / "a.jsonl").write_bytes('{"text": "Ωmega"}\n{"text": "b"}\n'.encode("utf-16-le"))
    assert texts(tmp_path / "a.jsonl", encoding="utf-16-le") == ["Ωmega", "b"]
    (tmp_path / "u.txt").write_bytes("Ωmega".encode("utf-16-le"))
    assert texts(tmp_path / "u.txt", encoding="utf-16-le") == ["Ωmega"]


def test_table_in_another_encoding_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'{"text": "h\xe4llo"}\nodd\n')
    with pytest.raises(DataError, match=r"a\.csv cannot be decoded"):
        texts(tmp_path / "a.csv", encoding="utf-16")


def test_binary_files_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(50))
    text = "A form feed\f and \x1b[1mcolours\x1b[0m are text."
    (tmp_path / "d.txt").write_text(text)
    (tmp_path / "e.txt").write_text("")
    assert texts_and_skipped(tmp_path) == ([text], {"binary": 1, "empty": 1})


@pytest.mark.parametrize("encoding", ["cp1252", "gb18030", "utf-16-le"])
def test_valid_utf8_overrides_the_encoding_option(tmp_path: Path, encoding: str) -> None:
    utf8, other = "Café número 3 Größe, 河水", "plain"
    if encoding != "utf-16-le":
        other = {"cp1252": "Café 10 €", "gb18030": "河水上涨"}[encoding]
    (tmp_path / "a.txt").write_text(utf8, encoding="utf-8")
    (tmp_path / "b.txt").write_text(other, encoding=encoding)
    (tmp_path / "c.html").write_text(f"<p>{utf8}", encoding="utf-8")
    assert texts(tmp_path, encoding=encoding) == [utf8, other, utf8]
