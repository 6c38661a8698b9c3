"""What documents say about tokens: one vector for each, by a latent semantic analysis (Deerwester et al., 1990)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import length_hint
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sentence_transformers import SentenceTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from simlte_st.compat import view_budget
from simlte_st.data.documents import read_documents
from simlte_st.data.tokens import TOKENIZED_CHARACTERS, in_batches, special_ids, token_ids, vocabulary_size
from simlte_st.errors import DataError
from simlte_st.modules.base_form import texts_as_read
from simlte_st.progress import progress_bar

POWER = 1.5
"""Power of a token's rareness, chosen on ten sets of documents. From 1 to 1.5 all are within half a point of each other
in static models."""


def word_vectors(counts: csr_array, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Return a vector for each token, so that the sum of a document's says which others have related words.

    The singular vectors of the documents' TF-IDF express in few numbers which tokens distinguish documents, and which
    occur together. A document's coordinates in them are a sum over its tokens, if repetitions of a token count by its
    mean of ``(1 + log n) / n`` over the documents.

    Args:
        counts: The number of each token in each document, ``[documents, V]``, float32.
        dimension: Largest number of singular vectors; few documents have fewer useful ones (:func:`scaling`).
        seed: Seed of the randomized decomposition.

    Returns:
        ``[V, dimension]``, 0 for tokens that no document has.

    Raises:
        DataError: Fewer than two documents that differ in their tokens, or no token that two of them share.
    """
    times = counts.sum(axis=0)
    most = min(dimension, counts.shape[0] - 1, int((times > 0).sum()) - 1)
    if most < 1:
        raise DataError("A latent semantic analysis needs at least two documents, and two different tokens.")
    tfidf = TfidfTransformer(sublinear_tf=True)
    decomposition = TruncatedSVD(most, n_iter=5, random_state=seed).fit(tfidf.fit_transform(counts))
    factors = scaling(decomposition.singular_values_, counts.shape[0])
    kept = factors > 0
    if not kept.any():
        raise DataError(f"No two of the {counts.shape[0]} documents share a token: there is nothing to learn.")
    damped = counts.copy()
    damped.data = 1 + np.log(damped.data)
    burst = damped.sum(axis=0) / np.maximum(times, 1)  # 0 for a token that no document has
    # The factors twice, so that the first directions weigh less: better than once on ten sets.
    vectors = (burst * tfidf.idf_**POWER)[:, None] * decomposition.components_[kept].T * factors[kept] ** 2
    return np.ascontiguousarray(vectors, dtype=np.float32)


def scaling(sizes: NDArray[np.floating[Any]], documents: int) -> NDArray[np.float64]:
    """Return the factors of documents' coordinates along singular vectors.

    Dividing by the square root of a singular value keeps the first vector from dominating. Wiener's filter then shrinks
    a vector by the share of its square that a single document may cause by chance: with a few hundred documents most
    vectors describe single ones, and would hide what these have in common with others.
    """
    squares = np.asarray(sizes, dtype=np.float64) ** 2
    accident = max(0.0, documents - squares[0]) / max(1, documents - 1)  # all squares add up to the documents
    shares = 1 - accident / np.maximum(squares, 1e-12)
    kept = (squares > 1e-8 * squares[0]) & (shares > 1e-6)  # duplicates add nothing but noise
    return np.where(kept, np.sqrt(shares.clip(0)) / np.maximum(squares, 1e-12) ** 0.25, 0.0)


def token_counts(model: SentenceTransformer, documents: Any, progress: bool = False) -> csr_array:
    """Return the number of each token that a model reads of each document, ``[documents, V]``, float32.

    Args:
        model: The model.
        documents: Anything that :func:`~simlte_st.data.read_documents` takes; or their counts, which are returned.
        progress: Show a bar.
    """
    if isinstance(documents, csr_array):
        return documents
    budget, reader, special = view_budget(model), read_documents(documents), special_ids(model.tokenizer)
    size = vocabulary_size(model.tokenizer)
    parts = [csr_array((0, size), dtype=np.float32)]
    with progress_bar("Counting tokens", length_hint(reader, 0) or None, shown=progress) as bar:
        for texts in in_batches((document.text for document in reader), len, TOKENIZED_CHARACTERS):
            read = token_ids(model.tokenizer, texts_as_read(model, texts), budget)
            lengths = np.array([len(ids) for ids in read])
            ids = np.fromiter(itertools.chain.from_iterable(read), dtype=np.int64, count=int(lengths.sum()))
            parts.append(count_matrix(ids, lengths, size, special))
            bar.update(len(texts))
    return csr_array(vstack(parts, format="csr"))


def count_matrix(
    ids: NDArray[np.integer[Any]], lengths: NDArray[np.int64], size: int, without: Sequence[int]
) -> csr_array:
    """Return the number of each token but some in each text, ``[texts, V]``, float32; ``ids`` follow one another."""
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    made = csr_array(((~np.isin(ids, without)).astype(np.float32), ids, bounds), shape=(len(lengths), size))
    made.sum_duplicates()
    made.eliminate_zeros()
    return made
