"""Read e-mails with Python's ``email``, single (``.eml``) or in a mailbox (``.mbox``), and with olefile (``.msg``)."""

from __future__ import annotations

import codecs
import contextlib
import email
import email.errors
import email.policy
import email.utils
import functools
import itertools
import re
import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.header import decode_header
from email.message import Message
from pathlib import Path
from typing import Any

from simlte_st.errors import DataError
from simlte_st.extras import check_installed
from simlte_st.files import valid_unicode
from simlte_st.reading.formats.html import html_text, page_text
from simlte_st.reading.rows import ENCRYPTED, EXTRA, BadTextError, Content, RawRow, Reading, Skip, find_codec, make_skip
from simlte_st.reading.tables import Table
from simlte_st.reading.text_files import decode_text, open_bytes, read_whole

COLUMNS = ("id", "text", "subject", "sender", "recipients", "date")
"""Columns of a mailbox; a single e-mail only has those from ``subject`` on."""

_BEGINNING = 1 << 16  # bytes searched for headers; mail servers put long headers before the sender
_MAX_HEADER = 20_000  # characters; parsing a header takes quadratic time
_PIECE = 1 << 16  # maximum number of bytes to read from a line at a time
_HEADER = re.compile(r"([A-Za-z][\w-]*):|[ \t]|>?From ")
_SENT = frozenset(("subject", "date", "message-id", "received", "to", "newsgroups", "return-path"))
_ENVELOPE = re.compile(rb"From [^\r\n]{0,300}\d\d:\d\d[^\r\n]{0,300}\r?\n")  # the line before each e-mail in a mailbox
_STUFFED = re.compile(rb"^>(>*From )", re.MULTILINE)
_NARROW = frozenset(("", "ascii", "us-ascii", "iso-8859-1", "latin-1", "unknown-8bit", "x-unknown"))
_NO_TEXT = frozenset(("message/delivery-status", "message/disposition-notification", "text/rfc822-headers"))

# Properties of Outlook's messages; a sender's second address may be one that only Exchange knows.
_SUBJECT, _SENDER, _ADDRESSES, _RECIPIENTS, _PLAIN, _HTML = 0x0037, 0x0C1A, (0x5D01, 0x0C1F), 0x0E04, 0x1000, 0x1013
_CLASS, _CODE_PAGE, _DATES = 0x001A, 0x3FFD, (0x0039, 0x0E06)
_RTF, _ATTACHED = "__substg1.0_10090102", "__substg1.0_3701000D"  # a text and the folder of an attached message


class _RawHeaders(email.policy.Compat32):
    def header_fetch_parse(self, name: str, value: str) -> str:
        return value[:_MAX_HEADER]  # a string, because a Header object loses non-ASCII bytes


def looks_like_mail(start: str | bytes) -> bool:
    """Return whether a text begins with e-mail headers: a sender and a subject, date or recipient."""
    if isinstance(start, bytes):
        start = start[:_BEGINNING].decode("latin-1").removeprefix("\xef\xbb\xbf")
    names = set()
    for line in start[:_BEGINNING].lstrip("\ufeff\r\n").split("\n")[:-1]:
        if not line.strip():
            break
        if (header := _HEADER.match(line)) is None:
            return False
        names.add((header[1] or "").lower())
    return "from" in names and not names.isdisjoint(_SENT)


def is_mail(path: Path) -> bool:
    """Return whether a file begins with e-mail headers."""
    with contextlib.suppress(OSError):
        if path.is_file():  # reading a pipe may never end
            with path.open("rb") as stream:
                return looks_like_mail(stream.read(_BEGINNING))
    return False


def read_eml(path: Path, reading: Reading) -> Content:
    """Return an e-mail with its subject and text, or its HTML if there is no plain text.

    Attached e-mails are included; other attachments are not.
    """
    return read_mail(read_whole(path, reading), reading)


def read_mail(data: bytes, reading: Reading) -> Content:
    """Parse an e-mail.

    Raises:
        BadTextError: The e-mail is encrypted, has no headers or cannot be decoded.
    """
    data = data.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
    message = email.message_from_bytes(data, policy=_RawHeaders())
    if not message.keys():
        raise BadTextError("not an e-mail", "it has no headers")
    body = _part_text(message, reading)
    subject, sender, recipients = (_header_text(message, name) or None for name in ("subject", "from", "to"))
    columns = {"subject": subject, "sender": sender, "recipients": recipients, "date": _date(message)}
    text = "\n\n".join(filter(None, (subject, body)))
    text = text.replace("\ufffd", "\udcff")  # to be counted and replaced by the reader
    return Content(text, columns, id=_header_text(message, "message-id").strip("<> ") or None)


def read_msg(path: Path, reading: Reading) -> Content:
    """Return a message of Outlook as :func:`read_eml` returns an e-mail."""
    import olefile

    with path.open("rb") as stream, olefile.OleFileIO(stream) as file:
        attached = sorted(path for path in file.listdir(streams=False, storages=True) if path[-1] == _ATTACHED)
        # The streams of a crafted file may share their bytes, and 64 KiB take as long to read as an empty message.
        reading.check_size(len(attached) * (1 << 16) + sum(map(file.get_size, file.listdir())))
        return _read_outlook(file, attached, [])


def _read_outlook(file: Any, attached: Sequence[list[str]], folder: list[str]) -> Content:
    """Read the message in a folder of an OLE file."""

    def read(name: str) -> bytes:
        path = [*folder, name]
        return file.openstream(path).read() if file.exists(path) else b""

    def text(name: int) -> str:
        wide, narrow = (read(f"__substg1.0_{name:04X}{kind}") for kind in ("001F", "001E"))
        data = codecs.BOM_UTF16_LE + wide if wide else narrow.rstrip(b"\0")
        return decode_text(data, codec, mend=True).strip("\0").strip()

    numbers = file.openstream([*folder, "__properties_version1.0"]).read()[24 if folder else 32 :]
    values = {name: value for _, name, _, value in struct.iter_unpack("<HHIQ", numbers[: len(numbers) // 16 * 16])}
    codec = find_codec(f"cp{values.get(_CODE_PAGE, 0) % (1 << 32)}") or "cp1252"
    if text(_CLASS).lower() == "ipm.note.smime":
        raise BadTextError(ENCRYPTED, "S/MIME")
    subject, sender, recipients = map(text, (_SUBJECT, _SENDER, _RECIPIENTS))
    address = next((address for name in _ADDRESSES if "@" in (address := text(name))), "")
    sender = email.utils.formataddr((sender, address)) if address else sender
    ticks = next((values[name] for name in _DATES if values.get(name)), 0)  # of 100 nanoseconds, since 1601
    date = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10) if ticks else None
    body = text(_PLAIN) or html_text(text(_HTML)) or page_text(read(f"__substg1.0_{_HTML:04X}0102"), codec, mend=True)
    children = (_read_outlook(file, attached, child).text for child in attached if child[:-2] == folder)
    whole = "\n\n".join(filter(None, (subject, body, *children)))
    columns = {"subject": subject or None, "sender": sender or None, "recipients": recipients or None, "date": date}
    repairs = {"text stored only as RTF not read": ""} if read(_RTF) and not body else {}
    return Content(whole.replace("\ufffd", "\udcff"), columns, repairs)


def _header_text(message: Message, name: str) -> str:
    """Return a header, left undecoded if its encoding is unknown."""
    raw = message.get(name, "").encode("utf-8", "surrogateescape")
    # Without encoded words, a header has the encoding of the body.
    charsets = () if raw.isascii() else filter(None, map(_declared_charset, message.walk()))
    try:
        header = " ".join(decode_text(raw, next(iter(charsets), "cp1252"), mend=True).split())
        text = "".join(itertools.starmap(_decode_word, decode_header(header)))
    except (BadTextError, LookupError, ValueError, email.errors.MessageError):
        text = raw.decode("latin-1")
    return valid_unicode(" ".join(text.replace("\0", "").split()))


def _decode_word(word: str | bytes, label: str | None) -> str:
    """Decode a part of a header, as :func:`email.header.decode_header` returns it."""
    if isinstance(word, str) or label is None:
        return word if isinstance(word, str) else word.decode("raw-unicode-escape", "replace")
    if (codec := find_codec(label.partition("*")[0])) is None:  # a language may follow the asterisk
        raise LookupError(label)
    return decode_text(word, codec, mend=True)


def _date(message: Message) -> datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(message.get("date", ""))
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _part_text(part: Message, reading: Reading) -> str:
    """Return the text of a part of an e-mail; empty for attachments."""
    kind = part.get_content_type()
    if kind == "multipart/encrypted" or (kind.endswith("pkcs7-mime") and "signed" not in part.get("content-type", "")):
        raise BadTextError(ENCRYPTED, kind)
    if kind in _NO_TEXT:
        return ""
    if part.is_multipart():
        parts = [subpart for subpart in part.get_payload() if isinstance(subpart, Message)]
        texts = [_part_text(subpart, reading) for subpart in parts]
        if kind == "message/rfc822":
            texts = [_header_text(subpart, "subject") for subpart in parts] + texts
        elif kind == "multipart/alternative":  # the last part is the richest, but plain text needs no conversion
            pairs = [(subpart, text) for subpart, text in zip(parts, texts, strict=True) if text.strip()]
            plain = [text for subpart, text in pairs if subpart.get_content_type() == "text/plain"]
            texts = plain[:1] or [text for _, text in pairs[-1:]]
        return "\n\n".join(text for text in texts if text.strip())
    if kind.startswith("multipart/"):  # a multipart message without parts
        kind = "text/plain"
    if part.get_content_disposition() == "attachment" or kind not in ("text/plain", "text/html"):
        return ""
    payload = part.get_payload(decode=True)
    data, declared = payload if isinstance(payload, bytes) else b"", _declared_charset(part)
    # As in browsers, text declared as ASCII or Latin-1 is decoded as Windows-1252.
    charset = declared or ("cp1252" if reading.encoding == Reading.encoding else reading.encoding)
    if kind == "text/plain":
        text = decode_text(data, charset, mend=True).strip()
        if not text[:15].lower().startswith(("<html", "<!doctype html")):
            return text
    check_installed("selectolax", EXTRA, "reading HTML in e-mails")  # may be declared as plain text
    return html_text(decode_text(data, charset, True)) if declared else page_text(data, charset, mend=True)


def _declared_charset(part: Message) -> str | None:
    """Return a part's declared encoding, unless it is unknown, Latin-1 or ASCII."""
    charset = part.get_content_charset("").lower()
    return None if charset in _NARROW else find_codec(charset)


def open_mbox(path: Path, reading: Reading) -> Table:
    """Open a mailbox, with message ids as ids."""
    with open_bytes(path) as stream:
        start = stream.read(_BEGINNING)
    if start.strip() and not _ENVELOPE.match(start.lstrip(b"\r\n")):
        raise DataError(f'{path} is not a mailbox: it should begin with "From SENDER DATE". Use .eml for one e-mail.')
    strings = [name for name in COLUMNS if name != "date"]
    return Table(str(path), COLUMNS, strings, functools.partial(_rows, path, reading), {"date": "dates"})


def _rows(path: Path, reading: Reading, columns: Sequence[str]) -> Iterator[RawRow | Skip]:
    for number, data in enumerate(_mails(path, reading.max_bytes), start=1):
        where = f"mail {number:,}"
        try:
            reading.check_size(len(data))
            mail = read_mail(data, reading)
            values = {"id": mail.id, "text": mail.text, **mail.columns}
            yield RawRow(where, None, {name: values[name] for name in columns})
        except Exception as error:
            yield make_skip(error, where)


def _mails(path: Path, max_bytes: int) -> Iterator[bytes]:
    """Yield the e-mails in a mailbox without their envelope lines, truncating any that are too long."""
    with open_bytes(path) as stream:
        mail = bytearray()
        in_mail, after_blank, at_line_start = False, True, True
        while line := stream.readline(_PIECE):
            if at_line_start and after_blank and _ENVELOPE.fullmatch(line):
                if in_mail:
                    yield _STUFFED.sub(rb"\1", mail)
                mail, in_mail = bytearray(), True
            elif len(mail) <= max_bytes:
                mail += line
            after_blank = at_line_start and not line.strip(b"\r\n")
            at_line_start = line.endswith(b"\n")
        if in_mail:
            yield _STUFFED.sub(rb"\1", mail)
