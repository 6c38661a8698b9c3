"""Helpers of the tests of the exploration's page."""

from __future__ import annotations

HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\"> <b>bold</b> $title {{x}} &amp; [md](javascript:alert`1`)"
)
"""A text that would be markup, were it not shown as it is."""
