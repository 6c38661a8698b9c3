"""Settings of the page that shows a corpus, and the check of its files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simlte_st.config import DeviceConfig, OverwriteConfig, ProgressConfig, SeedConfig, setting
from simlte_st.data.config import LanguageConfig, SimilarityConfig
from simlte_st.errors import ConfigurationError
from simlte_st.extras import check_installed
from simlte_st.files import check_apart, check_new, check_place


@dataclass(frozen=True, kw_only=True)
class ExploreConfig(LanguageConfig, SimilarityConfig, OverwriteConfig, DeviceConfig, SeedConfig, ProgressConfig):
    """What the page of a corpus shows, and how documents are encoded for it."""

    label: str | None = setting(None, "column of classes that topics are compared with", metavar="COLUMN")
    title: str | None = setting(
        None, "column of titles", metavar="COLUMN", default_help="the usual names, else first lines"
    )
    topics: int | None = setting(
        None, "number of topics", least=2, default_help="the number on which halves of documents agree most"
    )
    batch_size: int = setting(32, "texts that are encoded together")


def check_output(output: str | os.PathLike[str], documents: Any, overwrite: bool) -> Path:
    """Check, before work begins, that the page and its table can be written and what they need is installed."""
    page = Path(output)
    if page.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(f"{page}: the page is a file whose name ends in .html.")
    table = page.with_suffix(".parquet")
    check_apart(documents, page)
    check_apart(documents, table)
    for path in (page, table):
        check_place(path)
        check_new(path, overwrite and path.is_file())
    check_installed("bokeh", "explore", "the page")
    return page
