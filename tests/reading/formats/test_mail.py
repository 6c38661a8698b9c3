"""E-mails: single files, raw ones under other names, mailboxes, their text, and malformed ones."""

from __future__ import annotations

import gzip
import sys
import time
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from reading_support import texts, texts_and_skipped

from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.reading.documents import read_documents
from simlte_st.reading.reader import INVALID
from simlte_st.reading.rows import MISSING_EXTRA


def mail(body: str | bytes = "The body.\n", *headers: str, kind: str = "text/plain; charset=utf-8") -> bytes:
    """Return a raw mail; additional headers precede the usual ones."""
    usual = ["From: Ann <ann@example.com>", "To: Bob <bob@example.com>", "Subject: Rain", f"Content-Type: {kind}"]
    usual += ["Date: Thu, 22 Aug 2002 18:26:25 +0700", "Message-ID: <1@example.com>"]
    names = {header.split(":")[0] for header in headers}
    lines = [*headers, *(line for line in usual if line.split(":")[0] not in names)]
    return "\n".join(lines).encode() + b"\n\n" + (body.encode() if isinstance(body, str) else body)


def read_one(tmp_path: Path, data: bytes, **settings: Any) -> tuple[str, dict[str, Any]]:
    """Return text and columns of a mail."""
    (tmp_path / "one.eml").write_bytes(data)
    (document,) = read_documents(tmp_path / "one.eml", metadata=True, **settings)
    return document.text, dict(document.metadata or {})


def mailbox(*mails: bytes) -> bytes:
    return b"".join(b"From ann@example.com Thu Aug 22 12:36:23 2002\n" + each.rstrip() + b"\n\n" for each in mails)


def test_mail_gives_subject_and_body_and_header_columns(tmp_path: Path) -> None:
    text, columns = read_one(tmp_path, mail("Floods in the north.\n"))
    assert text == "Rain\n\nFloods in the north."
    assert columns == {
        "folder": None,
        "file": "one",
        "subject": "Rain",
        "sender": "Ann <ann@example.com>",
        "recipients": "Bob <bob@example.com>",
        "date": datetime(2002, 8, 22, 11, 26, 25, tzinfo=UTC),
    }


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("=?utf-8?B?R3LDvMOfZQ==?=", "Grüße"),
        ("=?iso-8859-1?Q?Gr=FC=DFe?= an =?koi8-r?B?5M/N?=", "Grüße an Дом"),
        ("Grüße", "Grüße"),
        ("=?gb2312?B?gw==?= =?gb2312?B?5Q==?= x", "冨 x"),  # a character in two words
        ("Re: =?shift_jis?B?h0CLYw==?= (2)", "Re: ①議 (2)"),
        ("=?iso-2022-jp*ja?B?GyRCLSEycRsoQg==?=", "①会"),
        ("=?utf-8?B?/w==?=", "\ufffd"),
        ("=?no-such?B?R3LDvMOfZQ==?=", "=?no-such?B?R3LDvMOfZQ==?="),
        ("=?utf-8?B?R3L?=", "Gr"),
        ("two\n lines", "two lines"),
    ],
)
def test_encoded_subjects_are_decoded(tmp_path: Path, written: str, meant: str) -> None:
    text, columns = read_one(tmp_path, mail("Text.", f"Subject: {written}"))
    assert (columns["subject"], text) == (meant, f"{meant}\n\nText.")
    text, columns = read_one(tmp_path, mail("Text.", "Subject: Größe".encode("cp1252").decode("latin-1")))
    assert columns["subject"] == "Größe"


@pytest.mark.parametrize(
    ("data", "kind", "meant"),
    [
        ("Größe €".encode("cp1252"), "text/plain", "Größe €"),
        ("Größe €".encode("cp1252"), "text/plain; charset=us-ascii", "Größe €"),
        ("Größe €".encode("cp1252"), "text/plain; charset=iso-8859-1", "Größe €"),
        ("Größe €".encode(), "text/plain; charset=us-ascii", "Größe €"),
        ("дом".encode("koi8-r"), "text/plain; charset=koi8-r", "дом"),
        ("镕".encode("gb18030"), "text/plain; charset=gb2312", "镕"),
        ("①㈱".encode("cp932"), "text/plain; charset=shift_jis", "①㈱"),
        (b"\x1b$B-!2q\x1b(B a", "text/plain; charset=iso-2022-jp", "①会 a"),
        ("①会".encode("euc_jis_2004"), "text/plain; charset=euc-jp", "①会"),
        ("똠".encode("cp949"), "text/plain; charset=ks_c_5601-1987", "똠"),
        ("ก€".encode("cp874"), "text/plain; charset=tis-620", "ก€"),
        ("Größe".encode("cp1252"), "text/plain; charset=no-such", "Größe"),
    ],
)
def test_body_encodings(tmp_path: Path, data: bytes, kind: str, meant: str) -> None:
    assert read_one(tmp_path, mail(data, kind=kind))[0] == f"Rain\n\n{meant}"


def test_multipart_mail(tmp_path: Path) -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.com", "Parts"
    message.set_content("The plain text.")
    message.add_alternative("<p>The <b>HTML</b>.</p>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="Größe.pdf")
    message.add_attachment("not read", filename="notes.txt")
    inner = EmailMessage()
    inner["Subject"] = "Inner"
    inner.set_content("Text of the mail within.")
    message.add_attachment(inner)
    text, _ = read_one(tmp_path, message.as_bytes())
    assert text == "Parts\n\nThe plain text.\n\nInner\n\nText of the mail within."


def test_html_is_read_without_a_plain_text_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    html = "<style>p {}</style><p>One <b>word</b>.</p><p hidden>x</p>"
    assert read_one(tmp_path, mail(html, kind="text/html"))[0] == "Rain\n\nOne word."
    both = "--b\nContent-Type: text/plain\n\n \n--b\nContent-Type: text/html\n\n<p>Two.\n--b--\n"
    assert read_one(tmp_path, mail(both, kind="multipart/alternative; boundary=b"))[0] == "Rain\n\nTwo."
    monkeypatch.setitem(sys.modules, "selectolax", None)
    (tmp_path / "two.eml").write_bytes(mail())
    assert texts_and_skipped(tmp_path) == (["Rain\n\nThe body."], {MISSING_EXTRA: 1})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (mail(""), "Rain"),
        (mail("", "Subject: "), None),
        (mail("No end.\n", kind="multipart/mixed; boundary=b"), "Rain\n\nNo end."),
        (mail("--b\n\nNo end.\n", kind="multipart/mixed; boundary=b"), "Rain\n\nNo end."),
        (mail("dG93bg==", "Content-Transfer-Encoding: base64"), "Rain\n\ntown"),
        (mail("x", kind="a/b/c; ="), "Rain\n\nx"),
        (b"\xef\xbb\xbf\n" + mail("x"), "Rain\n\nx"),
        (mail("<meta charset=koi8-r><p>дом".encode("koi8-r"), kind="text/html"), "Rain\n\nдом"),
        (mail("<p>Größe".encode("cp1252"), kind="text/html"), "Rain\n\nGröße"),
        (mail("x").replace(b"\n", b"\r\n"), "Rain\n\nx"),
    ],
)
def test_unusual_mails_are_read(tmp_path: Path, data: bytes, text: str | None) -> None:
    if text is not None:
        assert read_one(tmp_path, data)[0] == text
    else:
        with pytest.raises(EmptyCorpusError, match="empty"):
            read_one(tmp_path, data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (mail("x", kind="multipart/encrypted; boundary=b"), "encrypted"),
        (mail("MII=", kind="application/pkcs7-mime; smime-type=enveloped-data"), "encrypted"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "not an e-mail"),
        (b"Only text, and no headers.\n", "not an e-mail"),
        (mail(b"\0\0\0", kind="text/plain"), "binary"),
    ],
)
def test_unreadable_mails_are_skipped(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(EmptyCorpusError, match=f"skipped 1: {reason}"):
        read_one(tmp_path, data)


@pytest.mark.parametrize("depth", [50, 2_000])
def test_deeply_nested_parts_take_little_time(tmp_path: Path, depth: int) -> None:
    """Python's parser gives up on these; it may return their beginning."""
    parts = "".join(f"--{level}\nContent-Type: multipart/mixed; boundary={level + 1}\n\n" for level in range(depth))
    (tmp_path / "deep.eml").write_bytes(mail(parts + f"--{depth}\n\nInside.\n", kind="multipart/mixed; boundary=0"))
    (tmp_path / "good.eml").write_bytes(mail())
    began = time.process_time()
    reader = read_documents(tmp_path)
    found = {document.id: document.text for document in reader}
    assert time.process_time() - began < 10
    assert found["good.eml"] == "Rain\n\nThe body."
    assert found.get("deep.eml") == ("Rain\n\nInside." if depth == 50 else None)
    assert sum(reader.report.skipped.values()) == (depth > 50)


@pytest.mark.parametrize(
    "data",
    [
        mail("x", "Subject: " + "=?a?q?" * 50_000),
        mail("x", "Content-Type: a/b; " + 'a="";' * 50_000),
    ],
)
def test_hostile_mails_take_linear_time(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "good.txt").write_text("Text.")
    (tmp_path / "a.eml").write_bytes(data)
    (tmp_path / "a.mbox").write_bytes(mailbox(data, b"\nFrom " + b"12:34" * 50_000, mail("Last.")))
    began = time.process_time()
    assert "Text." in texts(tmp_path)
    assert texts([tmp_path / "a.mbox"])[-1] == "Rain\n\nLast."
    assert time.process_time() - began < 10


def test_mailbox_is_a_table(tmp_path: Path) -> None:
    mails = [
        mail("One.\n\nFrom here on it rains.\n>From the north.\n"),
        mail("Two.", "Message-ID: <2@example.com>", "Subject: Snow"),
        mail("Three.", "Message-ID: <2@example.com>"),
        mail("Four.", "Message-ID: "),
        mail(b"\x81\xff", "Message-ID: <5@example.com>", kind="text/plain; charset=gb2312"),
        mail(b"<p>Gr\xf6\xdfe", "Message-ID: <7@example.com>", kind="text/html; charset=utf-8"),
    ]
    for name, data in (("a.mbox", mailbox(*mails)), ("b.mbox.gz", gzip.compress(mailbox(*mails)))):
        (tmp_path / name).write_bytes(data)
        reader = read_documents(tmp_path / name, metadata=True)
        found = list(reader)
        assert [document.text for document in found] == [
            "Rain\n\nOne.\n\nFrom here on it rains.\nFrom the north.", "Snow\n\nTwo.", "Rain\n\nThree.",
            "Rain\n\nFour.", "Rain\n\n\ufffd\ufffd", "Rain\n\nGr\ufffd\ufffde",
        ]  # fmt: skip
        assert [document.id for document in found][:3] == ["1@example.com", "2@example.com", "2@example.com#2"]
        assert (found[1].metadata or {})["subject"] == "Snow"
        assert reader.report.skipped == {}
        assert reader.report.repaired == {"duplicate id": 1, "missing id": 1, INVALID: 2}
    (tmp_path / "c.mbox").write_bytes(mail())
    with pytest.raises(DataError, match=r"c\.mbox is not a mailbox.*\.eml"):
        list(read_documents(tmp_path / "c.mbox"))


def test_too_long_mail_in_a_mailbox_is_skipped(tmp_path: Path) -> None:
    big = mail("x" * 3_000_000 + "\nFrom nobody\n", "Message-ID: <big@example.com>")
    (tmp_path / "a.mbox").write_bytes(mailbox(mail("One."), big, mail("Two.", "Message-ID: <2@example.com>")))
    found = texts_and_skipped(tmp_path / "a.mbox", max_characters=1_000)
    assert found == (["Rain\n\nOne.", "Rain\n\nTwo."], {"too long": 1})


RAW = ("00001.7c53336b37003a9286aba55d2945844c", "12", "1.host:2,S", "a.txt", "b")


def test_raw_mails_are_detected_on_request(tmp_path: Path) -> None:
    for name in RAW:
        (tmp_path / name).write_bytes(b"X-Seal: " + b"a\n\tb" * 9_000 + b"\n" + mail(f"Text of {name}."))
    (tmp_path / "notes.txt").write_text("Not a mail.")
    (tmp_path / "LICENSE").write_text("Not a mail either.")
    assert [document.id for document in read_documents(tmp_path)] == ["a.txt", "notes.txt"]
    reader = read_documents(tmp_path, mails=True, metadata=True)
    found = {document.id: document for document in reader}
    assert {name: found[name].text for name in found} == {
        **{name: f"Rain\n\nText of {name}." for name in RAW}, "notes.txt": "Not a mail."
    }  # fmt: skip
    assert (found["12"].metadata or {})["subject"] == "Rain"
    assert texts(tmp_path / "12", mails=True) == ["Rain\n\nText of 12."]
