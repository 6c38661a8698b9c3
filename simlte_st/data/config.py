"""Settings of what reads documents and removes duplicates from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simlte_st.config import Config, OverwriteConfig, ProgressConfig, setting


@dataclass(frozen=True, kw_only=True)
class ReadConfig(Config):
    """How documents are read from a source."""

    heading: ClassVar[str] = "reading"

    text_column: str | None = setting(
        None,
        "column of the text, or its path in a struct, such as article.body",
        metavar="NAME",
        default_help="the usual names",
    )
    id_column: str | None = setting(
        None, "column of the ids", metavar="NAME", default_help="the usual names, else ids are made"
    )
    encoding: str = setting("utf-8", "encoding of text files")
    limit: int | None = setting(None, "use at most this number of documents")
    mails: bool = setting(
        False, "read what begins with the headers of an e-mail as one: text files, files without a known suffix, texts"
    )
    drop_quotes: bool = setting(False, "leave quoted mails and signatures out of e-mails")
    html: bool = setting(False, "read texts that have HTML tags, as of tickets in a table, as a browser shows them")


@dataclass(frozen=True, kw_only=True)
class SourceConfig(ReadConfig):
    """Everything that :func:`~simlte_st.data.read_documents` can be told about a source."""

    label_column: str | None = setting(None, "column of the class; read only when named", option=False)
    max_characters: int = setting(20_000_000, "longer texts are skipped and counted", option=False)
    metadata: bool = setting(
        False, "keep the values of all other columns (the label's too) as the documents' metadata", option=False
    )

    def named_columns(self) -> dict[str, str]:
        """Return the columns that are named, by setting."""
        names = ("text_column", "id_column", "label_column")
        return {name: column for name in names if (column := getattr(self, name)) is not None}


@dataclass(frozen=True, kw_only=True)
class LanguageConfig(Config):
    """The language that documents are in."""

    language: str | None = setting(
        None,
        "ISO 639-1 code of the documents' language, by whose endings and stop words they are compared",
        metavar="CODE",
        default_help="found in the documents",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language is not None:
            from simlte_st.data.languages import check_language

            check_language(self.language)


@dataclass(frozen=True, kw_only=True)
class SimilarityConfig(Config):
    """Which documents count as near-duplicates."""

    similarity: float = setting(
        0.75, "documents that share this much of their runs of five words are near-duplicates", above=0, most=1
    )


@dataclass(frozen=True, kw_only=True)
class DedupeConfig(SimilarityConfig, OverwriteConfig, ProgressConfig):
    """Which documents count as duplicates."""

    near: bool = setting(
        True,
        "remove near-duplicates too, not only exact ones",
        flag="--exact",
        flag_help="leave out only documents with the same words",
    )
