"""Plain text files."""

from __future__ import annotations

from pathlib import Path

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import FileText
from simlte_st.data.text_files import TOO_LONG, BadTextError, decode_text


def read(path: Path, config: SourceConfig) -> FileText:
    """Return the text of a file."""
    # No encoding in use takes more than four bytes a character: a larger file need not be read to be too long.
    if (size := path.stat().st_size) > 4 * config.max_characters + 4:
        raise BadTextError(TOO_LONG, f"{size:,} bytes")
    return FileText(decode_text(path.read_bytes(), config.encoding))
