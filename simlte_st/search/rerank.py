"""Rerank the first hits with an encoder or a cross-encoder that reads some of their passages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import ModelError
from simlte_st.models.names import ModelSource, RerankerSource
from simlte_st.models.vectors import unit_mean
from simlte_st.reading.document import Document
from simlte_st.search.encoder import Encoder
from simlte_st.search.hits import Match, Query, RememberedVectors, z_scores
from simlte_st.words.sentences import segment_document, sentence_runs

if TYPE_CHECKING:  # with torch
    from sentence_transformers import CrossEncoder

READ_HITS = 8
"""Number of first-stage hits to rerank for a text query. With three passages of 8 hits, the mean MRR of 24 queries from
each of eight sets is .748; with two passages of 64 hits, five times as many, it is .749."""

RERANKER = 1.0
"""Weight of the reranker's scores for a text query; first-stage scores have weight 1."""

LINKED_HITS, LINKED_WEIGHT = 64, 0.5
"""The same if the query is a document; fewer hits have not been measured."""

BEST_PASSAGES = 2
"""Number of passages to read of each hit, besides the first."""

PASSAGE_TOKENS = 125
"""Estimated maximum number of tokens in a passage."""

BEGINNING_TOKENS = 254
"""Number of tokens to read from the beginning of each hit if the query is a document."""

_REMEMBERED = 1024  # documents whose passages are cached
_END = re.compile(r"(?<=[.!?])\s+")

PassageScores = Callable[[Query, Sequence[str]], NDArray[np.float64]]
"""A fast function that scores passages for a query, to choose those to read."""


class Reranker:
    """Reranks the first hits by the scores of their passages.

    For a text query, it reads the first passage of each hit and the best two others; for query documents, it compares
    beginnings. With 150 papers of AAN as queries, recall@10 of the cited papers is 58.4% by beginnings and 49.6% by the
    passages with most of their words.

    The highest score of each hit is added to its first-stage score, both standardised over the reranked hits.

    Args:
        model: Sentence encoder or cross-encoder, or its name or folder. On a CPU that computes in bfloat16, models are
            loaded in bfloat16, which takes two thirds of the time.
        device: Torch device (default: a GPU if available, otherwise the CPU).
    """

    def __init__(self, model: RerankerSource, device: str | None = None) -> None:
        self._score = _load(model, device)
        self._passages = lru_cache(_REMEMBERED)(self._split)

    def __call__(
        self, query: Query, matches: Sequence[Match], texts: Mapping[str, str], passage_scores: PassageScores
    ) -> list[Match]:
        """Return the reranked matches, best first, followed by the remaining ones in their order."""
        if not matches:
            return []
        weight, count = LINKED_WEIGHT if query.documents else RERANKER, hits_to_read(query)
        candidates = matches[:count]
        selected = self._select(query, [texts[match.id] for match in candidates], passage_scores)
        scores = iter(self._score(query, [*chain(*selected)]).tolist())
        best = [max((next(scores), passage) for passage in passages) for passages in selected]
        totals = z_scores(np.array([match.score for match in candidates]))
        totals += weight * z_scores(np.array([score for score, _ in best]))
        reranked = []
        for match, total, (score, passage) in zip(candidates, totals.tolist(), best, strict=True):
            is_whole = len(passage.split()) == len(texts[match.id].split())
            reranked.append(replace(match, score=total, reranked=score, passage=None if is_whole else passage))
        reranked.sort(key=lambda match: (-match.score, match.id))
        return [*reranked, *(replace(match, score=reranked[-1].score) for match in matches[count:])]

    def _select(self, query: Query, texts: Sequence[str], passage_scores: PassageScores) -> list[list[str]]:
        """Return the passages to read of each text."""
        if query.documents:
            return [self._passages(text, BEGINNING_TOKENS)[:1] for text in texts]
        passages = [self._passages(text, PASSAGE_TOKENS) for text in texts]
        scores = iter(passage_scores(query, [*chain(*passages)]))
        selected = []
        for runs in passages:
            order = np.argsort([-next(scores) for _ in runs], kind="stable")[:BEST_PASSAGES]
            selected.append(list(dict.fromkeys([runs[0], *(runs[place] for place in order)])))
        return selected

    def _split(self, text: str, tokens: int) -> list[str]:
        """Split a text into runs of whole sentences.

        For speed, sentences simply end at full stops, and token counts are estimated. A paper takes 4 ms on one core;
        with Punkt and the tokenizer it would take 25 ms.
        """
        document = segment_document(Document("", text), _END.split)
        return list(sentence_runs(document, min(tokens, self._score.budget or tokens))) or [text]


def hits_to_read(query: Query) -> int:
    """Return the number of first-stage hits that a reranker reads."""
    return LINKED_HITS if query.documents else READ_HITS


def _load(model: RerankerSource, device: str | None) -> _Cosines | _PairScores:
    """Return the scores of a loaded model, or load it."""
    from sentence_transformers import CrossEncoder

    from simlte_st.models.device import reranking_dtype
    from simlte_st.models.loading import load_cross_encoder

    if isinstance(model, CrossEncoder):
        return _PairScores(model, "the given model")
    if not isinstance(model, (str, os.PathLike)):
        return _Cosines(Encoder(cast(ModelSource, model), device))
    dtype = reranking_dtype(device)
    if (cross_encoder := load_cross_encoder(model, dtype, device)) is not None:
        return _PairScores(cross_encoder, os.fspath(model))
    return _Cosines(Encoder(model, device, dtype=dtype))


class _Cosines:
    """The cosines of a sentence encoder, whose passage vectors are cached."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._vectors, self.budget = encoder, RememberedVectors(encoder.documents), encoder.budget

    def __call__(self, query: Query, passages: Sequence[str]) -> NDArray[np.float32]:
        documents = query.documents
        vector = unit_mean(self._encoder.documents(documents)) if documents else self._encoder.query(query.text)
        return self._vectors(passages) @ vector


class _PairScores:
    """The scores of a cross-encoder before its activation; for several query documents, their mean."""

    budget = None

    def __init__(self, model: CrossEncoder, name: str) -> None:
        if model.num_labels != 1:
            advice = "Name one that gives each pair of texts a single score."
            raise ModelError(f"rerank={name!r}: this cross-encoder has {model.num_labels} labels. {advice}")
        self._model = model

    def __call__(self, query: Query, passages: Sequence[str]) -> NDArray[np.float32]:
        from torch.nn import Identity

        pairs = [(text, passage) for text in query.documents or [query.text] for passage in passages]
        scores = self._model.predict(pairs, activation_fn=Identity(), show_progress_bar=False)
        means: NDArray[np.float32] = np.asarray(scores, dtype=np.float32).reshape(-1, len(passages)).mean(axis=0)
        return means
