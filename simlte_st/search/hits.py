"""The hits of a search, and the beginnings of texts that are shown of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found.

    Attributes:
        id: Its id.
        score: What the hits are ordered by. In the mode ``"hybrid"`` and with ``rerank=`` the sum of reciprocal ranks,
            plus 1 for a document that has words of the query which hardly any other has; else the cosine or the BM25
            score.
        cosine: Cosine of the query and the document, or the best of its passages; None in the mode ``"text"``.
        bm25: BM25 score of the document; None where it is not among those ranked by BM25.
        beginning: The first words of its text, with a mark where it goes on.
        passage: The passage nearest to the query, in an index with passages; None where the model reads the whole
            document, and in the mode ``"text"``. With ``rerank=``, the passage that was read.
        metadata: Its values of the other columns.
        sentences: With ``explain=True``, the sentences nearest to the query, and the cosine of each.
        words: With ``explain=True``, the words that it shares with the query, and what each adds to the BM25 score.
        reranked: Cosine of the query and the passage by the model of ``rerank=``; None where it has read none of the
            document.
    """

    id: str
    score: float
    cosine: float | None
    bm25: float | None
    beginning: str
    passage: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sentences: tuple[tuple[str, float], ...] = ()
    words: tuple[tuple[str, float], ...] = ()
    reranked: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON values, metadata among them."""
        moments = {name: value.isoformat() for name, value in self.metadata.items() if isinstance(value, date)}
        return {**self.values(), **moments}

    def values(self) -> dict[str, Any]:
        """Return the hit as values of Python, metadata among them."""
        return {
            "id": self.id,
            "score": self.score,
            "cosine": self.cosine,
            "bm25": self.bm25,
            "reranked": self.reranked,
            "beginning": self.beginning,
            "passage": self.passage,
            **self.metadata,
            "sentences": [{"sentence": sentence, "cosine": cosine} for sentence, cosine in self.sentences],
            "words": [{"word": word, "bm25": score} for word, score in self.words],
        }


_OWN = pa.schema(
    {"id": pa.string(), "score": pa.float64(), "cosine": pa.float64(), "bm25": pa.float64(), "reranked": pa.float64()}
    | {"beginning": pa.string(), "passage": pa.string()}
)
_REASONS = pa.schema(
    {
        "sentences": pa.list_(pa.struct({"sentence": pa.string(), "cosine": pa.float64()})),
        "words": pa.list_(pa.struct({"word": pa.string(), "bm25": pa.float64()})),
    }
)


class Hits(list[Hit]):
    """The hits of a search, from the best on.

    Args:
        hits: The hits.
        metadata: Columns of their metadata.
        threshold: The threshold that was set, a cosine; None for none.
        explain: Returns a hit with its sentences and words.
    """

    def __init__(
        self,
        hits: Iterable[Hit],
        metadata: pa.Schema,
        threshold: float | None = None,
        explain: Callable[[Hit], Hit] = lambda hit: hit,
    ) -> None:
        super().__init__(hits)
        self._explain = explain
        self._schema = pa.schema([*_OWN, *metadata, *_REASONS])
        self.threshold = threshold

    def explain(self, hit: Hit) -> Hit:
        """Return one of the hits with its nearest sentences and shared words.

        After a search with ``mode="text"`` and without ``explain=True``, there are shared words only.
        """
        return self._explain(hit)

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each hit: its attributes, and a column for each of the metadata."""
        return pa.Table.from_pylist([hit.values() for hit in self], schema=self._schema)


_LAST_WORD = re.compile(r"\s+\S{0,40}$")


def shortened(text: str, length: int) -> str:
    """Return a text, or its first words up to a length in characters, with a mark that it goes on."""
    return text if len(text) <= length else _LAST_WORD.sub("", text[: length + 1])[:length] + " …"
