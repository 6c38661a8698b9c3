"""Asks an index: texts and documents become questions, and questions get hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from simlte_st.data.document import Document
from simlte_st.data.segmenters import PunktSegmenter, Segmenter
from simlte_st.files import read_json
from simlte_st.index.finding import find_hits
from simlte_st.index.hits import Hits
from simlte_st.index.queries import Mode, Question
from simlte_st.index.reasons import Reasons
from simlte_st.index.seeds import make_questions, seed_vectors
from simlte_st.index.sentence_vectors import SentenceVectors
from simlte_st.index.settings import PUNKT_FILE
from simlte_st.index.store import Store
from simlte_st.index.words import WordCounts

if TYPE_CHECKING:
    from simlte_st.index.encoder import Encoder

TOP = 10
"""Hits that are given where neither a number nor a threshold is."""


class Searcher:
    """Asks an index, with what it had learned of its documents when it was first asked."""

    def __init__(self, store: Store, encoder: Callable[[], Encoder], parts: bool) -> None:
        self._store, self._encoder, self._parts = store, encoder, parts

    @cached_property
    def _segmenter(self) -> Segmenter:
        path = self._store.folder / PUNKT_FILE
        return PunktSegmenter.from_dict(read_json(path)) if path.exists() else PunktSegmenter()

    @cached_property
    def _words(self) -> WordCounts:
        return WordCounts.read(self._store.folder)

    @cached_property
    def _sentences(self) -> SentenceVectors:
        return SentenceVectors(self._store.folder, lambda sentences: self._encoder().documents(sentences))

    def ask_text(self, text: str, with_vector: bool) -> Question:
        """Make a question of a text."""
        return Question(self._words.of_question(text), self._encoder().query(text) if with_vector else None)

    def ask_documents(self, groups: Sequence[Sequence[Document]], with_vectors: bool) -> list[Question]:
        """Make a question of each group of documents."""
        seeds = [seed for group in groups for seed in group]
        cut = self._segmenter if self._parts else None
        vectors = seed_vectors(self._store, self._encoder, cut, seeds) if with_vectors else None
        return make_questions(self._store, self._words, groups, vectors)

    def find(
        self,
        questions: Sequence[Question],
        top: int | None,
        threshold: float | None,
        where: str | None,
        mode: Mode,
        why: bool = False,
    ) -> list[Hits]:
        """Find the hits of each question; see :func:`~simlte_st.index.finding.find_hits`."""
        reasons = partial(Reasons, self._store, self._sentences, lambda: self._segmenter)
        top = TOP if top is None and threshold is None else top
        return find_hits(self._store, reasons, questions, mode, top, threshold, where, why)
