"""Documents, their sentences, words and ids."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import itertools
import math
import os
import re
import statistics
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from simlte_st.files import valid_unicode

LONGEST_WORD = 24
"""Maximum length of a word in characters; a longer run without white space counts as several words."""

LONG = 280
"""Median number of words above which a static model matches an adapted encoder. It equals 360 tokens: the static model
was ahead on data sets with 428 tokens or more, and behind on those with 298 or fewer."""

SAMPLE_CHARACTERS = 1_000_000
"""Characters in the sample of first documents; Punkt learns from it in a few seconds."""

T = TypeVar("T")


class ArrowStream(Protocol):
    """A table of pandas, polars or pyarrow: anything with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows."""


if TYPE_CHECKING:
    from simlte_st.reading.documents import Shards
    from simlte_st.reading.reader import DocumentReader

    DocumentSource: TypeAlias = (
        str
        | os.PathLike[str]
        | Iterable[str | os.PathLike[str] | Mapping[str, Any] | "Document"]
        | ArrowStream
        | DocumentReader
        | Shards
    )
else:
    DocumentSource = Any
"""Anything that :func:`~simlte_st.data.read_documents` takes or returns; it checks the type at run time."""


# Scripts without spaces, as in words/languages.py: each character with its marks is a word, as in BERT's pre-tokenizer.
# These are Unicode blocks because re with blocks is four times as fast as regex with scripts.
_UNSPACED = (
    "\u2e80-\u2fff\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00016fe2-\U00016ff6\U0001aff0-\U0001b16f\U00020000-\U00033fff"  # Han and kana
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaa7f\U000116d0-\U000116ff"
    "\u1b00-\u1b7f\ua980-\ua9df"  # Thai, Lao, Burmese, Khmer; Balinese, Javanese
)
_MARKED = [*range(0x0E00, 0x1B80), *range(0x3000, 0x3100), *range(0xA980, 0xAA80)]
_MARKS = "".join(filter(lambda sign: unicodedata.category(sign)[0] == "M", map(chr, _MARKED)))
_WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
_BOOLEANS = {"true": "True", "false": "False"}
_WORD = re.compile(rf"[{_UNSPACED}][{_MARKS}]*|[^\s{_UNSPACED}]{{1,{LONGEST_WORD}}}")


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a source.

    Attributes:
        id: Unique id of the document in its corpus.
        text: The text; not empty, and not only white space.
        label: The class, if a label column was named; training never uses it.
        split: The benchmark split (``"train"``, ``"validation"`` or ``"test"``), if the source has one.
        metadata: The values of the source's other columns, unchanged, if requested.
    """

    id: str
    text: str
    label: str | None = None
    split: str | None = None
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)  # a mapping has no hash


@dataclass(frozen=True, slots=True)
class SegmentedDocument:
    """A document split into sentences, from which views are drawn.

    Attributes:
        id: The document's id. Views depend on (seed, epoch, id), so the same id gives the same views.
        sentences: The sentences in order; none is empty.
        paragraphs: Index of each paragraph's first sentence, ascending from 0.
        tokens: Number of model tokens in each sentence, without special tokens; an estimate if there is no tokenizer.
    """

    id: str
    sentences: tuple[str, ...]
    paragraphs: tuple[int, ...]
    tokens: tuple[int, ...]

    def words(self, sentence: int) -> int:
        """Return the number of words in a sentence."""
        return count_words(self.sentences[sentence])


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the words of a text as ``(start, stop)`` character offsets.

    A word is a run of up to :data:`LONGEST_WORD` characters without white space. In scripts without spaces, each
    character with its marks is a word.
    """
    return [match.span() for match in _WORD.finditer(text)]


def count_words(text: str) -> int:
    """Return the number of words that :func:`word_spans` finds."""
    return len(_WORD.findall(text))


def median_words(texts: Iterable[str]) -> float:
    """Return the median number of words in the texts."""
    return statistics.median(map(count_words, texts))


def peek(items: Iterable[T], size: Callable[[T], int], limit: int = SAMPLE_CHARACTERS) -> tuple[list[T], Iterator[T]]:
    """Return the first items of a stream, up to a total size of ``limit``, and the whole stream.

    With it, Punkt can learn from the beginning of a corpus that can only be read once.
    """
    iterator = iter(items)
    first: list[T] = []
    total = 0
    for item in iterator:
        first.append(item)
        total += size(item)
        if total >= limit:
            break
    return first, itertools.chain(first, iterator)


def content_id(text: str) -> str:
    """Return an id made from a text: 16 hexadecimal digits of its BLAKE2b hash."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def text_key(text: str) -> int:
    """Return the hash of :func:`content_id` as a signed 64-bit integer."""
    return int.from_bytes(bytes.fromhex(content_id(text)), "big", signed=True)


class UntypedText(str):
    """A value from a source without types; it may represent a number or a date."""

    __slots__ = ()


def to_name(value: object) -> str | None:
    """Return an id or a label as text; None if it is missing.

    Whole floats are written as integers, because a missing value turns a column of integers into floats. Text is
    normalised to NFC, because macOS writes decomposed names. In sources without types, ``1.0`` becomes ``1`` and
    ``TRUE`` becomes ``True``.
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
        number = _WHOLE_NUMBER.fullmatch(text.strip())
        text = number[1] if number else _BOOLEANS.get(text.strip().lower(), text)
    return to_nfc(text) if text.strip() else None


def to_nfc(text: str) -> str:
    """Return a text as valid Unicode in NFC."""
    return unicodedata.normalize("NFC", valid_unicode(text))
