"""A document as it was read, and the document cut into sentences; their words, ids and names."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import math
import re
import statistics
import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simlte_st.files import valid_unicode

LONGEST_WORD = 24
"""A longer run of characters without white space counts as several words, as it becomes several tokens anyway."""

LONG = 280
"""Words of the median document from which a static model is as good as an adapted encoder: 360 tokens, between the sets
on which it was ahead (428 tokens and more) and those on which it was behind (298 and fewer)."""

# Scripts without spaces, as in data/languages.py: each character with its marks is a word, in Han and kana as in BERT's
# pre-tokenizer. They are blocks, as re is four times as fast with them as regex is with scripts.
_UNSPACED = (
    "\u2e80-\u2fff\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00016fe2-\U00016ff6\U0001aff0-\U0001b16f\U00020000-\U00033fff"  # Han and kana
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaa7f\U000116d0-\U000116ff"
    "\u1b00-\u1b7f\ua980-\ua9df"  # Thai, Lao, Burmese, Khmer; Balinese, Javanese
)
_MARKED = [*range(0x0E00, 0x1B80), *range(0x3000, 0x3100), *range(0xA980, 0xAA80)]
_MARKS = "".join(filter(lambda sign: unicodedata.category(sign)[0] == "M", map(chr, _MARKED)))
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
_TRUTH = {"true": "True", "false": "False"}
_WORD = re.compile(rf"[{_UNSPACED}][{_MARKS}]*|[^\s{_UNSPACED}]{{1,{LONGEST_WORD}}}")


@dataclass(frozen=True, slots=True)
class Document:
    """One document as it was read.

    Attributes:
        id: Unique name of the document in its corpus.
        text: The text, with at least one character that is not white space.
        label: Its class, if the source has one and it was asked for; training never looks at it.
        split: The part of a benchmark it belongs to (``"train"``, ``"validation"``, ``"test"``), if the source says.
        metadata: The source's other columns, unchanged, if they were asked for.
    """

    id: str
    text: str
    label: str | None = None
    split: str | None = None
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)  # a mapping has no hash


@dataclass(frozen=True, slots=True)
class SegmentedDocument:
    """A document cut into sentences, from which views are drawn.

    Attributes:
        id: The document's id. Views are drawn from (seed, epoch, id), so the same id gives the same views.
        sentences: The sentences in order, none of them empty.
        paragraphs: Index of the first sentence of each paragraph, ascending, beginning with 0.
        tokens: Number of model tokens of each sentence, special tokens not counted; estimated without a tokenizer.
    """

    id: str
    sentences: tuple[str, ...]
    paragraphs: tuple[int, ...]
    tokens: tuple[int, ...]

    def words(self, sentence: int) -> int:
        """Return the number of words of a sentence."""
        return count_words(self.sentences[sentence])


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the words of a text as ``(start, stop)`` character offsets.

    A word is a run of up to :data:`LONGEST_WORD` characters without white space; in scripts written without spaces,
    each character with its marks is one.
    """
    return [match.span() for match in _WORD.finditer(text)]


def count_words(text: str) -> int:
    """Return the number of words that :func:`word_spans` finds."""
    return len(_WORD.findall(text))


def median_words(texts: Iterable[str]) -> float:
    """Return the median number of words of some texts."""
    return statistics.median(map(count_words, texts))


def content_id(text: str) -> str:
    """Return the id of a document without one: 16 hexadecimal digits of the BLAKE2b hash of its text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def text_key(text: str) -> int:
    """Return the same hash as a signed 64-bit number."""
    return int.from_bytes(bytes.fromhex(content_id(text)), "big", signed=True)


class UntypedText(str):
    """A value of a source without types: it may spell a number or a date."""

    __slots__ = ()


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
