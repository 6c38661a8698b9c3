"""Helpers for tests of the exploration page."""

from __future__ import annotations

HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\"> <b>bold</b> $title {{x}} &amp; [md](javascript:alert`1`)"
)
"""A text that would act as markup if it were not escaped."""
