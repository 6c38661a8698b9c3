"""Show messages of Slack exports as plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LINK = re.compile(r"<([@#!]?)([^<>|]+)\|?([^<>]*)>")


def without_markup(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row of JSON. In Slack messages, links become their labels, and bare ids of users and channels go."""
    text = row.get("text")
    if row.get("type") != "message" or "ts" not in row or not isinstance(text, str):
        return row
    text = _LINK.sub(_label, text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return {**row, "text": text}


def _label(match: re.Match[str]) -> str:
    sign, target, label = match.groups()
    if sign in ("@", "#"):
        return sign + label if label else ""
    return label or {"": target, "!": "" if "^" in target else f"@{target}"}[sign]
