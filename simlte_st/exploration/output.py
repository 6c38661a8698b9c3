"""The page of a corpus and the table beside it, before anything is written to them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from simlte_st.errors import ConfigurationError
from simlte_st.extras import check_installed
from simlte_st.files import check_apart, check_new, check_place


def check_output(output: str | os.PathLike[str], documents: Any, overwrite: bool) -> Path:
    """Check, before work begins, that the page and its table can be written and what they need is installed."""
    page = Path(output)
    if page.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(f"{page}: the page is a file whose name ends in .html.")
    table = page.with_suffix(".parquet")
    check_apart(documents, page)
    try:
        check_apart(documents, table)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{page}: the table beside it, {table}, would replace the documents: choose another name for the page."
        ) from error
    for path in (page, table):
        check_place(path)
        check_new(path, overwrite and path.is_file())
    check_installed("bokeh", "explore", "the page")
    return page
