"""An encoder that reads a passage of each of the first hits, and ranks them anew."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.document import Document
from simlte_st.data.sentences import segment_document
from simlte_st.errors import ModelError
from simlte_st.models.vectors import unit_rows
from simlte_st.search.config import READ_HITS
from simlte_st.search.encoder import Encoder, Model, sentence_runs
from simlte_st.search.kept import KeptVectors
from simlte_st.search.query import Match, Query, hybrid_scores
from simlte_st.search.store import text_hash

PASSAGE_TOKENS = 125
"""Tokens of a passage at most, by an estimate."""

_REMEMBERED = 1024  # documents whose passages are kept in memory
_END = re.compile(r"(?<=[.!?])\s+")


class Reranker:
    """Reads the passage of each of the first hits that has most of the query's words, and ranks the hits anew.

    The ranks by its cosines take the place of those by the index's vectors, beside BM25. What it has read is kept in
    the index.

    Args:
        folder: The index.
        model: The encoder.
        device: Where it computes.
    """

    def __init__(self, folder: Path, model: Model, device: str | None = None) -> None:
        self._encoder = Encoder(model, device)
        encoder = self._encoder.model.transformers_model
        classes = () if encoder is None else encoder.config.architectures or ()
        if any(name.endswith("ForSequenceClassification") for name in classes):
            raise ModelError(
                f"rerank={self._encoder.name or 'the model given'!r}: it is a cross-encoder, which reads query and "
                "passage together, and nothing that it has read can be kept. Name a sentence encoder."
            )
        identity = text_hash(json.dumps(self._encoder.identity(), sort_keys=True))
        self._vectors = KeptVectors(folder, self._encoder.documents, identity)
        self._passages = lru_cache(_REMEMBERED)(self._cut)

    def __call__(
        self, query: Query, matches: Sequence[Match], texts: Mapping[str, str], rareness: Callable[[str], float]
    ) -> list[Match]:
        """Return matches by their new scores, from the best on; those that were not read keep their order."""
        first = matches[:READ_HITS]
        words = {term if word.startswith(term) else word: rareness(term) for term, word in query.words.items()}
        passages = [self._best_by_words(texts[one.id], words) for one in first]
        read = self._vectors.of([(texts[one.id], [passage]) for one, passage in zip(first, passages, strict=True)])
        near: dict[str, float] = {}
        if first:
            cosines = np.concatenate(read).astype(np.float32) @ self._vector(query)
            near = dict(zip((one.id for one in first), cosines.tolist(), strict=True))
        by_text = {one.id: one.bm25 for one in matches if one.bm25 is not None}
        ranked = [*sorted(near, key=lambda name: (-near[name], name)), *(one.id for one in matches[READ_HITS:])]
        scores = hybrid_scores(ranked, dict(sorted(by_text.items(), key=lambda item: (-item[1], item[0]))))
        shown = {
            one.id: passage
            for one, passage in zip(first, passages, strict=True)
            if len(self._passages(texts[one.id])) > 1
        }
        found = [
            replace(one, score=scores[one.id], reranked=near.get(one.id), passage=shown.get(one.id)) for one in matches
        ]
        return sorted(found, key=lambda one: (-one.score, one.id))

    def _vector(self, query: Query) -> NDArray[np.float32]:
        if not query.documents:
            return self._encoder.query(query.text)
        return unit_rows(self._encoder.documents(query.documents).mean(axis=0)[None]).astype(np.float32)[0]

    def _best_by_words(self, text: str, words: Mapping[str, float]) -> str:
        """Return the passage with most of the query's words, rare ones counting more; the first of several."""

        def score(passage: str) -> float:
            lower = passage.lower()
            return sum(weight for word, weight in words.items() if word in lower)

        return max(self._passages(text), key=score)

    def _cut(self, text: str) -> list[str]:
        """Cut a text into runs of whole sentences.

        Sentences end at full stops, and tokens are estimated: Punkt and the tokenizer would take longer than reading.
        """
        tokens = min(PASSAGE_TOKENS, self._encoder.budget or PASSAGE_TOKENS)
        return list(sentence_runs(segment_document(Document("", text), _END.split), tokens)) or [text]
