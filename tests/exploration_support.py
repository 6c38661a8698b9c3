"""Helpers of the tests of the exploration's page."""

from __future__ import annotations

from typing import Any

from simlte_st.data import Document

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"> <b>bold</b> $title {{x}} &amp;"
"""A text that would be markup, were it not shown as it is."""


def documents_with(**columns: list[Any]) -> list[Document]:
    """Return documents whose other columns have these values."""
    count = len(next(iter(columns.values())))
    rows = [{name: values[row] for name, values in columns.items()} for row in range(count)]
    return [Document(str(row), f"Text {row}", metadata=values) for row, values in enumerate(rows)]
