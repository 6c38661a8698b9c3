"""Rich Text Format, by striprtf."""

from __future__ import annotations

import re
from pathlib import Path

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import DAMAGED, FileText, tidy_lines
from simlte_st.data.text_files import TOO_LONG, BadTextError

_PICTURE = re.compile(r"[0-9a-fA-F\r\n]{2000,}")  # in hexadecimal digits; all that a picture is


def read(path: Path, config: SourceConfig) -> FileText:
    """Return the text, in which lines are paragraphs."""
    from striprtf.striprtf import rtf_to_text

    if (size := path.stat().st_size) > 12 * config.max_characters + (1 << 20):
        raise BadTextError(TOO_LONG, f"{size:,} bytes")
    data = path.read_bytes()
    if not data.lstrip().startswith(b"{\\rtf"):
        raise BadTextError(DAMAGED, "it does not begin as RTF does")
    written = _PICTURE.sub("", data.decode("latin-1"))
    text = rtf_to_text(written, errors="replace")
    # Characters beyond the basic plane are written as two.
    return FileText(tidy_lines(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")))
