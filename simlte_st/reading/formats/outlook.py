"""Read Outlook messages (``.msg``) with olefile, and convert them to e-mails.

python-oxmsg, also based on olefile, reads no attached messages and no bodies in RTF, and fails if an encoding is
declared wrongly; the licence of extract-msg does not fit.
"""

from __future__ import annotations

import email
import email.utils
import struct
from email.message import Message
from email.mime.text import MIMEText
from pathlib import Path
from typing import TYPE_CHECKING

from simlte_st.reading.formats.mail import RawHeaders, parse_message
from simlte_st.reading.formats.office import rtf_text
from simlte_st.reading.rows import ENCRYPTED, TOO_LONG, BadTextError, FileText, Reading, is_encoding
from simlte_st.reading.text_files import decode_text

if TYPE_CHECKING:
    from olefile import OleFileIO

# Properties of messages. A sender's second address may be one that only Exchange knows.
_CLASS, _HEADERS, _SENDER, _ADDRESSES, _DATES = 0x001A, 0x007D, 0x0C1A, (0x5D01, 0x0C1F), (0x0039, 0x0E06)
_FIELDS = {"subject": 0x0037, "to": 0x0E04, "message-id": 0x1035}
_PLAIN, _HTML, _RTF, _PLAIN_PAGE, _HTML_PAGE = 0x1000, 0x1013, 0x1009, 0x3FFD, 0x3FDE
_ENCODINGS = {20866: "koi8-r", 50220: "iso-2022-jp", 51932: "euc-jp", 54936: "gb18030"}  # of code pages; others: cp...
_ATTACHED = "__substg1.0_3701000D"  # a folder
_MAX_ATTACHED = 1_000  # messages


def read_msg(path: Path, reading: Reading) -> FileText:
    """Return the subject and text of an Outlook message, with attached messages, as for an e-mail."""
    import olefile

    reading.check_size(path.stat().st_size)
    with path.open("rb") as stream, olefile.OleFileIO(stream) as file:
        return parse_message(_MessageFile(file, reading).message(()), reading)


class _MessageFile:
    def __init__(self, file: OleFileIO, reading: Reading) -> None:
        self._file, self._reading = file, reading
        self._size = self._attached = 0  # bytes and messages read: a crafted file may store one text for many messages
        self._streams = {tuple(path) for path in file.listdir()}
        self._folders = sorted(tuple(path) for path in file.listdir(streams=False, storages=True))

    def message(self, folder: tuple[str, ...]) -> Message:
        """Return the message in a folder as an e-mail."""
        from olefile.olefile import filetime2datetime

        numbers = self._read(folder, "__properties_version1.0")[24 if folder else 32 :]
        values = {name: value for _, name, _, value in struct.iter_unpack("<HHIQ", numbers[: len(numbers) // 16 * 16])}
        pages = [values.get(name, 0) % (1 << 32) for name in (_PLAIN_PAGE, _HTML_PAGE)]
        encoding, html_encoding = (_ENCODINGS.get(page, f"cp{page}") for page in pages)

        def text(name: int, encoding: str = encoding) -> str:
            stream = f"__substg1.0_{name:04X}"
            wide, narrow, data = (self._read(folder, f"{stream}{kind}") for kind in ("001F", "001E", "0102"))
            encoding = encoding if is_encoding(encoding) else "cp1252"
            decoded = wide.decode("utf-16-le", "replace") or decode_text((narrow or data).rstrip(b"\0"), encoding, True)
            return decoded.strip("\0").strip()

        if text(_CLASS).lower() == "ipm.note.smime":
            raise BadTextError(ENCRYPTED, "S/MIME")
        sent = email.message_from_string(text(_HEADERS), policy=RawHeaders())
        fields = {name: sent.get(name) or text(number) for name, number in _FIELDS.items()}
        address = next((address for name in _ADDRESSES if "@" in (address := text(name))), "")
        sender = email.utils.formataddr((text(_SENDER), address)) if address else text(_SENDER)
        fields["from"] = sent.get("from") or sender
        time = filetime2datetime(next((values[name] for name in _DATES if name in values), 0))
        fields["date"] = sent.get("date") or (email.utils.format_datetime(time) if time.year > 1601 else "")
        message = Message(RawHeaders())
        for name, value in {**fields, "content-type": "multipart/mixed"}.items():
            message[name] = value
        plain, html = text(_PLAIN), text(_HTML, html_encoding)
        rtf = self._read(folder, f"__substg1.0_{_RTF:04X}0102") if not plain + html else b""
        parts = [MIMEText(plain or html or _unpack_rtf(rtf), "html" if html and not plain else "plain", "utf-8")]
        for child in self._folders:
            if child[:-2] == folder and child[-1] == _ATTACHED:
                self._attached += 1
                if self._attached > _MAX_ATTACHED:
                    raise BadTextError(TOO_LONG, f"more than {_MAX_ATTACHED:,} attached messages")
                parts.append(Message())
                parts[-1]["content-type"] = "message/rfc822"
                parts[-1].set_payload([self.message(child)])
        message.set_payload(parts)
        return message

    def _read(self, folder: tuple[str, ...], name: str) -> bytes:
        if (path := (*folder, name)) not in self._streams:
            return b""
        data: bytes = self._file.openstream(list(path)).read()
        self._size += len(data)
        self._reading.check_size(self._size)
        return data


def _unpack_rtf(data: bytes) -> str:
    import compressed_rtf

    return rtf_text(compressed_rtf.decompress(data)) if data else ""
