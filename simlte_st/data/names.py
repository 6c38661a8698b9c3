"""Names of documents and classes: equal values have one name, however their source writes them."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import unicodedata
import uuid

from simlte_st.data.tables import UntypedText
from simlte_st.files import valid_unicode

_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
_TRUTH = {"true": "True", "false": "False"}


def name_of(value: object) -> str | None:
    """Return an id or a label as text; None if it is missing.

    Whole numbers have the name of an integer: a column of them becomes one of floats where a value is missing. Text is
    composed (NFC), since macOS writes decomposed names. In a source without types ``1.0`` and ``TRUE`` are written for
    the values that others have as such.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType":
        return None  # NAType is pandas'
    if hasattr(value, "item") and not isinstance(value, str):  # a numpy scalar
        value = value.item()
    if isinstance(value, (float, decimal.Decimal)) and math.isfinite(value) and value == int(value):
        value = int(value)
    if not isinstance(value, (str, int, float, decimal.Decimal, uuid.UUID, datetime.date, datetime.time)):
        raise TypeError(type(value).__name__)
    text = str(value)
    if isinstance(value, UntypedText):
        whole = _WHOLE.fullmatch(text.strip())
        text = whole[1] if whole else _TRUTH.get(text.strip().lower(), text)
    return composed(text) if text.strip() else None


def composed(text: str) -> str:
    """Return a text as valid Unicode in its composed form (NFC)."""
    return unicodedata.normalize("NFC", valid_unicode(text))
