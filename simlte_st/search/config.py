"""Settings of adding to an index and of searching it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from simlte_st.config import Config, check_text, setting
from simlte_st.data.config import LanguageConfig
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.models.config import EngineConfig

Mode = Literal["hybrid", "dense", "text"]

READ_HITS = 64
"""Hits of the first stage of which the model of ``rerank`` reads passages."""


@dataclass(frozen=True, kw_only=True)
class AddConfig(LanguageConfig, EngineConfig):
    """How documents are added to an index."""

    batch_size: int = setting(32, "texts that are encoded together")
    columns: Sequence[str] | None = setting(
        None,
        "columns of the source to keep, with commas between them",
        metavar="NAMES",
        default_help="all; of more than 256 the most frequent ones",
    )
    dates: Sequence[str] | None = setting(
        None,
        "columns of text that holds dates or moments (ISO 8601), to be compared as such",
        metavar="NAMES",
        default_help="dates of sources with types, such as parquet",
    )
    sync: bool = setting(False, "remove documents that are no longer in the source")
    progress: bool = setting(False, "show a progress bar", option=False)


@dataclass(frozen=True, kw_only=True)
class LinkEachConfig(Config):
    """Which documents are found for each of many others."""

    top_k: int | None = setting(
        None, "number of hits", aliases=("--top",), default_help="10, or all with ``threshold=``"
    )
    threshold: float | None = setting(
        None, "lowest cosine of a hit; all documents are then compared, without an approximate index", least=-1, most=1
    )
    where: str | None = setting(None, 'SQL condition on id and metadata, e.g. "year > 2010"', metavar="SQL")
    mode: Mode = setting(
        "hybrid", "by the cosine of vectors (dense), by words with BM25 (text), or by the ranks in both (hybrid)"
    )

    rerank: Any = setting(
        None,
        f"encoder that reads passages of the first {READ_HITS} hits and ranks them anew; the index keeps what "
        "it has read, and a threshold stays a cosine of the index's own vectors",
        metavar="MODEL",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and self.mode == "text":
            raise ConfigurationError(
                f"threshold={self.threshold}: a threshold is a cosine, and mode='text' compares no vectors."
            )


@dataclass(frozen=True, kw_only=True)
class SearchConfig(LinkEachConfig):
    """Which documents are found, and whether reasons are given."""

    explain: bool = setting(
        False, "give the sentences nearest to the query, and the words that both share", aliases=("--why",)
    )


def check_query(query: str) -> None:
    """Check the text of a search."""
    check_text("query", query)
    if not query.strip():
        raise DataError("The text to search for is empty.")
