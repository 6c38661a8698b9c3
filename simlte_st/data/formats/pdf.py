"""PDF files, by pypdf."""

from __future__ import annotations

import logging
from pathlib import Path

from simlte_st.data.rows import ReadSettings
from simlte_st.data.streams import BadTextError

ENCRYPTED = "encrypted"
NO_TEXT = "without text (scanned?)"


def read(path: Path, settings: ReadSettings) -> str:
    """Give the text of the pages, one after the other: sentences run on from page to page.

    Raises:
        BadTextError: It needs a password, or holds no text.
        OSError: It cannot be read.
    """
    import pypdf

    # It warns of what it mends in a file; what cannot be mended is counted by us.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pages: list[str] = []
    characters = 0
    try:
        with path.open("rb") as stream:
            for page in pypdf.PdfReader(stream).pages:
                pages.append(page.extract_text().strip())
                characters += len(pages[-1])
                if characters > settings.max_characters:
                    break
    except (pypdf.errors.FileNotDecryptedError, pypdf.errors.WrongPasswordError) as error:
        raise BadTextError(ENCRYPTED, "it needs a password") from error
    text = "\n".join(pages)
    if not text.strip():
        raise BadTextError(NO_TEXT, f"{len(pages):,} page{'' if len(pages) == 1 else 's'}")
    return text
