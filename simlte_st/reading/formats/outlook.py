"""Read Outlook messages (``.msg``) with olefile, and convert them to e-mails.

python-oxmsg, also based on olefile, reads no attached messages and no bodies in RTF, and fails if an encoding is declared
wrongly; the licence of extract-msg does not fit.
"""

from __future__ import annotations

import base64
import contextlib
import email
import email.utils
import struct
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from email.message import Message
from pathlib import Path
from typing import TYPE_CHECKING

from simlte_st.reading.formats.mail import RawHeaders, parse_message
from simlte_st.reading.formats.office import rtf_text
from simlte_st.reading.rows import ENCRYPTED, TOO_LONG, BadTextError, FileText, Reading, is_encoding

if TYPE_CHECKING:
    from olefile import OleFileIO

# Properties of messages; the sender's second address may be one that only Exchange knows.
_CLASS, _SUBJECT, _HEADERS, _RECIPIENTS, _MESSAGE_ID = 0x001A, 0x0037, 0x007D, 0x0E04, 0x1035
_SENDER, _ADDRESSES, _DATES = 0x0C1A, (0x5D01, 0x0C1F), (0x0039, 0x0E06)
_TEXT, _RTF, _HTML, _TEXT_CODE_PAGE, _HTML_CODE_PAGE = 0x1000, 0x1009, 0x1013, 0x3FFD, 0x3FDE
_UNICODE, _NARROW, _BYTES, _OBJECT = "001F", "001E", "0102", "000D"  # their types
_ATTACHED = 0x3701

_CODE_PAGES = {20866: "koi8-r", 28591: "cp1252", 50220: "iso-2022-jp", 51932: "euc-jp", 54936: "gb18030"}
_MAX_ATTACHED = 1_000  # messages


def read_msg(path: Path, reading: Reading) -> FileText:
    """Return the subject and text of an Outlook message, including attached messages, as for an e-mail."""
    import olefile

    reading.check_size(path.stat().st_size)
    with path.open("rb") as stream, olefile.OleFileIO(stream) as file:
        message = _MessageFile(file, reading).message(())
    mail = parse_message(message, reading)
    return FileText(mail.text, mail.columns)


class _MessageFile:
    def __init__(self, file: OleFileIO, reading: Reading) -> None:
        self._file, self._reading = file, reading
        self._size = self._attached = 0  # what was read, because a crafted file may store one text for many messages
        self._streams = {tuple(path) for path in file.listdir()}
        self._folders = defaultdict[tuple[str, ...], list[tuple[str, ...]]](list)
        for *parent, name in file.listdir(streams=False, storages=True):
            self._folders[tuple(parent)].append((*parent, name))

    def message(self, folder: tuple[str, ...]) -> Message:
        """Convert the message in a folder to an e-mail."""
        numbers = self._numbers(folder)
        pages = [int.from_bytes(numbers.get(name, b"")[:4], "little") for name in (_TEXT_CODE_PAGE, _HTML_CODE_PAGE)]
        page, html_page = (_CODE_PAGES.get(number, f"cp{number}") for number in pages)

        def text(name: int) -> str:
            wide = self._read(folder, name, _UNICODE).decode("utf-16-le", "replace")
            narrow = self._read(folder, name, _NARROW).decode(page if is_encoding(page) else "cp1252", "replace")
            return (wide or narrow).rstrip("\0")

        kind = text(_CLASS).lower()
        if kind.startswith("ipm.note.smime") and "signed" not in kind:
            raise BadTextError(ENCRYPTED, kind)
        message = email.message_from_bytes(text(_HEADERS).encode(), policy=RawHeaders())
        for name in ("content-type", "content-transfer-encoding", "content-disposition"):  # of the e-mail as sent
            del message[name]
        address = next((address for name in _ADDRESSES if "@" in (address := text(name))), "")
        sender = email.utils.formataddr((text(_SENDER), address)) if address else text(_SENDER)
        headers = {"subject": text(_SUBJECT), "from": sender, "to": text(_RECIPIENTS), "message-id": text(_MESSAGE_ID)}
        for name, value in {**headers, "date": _date(numbers)}.items():
            if value and name not in message:
                message[name] = value
        if body := text(_TEXT).strip():
            parts = [_part("text/plain", body.encode(), "utf-8")]
        elif html := text(_HTML).strip():
            parts = [_part("text/html", html.encode(), "utf-8")]
        elif data := self._read(folder, _HTML, _BYTES):
            parts = [_part("text/html", data, html_page)]
        else:
            parts = [_part("text/plain", _unpack_rtf(self._read(folder, _RTF, _BYTES)).encode(), "utf-8")]
        message["content-type"] = "multipart/mixed"
        message.set_payload(parts + [part for child in self._folders[folder] for part in self._attachment(child, kind)])
        return message

    def _attachment(self, folder: tuple[str, ...], kind: str) -> list[Message]:
        """Return an attached message, or the signed parts of a message, in a list that is empty for other attachments."""
        if (attached := (*folder, f"__substg1.0_{_ATTACHED:04X}{_OBJECT}")) in self._folders[folder]:
            self._attached += 1
            if self._attached > _MAX_ATTACHED:
                raise BadTextError(TOO_LONG, f"more than {_MAX_ATTACHED:,} attached messages")
            part = Message()
            part["content-type"] = "message/rfc822"
            part.set_payload([self.message(attached)])
            return [part]
        if kind.startswith("ipm.note.smime"):
            return [email.message_from_bytes(self._read(folder, _ATTACHED, _BYTES), policy=RawHeaders())]
        return []

    def _read(self, folder: tuple[str, ...], name: int, kind: str) -> bytes:
        path = (*folder, f"__substg1.0_{name:04X}{kind}")
        return self._read_stream(path) if path in self._streams else b""

    def _numbers(self, folder: tuple[str, ...]) -> dict[int, bytes]:
        """Return the properties of fixed size."""
        path = (*folder, "__properties_version1.0")
        data = self._read_stream(path)[24 if folder else 32 :] if path in self._streams else b""
        return {name: value for _, name, _, value in struct.iter_unpack("<HHI8s", data[: len(data) // 16 * 16])}

    def _read_stream(self, path: tuple[str, ...]) -> bytes:
        data: bytes = self._file.openstream(list(path)).read()
        self._size += len(data)
        self._reading.check_size(self._size)
        return data


def _date(numbers: dict[int, bytes]) -> str:
    """Return the time when a message was sent or received, as in an e-mail."""
    value = next((numbers[name] for name in _DATES if name in numbers), b"")
    with contextlib.suppress(OverflowError):
        moment = datetime(1601, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=int.from_bytes(value, "little") // 10)
        return email.utils.format_datetime(moment) if value else ""
    return ""


def _part(kind: str, data: bytes, encoding: str) -> Message:
    part = Message()
    part["content-type"] = f'{kind}; charset="{encoding}"'
    part["content-transfer-encoding"] = "base64"
    part.set_payload(base64.b64encode(data).decode())
    return part


def _unpack_rtf(data: bytes) -> str:
    import compressed_rtf

    return rtf_text(compressed_rtf.decompress(data)) if data else ""
