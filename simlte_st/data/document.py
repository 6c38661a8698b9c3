"""The first two types a text has on its way: a document as it was read, and the document cut into sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from simlte_st.data.words import count_words


@dataclass(frozen=True, slots=True)
class Document:
    """One document as it was read.

    Attributes:
        id: Unique name of the document in its corpus.
        text: The text, with at least one character that is not white space.
        label: Its class, where the source has one and it was asked for; training never looks at it.
        split: The part of a benchmark it belongs to (``"train"``, ``"validation"``, ``"test"``), where the source says.
        metadata: The source's other columns, as it gave them, where they were asked for.
    """

    id: str
    text: str
    label: str | None = None
    split: str | None = None
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)  # a mapping has no hash


@dataclass(frozen=True, slots=True)
class SegmentedDocument:
    """A document cut into sentences: what every view is drawn from.

    Attributes:
        id: The document's id. Views are drawn from (seed, epoch, id), so the same id gives the same views.
        sentences: The sentences in order, none of them empty.
        paragraphs: Index of the first sentence of each paragraph, ascending, beginning with 0.
        tokens: Number of model tokens of each sentence, special tokens not counted; estimated where no tokenizer
            was given.
    """

    id: str
    sentences: tuple[str, ...]
    paragraphs: tuple[int, ...]
    tokens: tuple[int, ...]

    def words(self, sentence: int) -> int:
        """Count the words of a sentence."""
        return count_words(self.sentences[sentence])


class Outline(Protocol):
    """What a view may know of a document: numbers only. It has as many sentences as numbers in ``tokens``."""

    @property
    def id(self) -> str:
        """The document's id."""
        ...

    @property
    def paragraphs(self) -> Sequence[int]:
        """Index of the first sentence of each paragraph, ascending, beginning with 0."""
        ...

    @property
    def tokens(self) -> Sequence[int]:
        """Number of tokens of each sentence, special tokens not counted."""
        ...

    def words(self, sentence: int) -> int:
        """Count the words of a sentence, as :func:`~simlte_st.data.words.count_words` does."""
        ...


def content_id(text: str) -> str:
    """Name a document by its text: 16 hexadecimal digits of its BLAKE2b hash. Used where the source gives no id."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def text_key(text: str) -> int:
    """Return the same hash as a signed 64-bit number: equal for copies, the same everywhere."""
    return int.from_bytes(bytes.fromhex(content_id(text)), "big", signed=True)
