"""Documents, with their sentences, words, ids, titles and metadata columns."""

from __future__ import annotations

import decimal
import hashlib
import itertools
import math
import os
import re
import statistics
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from simlte_st.errors import DataError, list_names
from simlte_st.files import valid_unicode

LONGEST_WORD = 24
"""Maximum length of a word in characters; a longer run of non-white space counts as several words."""

LONG = 280
"""Median number of words above which a static model matches an adapted encoder. It is about 360 tokens: the static
model led on data sets with a median of 428 tokens or more, and trailed on those with 298 or fewer."""

SAMPLE_CHARACTERS = 1_000_000
"""Characters in the sample of first documents, from which Punkt learns in a few seconds."""

Kind = Literal["number", "date", "category", "text"]

CLASSES = 100
"""Maximum number of distinct values in a categorical column."""

TITLES = ("title", "headline", "subject", "name")
"""Default title columns, in order of preference."""

PLACES = ("folder", "file")
"""Columns of a document read from a file: its folder in the source, if any, and its name without the suffix."""

_SEPARATORS = str.maketrans("/\\_", "   ")  # of words in names of files and folders

T = TypeVar("T")


class ArrowStream(Protocol):
    """A pandas, polars or pyarrow table, or any other object with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow stream."""


class DocumentShards(Protocol):
    """A source in shards, as ``read_documents(stream=True)`` returns it."""

    def events(self, shard: int, row: int) -> Iterator[Any]:
        """Read a shard from a row on."""


if TYPE_CHECKING:
    import pyarrow

    Place: TypeAlias = str | os.PathLike[str]
    Records: TypeAlias = Iterable[Place | Mapping[str, Any] | "Document"]  # a DocumentReader, too
    DocumentSource: TypeAlias = Place | Records | ArrowStream | DocumentShards
else:
    DocumentSource = Any
"""Anything that :func:`~simlte_st.data.read_documents` accepts or returns; types are checked at run time."""


# Scripts without spaces, as in words/languages.py; each character with its marks is a word, as in BERT's pre-tokenizer.
# Listed as Unicode blocks, because re with blocks is four times as fast as regex with scripts.
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
_TITLE_LENGTH = 120
_TITLE_LETTERS = 10
_TITLE_SEARCHED = 5_000  # characters
_HIDDEN = re.compile(  # code, comments, link targets and pictures
    r"^(```|~~~).*?(?:^\1|\Z)|<!--.*?(?:-->|\Z)|^\[[^\]\n]+\]:[^\n]*$|!\[[^\]]*\]\([^)]*\)", re.DOTALL | re.MULTILINE
)
_FIELD = re.compile(r"(?:[-*+][ \t]+)?[*_]*\w[\w ()/-]{0,40}[*_]*:[*_]*(?:\s|$)|[ \t]+\S")  # or its next line
_NAMED_TITLE = re.compile(r"[-*_+ \t]*(?:title|subject)[*_]*:(.*\w.*)", re.IGNORECASE)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(\S.*)$|^(\S.*)\n(?:(=)=+|--+)[ \t]*$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKUP = " \t\n#*_=~`>-+"
_MIN_SHARE = 0.9  # minimum share of numbers or dates in a column of that type; the rest are errors such as "n/a"
_VALUE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Document:
    """A document from a source.

    Attributes:
        id: The document's id, unique in its corpus.
        text: The text, which contains more than white space.
        label: The class, if a label column was named; never used in training.
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
        id: The document's id. Views are determined by (seed, epoch, id), so the same id gives the same views.
        sentences: The sentences in order, none of them empty.
        paragraphs: Index of each paragraph's first sentence, in ascending order, starting with 0.
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
    character with its marks counts as a word.
    """
    return [match.span() for match in _WORD.finditer(text)]


def count_words(text: str) -> int:
    """Return the number of words found by :func:`word_spans`."""
    return len(_WORD.findall(text))


def median_words(texts: Iterable[str]) -> float:
    """Return the median number of words per text."""
    return statistics.median(map(count_words, texts))


def peek(items: Iterable[T], size: Callable[[T], int], limit: int = SAMPLE_CHARACTERS) -> tuple[list[T], Iterator[T]]:
    """Return the first items of a stream, up to a total size of ``limit``, and the whole stream.

    This lets Punkt learn from the beginning of a corpus that can only be read once.
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
    """Return an id derived from a text: 16 hexadecimal digits of its BLAKE2b hash."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def text_key(text: str) -> int:
    """Return the hash computed by :func:`content_id`, as a signed 64-bit integer."""
    return int.from_bytes(bytes.fromhex(content_id(text)), "big", signed=True)


class UntypedText(str):
    """A value from an untyped source, which may represent a number or a date."""

    __slots__ = ()


def to_name(value: object) -> str | None:
    """Return an id or a label as text; None if it is missing.

    Whole floats become integers, because a missing value turns a column of integers into floats. Text is normalised to
    NFC, because macOS writes decomposed names. In untyped sources, ``1.0`` becomes ``1`` and ``TRUE`` becomes
    ``True``.
    """
    if type(value).__name__ in ("NoneType", "NAType", "NaTType") or (isinstance(value, float) and math.isnan(value)):
        return None  # including pandas.NA and pandas.NaT
    if hasattr(value, "item") and not isinstance(value, str):  # a numpy scalar
        value = value.item()
    if isinstance(value, (float, decimal.Decimal)) and math.isfinite(value) and value == int(value):
        value = int(value)
    if not isinstance(value, (str, int, float, decimal.Decimal, uuid.UUID, date, time)):
        raise TypeError(type(value).__name__)
    text = str(value)
    if isinstance(value, UntypedText):
        number = _WHOLE_NUMBER.fullmatch(text.strip())
        text = number[1] if number else _BOOLEANS.get(text.strip().lower(), text)
    return to_nfc(text) if text.strip() else None


def unique_names(header: Sequence[str]) -> list[str]:
    """Make column names unique; the second column called ``name`` becomes ``name_2``."""
    numbers, names = {name: itertools.count(2) for name in header}, dict[str, None]()
    for name in header:
        free = (new for number in numbers[name] if (new := f"{name}_{number}") not in numbers and new not in names)
        names[next(free) if name in names else name] = None
    return list(names)


def to_nfc(text: str) -> str:
    """Return a text as valid Unicode in NFC."""
    return unicodedata.normalize("NFC", valid_unicode(text))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source, with its type."""

    name: str
    kind: Kind
    values: Sequence[object]  # None if missing
    numbers: Sequence[float | None]  # dates as seconds since 1970; None for values of other types

    def short_values(self) -> list[str]:
        """Return the values as shortened text; missing values are empty."""
        return ["" if value is None else _shorten(str(value), _VALUE_LENGTH) for value in self.values]

    def to_arrow(self) -> pyarrow.Array:
        """Return the values as an Arrow array; as text if no Arrow type fits them all."""
        import pyarrow

        try:
            return pyarrow.array(self.values)
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            return pyarrow.array([None if value is None else str(value) for value in self.values], pyarrow.string())


def collect_columns(documents: Sequence[Document]) -> list[Column]:
    """Return the metadata columns of documents, in order of first occurrence."""
    names = dict.fromkeys(name for document in documents for name in document.metadata or {})
    return [infer_column(name, [(document.metadata or {}).get(name) for document in documents]) for name in names]


def document_titles(documents: Sequence[Document], columns: Sequence[Column], name: str | None = None) -> list[str]:
    """Return a title for each document, from a column or the first line of its text."""
    titles = title_column([column.name for column in columns], name)
    values = next((column.short_values() for column in columns if column.name == titles), [""] * len(documents))
    return [document_title(value, document.text) for value, document in zip(values, documents, strict=True)]


def title_column(names: Sequence[str], name: str | None = None) -> str | None:
    """Return the title column: the named column, one from :data:`TITLES`, or None."""
    if name is None:
        return next((column for title in TITLES for column in names if column.lower() == title), None)
    if name not in names:
        raise DataError(f"title={name!r}: no such column. The columns are: {list_names(names)}.")
    return name


def searched_text(text: str, metadata: Mapping[str, Any]) -> str:
    """Return a document's title and the names of its folder and file, by which people search too, and its text."""
    names = (metadata.get(column or "") for column in (title_column([*metadata]), *PLACES))
    return "\n".join([*(str(name).translate(_SEPARATORS) for name in names if isinstance(name, str | int)), text])


def document_title(value: object, text: str) -> str:
    """Return the title of a document: its value in the title column, or a title in its text.

    That is a line such as ``Title: ...`` or ``Subject: ...`` at the beginning; otherwise the first heading, unless
    metadata come first and it is one of several sections; otherwise the first line that is not metadata. A short line,
    such as "Hello,", is joined with the next line.
    """
    title = "" if value is None else " ".join(str(value).split())
    return _shorten(title or _title_in_text(text[:_TITLE_SEARCHED]), _TITLE_LENGTH)


def _title_in_text(text: str) -> str:
    first_line, *others = lines = _HIDDEN.sub("", text).strip().split("\n")
    has_front_matter = first_line.rstrip() == "---"
    lines = others if has_front_matter else lines
    fields = list(itertools.takewhile(lambda line: not line.strip() or _FIELD.match(line), lines))
    if len(list(filter(str.strip, fields))) < 2 and not (has_front_matter or first_line.startswith(("-", "*"))):
        fields = []  # one such line, such as "Rust: a tutorial", can be a title
    if named := next(filter(None, map(_NAMED_TITLE.match, fields)), None):
        return _plain_line(named[1]).strip("\"'")
    body = "\n".join(lines[len(fields) :])
    headings = [(len(match[1] or ("#" if match[4] == "=" else "##")), match) for match in _HEADING.finditer(body)]
    top = [match for level, match in headings if level == min(level for level, _ in headings)]
    first = headings[0][1] if headings else None
    if first and (top == [first] or not (fields or _plain_line(body[: first.start()]))):
        return _plain_line(first[2] or first[3])
    title = ""
    for line in _HEADING.sub("", body).split("\n"):
        if sum(map(str.isalpha, title)) >= _TITLE_LETTERS:
            break
        title = " ".join(filter(None, (title, _plain_line(line))))
    return title or " ".join(text.split())


def _plain_line(line: str) -> str:
    """Return a line without markup."""
    return " ".join(_LINK.sub(r"\1", line).strip(_MARKUP).split())


def infer_column(name: str, values: Sequence[object]) -> Column:
    """Infer a column's type from its values."""
    values = [None if _is_missing(value) else value for value in values]
    present = [value for value in values if value is not None]
    converters: dict[Kind, Callable[[object], float | None]] = {"number": _number, "date": _seconds}
    for kind, convert in converters.items():
        numbers = [None if value is None else convert(value) for value in values]
        count = sum(number is not None for number in numbers)
        if count and count >= _MIN_SHARE * len(present):
            return Column(name, kind, values, numbers)
    classes = {str(value) for value in present}
    is_category = 1 < len(classes) <= CLASSES and len(classes) < len(present)
    return Column(name, "category" if is_category else "text", values, [None] * len(values))


def _is_missing(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, date, datetime)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):  # integers of 309 digits or more overflow
        return None
    return number if math.isfinite(number) else None


def _seconds(value: object) -> float | None:
    """Return a date or an ISO 8601 text as seconds since 1970; naive times are taken as UTC."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, date) and not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day)
        if not isinstance(moment, datetime):
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"
