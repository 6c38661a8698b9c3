"""Encoders that need no training, behind one interface: texts in, vectors or scores out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sklearn.preprocessing import normalize

from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.lexical import Bm25Index, fit_tfidf
from simlte_st.evaluation.probe import Rows
from simlte_st.extras import require

Task = Literal["classification", "query", "document"]
"""What a text is encoded for: some models are told by a prompt."""


class TextEncoder(ABC):
    """Gives vectors to texts, and scores to pairs of them.

    Args:
        name: What tables call it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def encode(self, texts: Sequence[str], task: Task = "classification") -> Rows:
        """Encode texts.

        Args:
            texts: The texts.
            task: What for.

        Returns:
            One row a text: a float32 array, or a SciPy sparse matrix for a bag of words.

        Raises:
            ConfigurationError: The method ranks texts and has no vectors.
        """

    def scores(self, queries: Sequence[str], documents: Sequence[str]) -> NDArray[np.float64]:
        """Score every document for every query, by the cosine where nothing else is said.

        Returns:
            Shape ``[len(queries), len(documents)]``; more is better.
        """
        first = normalize(self.encode(queries, "query"))
        second = normalize(self.encode(documents, "document"))
        product = first @ second.T
        return np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)


class TfidfEncoder(TextEncoder):
    """TF-IDF with sublinear term frequency, as everywhere in :mod:`simlte_st.evaluation.lexical`.

    Args:
        corpus: Texts, without labels, that vocabulary and idf are learned from.

    Raises:
        DataError: They hold no words.
    """

    def __init__(self, corpus: Sequence[str]) -> None:
        super().__init__("TF-IDF")
        self._vectorizer = fit_tfidf(corpus)

    def encode(self, texts: Sequence[str], task: Task = "classification") -> Rows:
        """Encode as a sparse matrix with rows of length 1. See :meth:`TextEncoder.encode`."""
        return self._vectorizer.transform(texts)


class Bm25Encoder(TextEncoder):
    """BM25: ranks documents for queries, by bm25s with its default settings, no stop words and no stemming.

    Raises:
        MissingExtraError: bm25s is not installed.
    """

    def __init__(self) -> None:
        super().__init__("BM25")
        require("bm25s", "bm25", "BM25")

    def encode(self, texts: Sequence[str], task: Task = "classification") -> Rows:
        """Raise :class:`ConfigurationError`: there are no vectors."""
        raise ConfigurationError("BM25 has no vectors of texts: use its scores(), for retrieval; tfidf has both.")

    def scores(self, queries: Sequence[str], documents: Sequence[str]) -> NDArray[np.float64]:
        """Score every document for every query. See :meth:`TextEncoder.scores`.

        Raises:
            DataError: No document holds a word.
        """
        return np.asarray(Bm25Index(documents).scores(queries), dtype=np.float64)


class ModelEncoder(TextEncoder):
    """A SentenceTransformer as it is.

    Args:
        name: What tables call it.
        model: The model, with its ``max_seq_length`` and its prompts as they shall be.
        prompts: The prompt of each task that has one. That of ``"classification"`` becomes the model's default, so that
            evaluators, which know of no tasks, use it too.
        batch_size: Texts encoded at once.
    """

    def __init__(
        self, name: str, model: SentenceTransformer, prompts: Mapping[Task, str] | None = None, batch_size: int = 32
    ) -> None:
        super().__init__(name)
        self.model = model
        self.prompts = dict(prompts or {})
        self.batch_size = batch_size
        default: Task = "classification"
        if default in self.prompts:
            model.prompts = {**model.prompts, default: self.prompts[default]}
            model.default_prompt_name = default

    def encode(self, texts: Sequence[str], task: Task = "classification") -> Rows:
        """Encode as a float32 array, with the task's prompt. See :meth:`TextEncoder.encode`."""
        vectors = self.model.encode(
            list(texts),
            prompt=self.prompts.get(task, ""),
            batch_size=self.batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, dtype=np.float32)
