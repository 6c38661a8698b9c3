"""Settings of the page that shows a corpus."""

from __future__ import annotations

from dataclasses import dataclass

from simlte_st.config import DeviceConfig, OverwriteConfig, ProgressConfig, SeedConfig, setting
from simlte_st.data.config import LanguageConfig, SimilarityConfig
from simlte_st.extras import check_installed


@dataclass(frozen=True, kw_only=True)
class ExploreConfig(LanguageConfig, SimilarityConfig, OverwriteConfig, DeviceConfig, SeedConfig, ProgressConfig):
    """What the page of a corpus shows, and how documents are encoded for it."""

    label: str | None = setting(
        None, "column that topics are compared with: classes, numbers or dates", metavar="COLUMN"
    )
    title: str | None = setting(
        None, "column of titles", metavar="COLUMN", default_help="the usual names, else first lines"
    )
    topics: int | None = setting(
        None, "number of topics", least=2, default_help="the number on which halves of documents agree most"
    )
    batch_size: int = setting(32, "texts that are encoded together")
    redundancy: bool = setting(
        False, "measure how often documents repeat their nouns and verbs, on 300 of them (extra pos, English)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.redundancy:
            check_installed("spacy", "pos", "finding parts of speech")
