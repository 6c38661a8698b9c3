"""Settings of what reads documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simlte_st.config import Config, setting


@dataclass(frozen=True, kw_only=True)
class ReadConfig(Config):
    """How documents are read from a source."""

    heading: ClassVar[str] = "reading"

    text_column: str | None = setting(None, "column of the text", metavar="NAME", default_help="the usual names")
    id_column: str | None = setting(
        None, "column of the ids", metavar="NAME", default_help="the usual names, else ids are made"
    )
    encoding: str = setting("utf-8", "encoding of text files")
    limit: int | None = setting(None, "use at most this number of documents")
