"""Helpers for tests of the exploration page."""

from __future__ import annotations

HOSTILE = "</script><img src=x onerror=\"document.title='own'\"> <b>b</b> $title {{x}} &amp; [a](javascript:alert`1`)"
"""A text that would act as markup if it were not escaped."""
