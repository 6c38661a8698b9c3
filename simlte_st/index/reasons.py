"""Why a document was found: its sentences nearest to the question, and the words that both have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simlte_st.data.document import Document
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import segment_document
from simlte_st.index.encoder import Encoder
from simlte_st.index.queries import Question
from simlte_st.index.store import Store, is_one_of

SENTENCES = 3
"""Sentences that are given of a document."""

WORDS = 8
"""Shared words that are given."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Sentences with their cosine, and shared words with what each adds to the BM25 score, from the highest on."""

    sentences: tuple[tuple[str, float], ...]
    words: tuple[tuple[str, float], ...]


def find_reasons(
    store: Store, encoder: Encoder, segmenter: Segmenter, question: Question, texts: Mapping[str, str]
) -> dict[str, Reasons]:
    """Find reasons for documents.

    Args:
        store: The index's table.
        encoder: Its model, which encodes all sentences of the documents.
        segmenter: Cuts the documents into sentences.
        question: The question, with a vector.
        texts: Texts by id.

    Returns:
        Reasons by id.
    """
    assert question.vector is not None
    shared = _shared_words(store, question.words, texts)
    reasons = {}
    for name, text in texts.items():
        sentences = list(dict.fromkeys(segment_document(Document(name, text), segmenter).sentences))
        cosines = encoder.documents(sentences) @ question.vector
        best = np.argsort(-cosines, kind="stable")[:SENTENCES]
        reasons[name] = Reasons(tuple((sentences[i], float(cosines[i])) for i in best), shared[name])
    return reasons


def _shared_words(
    store: Store, words: Mapping[str, str], names: Iterable[str]
) -> dict[str, tuple[tuple[str, float], ...]]:
    """Weigh the words of a question by the store's own score of each: what is shown is what was searched by."""
    weights: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
    where = is_one_of("id", weights)
    for term, word in words.items():
        for name, score in store.matching([term], where, len(weights)).items():
            weights[name].append((word, score))
    return {name: _highest(pairs) for name, pairs in weights.items()}


def _highest(weights: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(weights, key=lambda item: (-item[1], item[0]))[:WORDS])
