"""Token vectors from documents, by latent semantic analysis (Deerwester et al., 1990)."""

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
from simlte_st.errors import DataError
from simlte_st.modules.base_form import texts_as_read
from simlte_st.progress import progress_bar
from simlte_st.reading.documents import DocumentSource, read_documents
from simlte_st.words.tokens import TOKENIZED_CHARACTERS, in_batches, special_ids, token_ids, vocabulary_size

POWER = 1.5
"""Power of the inverse document frequency, chosen on ten sets of documents. In static models, powers from 1 to 1.5
differ by less than half a point."""


def word_vectors(counts: csr_array, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Return a vector for each token; their sum over a document is similar for documents with related words.

    The singular vectors of the TF-IDF matrix show which tokens distinguish documents and which occur together. A
    document's coordinates in them are a sum over its tokens, if the weight of a repeated token is its mean of
    ``(1 + log n) / n`` over the documents.

    Args:
        counts: Token counts of the documents, ``[documents, V]``, float32.
        dimension: Maximum number of singular vectors; few documents have fewer useful ones (:func:`scaling`).
        seed: Random seed of the decomposition.

    Returns:
        ``[V, dimension]``, with 0 for tokens that do not occur.

    Raises:
        DataError: Fewer than two documents differ in their tokens, or no two documents share a token.
    """
    frequencies = counts.sum(axis=0)
    rank = min(dimension, counts.shape[0] - 1, int((frequencies > 0).sum()) - 1)
    if rank < 1:
        raise DataError("A latent semantic analysis needs at least two documents, and two different tokens.")
    tfidf = TfidfTransformer(sublinear_tf=True)
    decomposition = TruncatedSVD(rank, n_iter=5, random_state=seed).fit(tfidf.fit_transform(counts))
    factors = scaling(decomposition.singular_values_, counts.shape[0])
    useful = factors > 0
    if not useful.any():
        raise DataError(f"No two of the {counts.shape[0]} documents share a token: there is nothing to learn.")
    damped = counts.copy()
    damped.data = 1 + np.log(damped.data)
    damping = damped.sum(axis=0) / np.maximum(frequencies, 1)  # 0 for a token that no document has
    # Squared factors give the first directions less weight, which was better on ten sets of documents.
    vectors = (damping * tfidf.idf_**POWER)[:, None] * decomposition.components_[useful].T * factors[useful] ** 2
    return np.ascontiguousarray(vectors, dtype=np.float32)


def scaling(sizes: NDArray[np.floating[Any]], documents: int) -> NDArray[np.float64]:
    """Return the factors that scale coordinates along singular vectors.

    Dividing by the square root of the singular value keeps the first vector from dominating. A Wiener filter then
    shrinks each vector by the share of its square that a single document can cause by chance: with a few hundred
    documents, most vectors describe single documents and would hide their similarity to others.
    """
    squares = np.asarray(sizes, dtype=np.float64) ** 2
    noise = max(0.0, documents - squares[0]) / max(1, documents - 1)  # the squares add up to the number of documents
    shares = 1 - noise / np.maximum(squares, 1e-12)
    useful = (squares > 1e-8 * squares[0]) & (shares > 1e-6)  # duplicates add only noise
    return np.where(useful, np.sqrt(shares.clip(0)) / np.maximum(squares, 1e-12) ** 0.25, 0.0)


def document_token_counts(model: SentenceTransformer, documents: DocumentSource, progress: bool = False) -> csr_array:
    """Return the token counts of documents, as far as the model reads them, ``[documents, V]``, float32.

    Args:
        model: The model.
        documents: Anything that :func:`~simlte_st.data.read_documents` takes, or counts, which are returned.
        progress: Whether to show a progress bar.
    """
    if isinstance(documents, csr_array):
        return documents
    budget, reader, special = view_budget(model), read_documents(documents), special_ids(model.tokenizer)
    size = vocabulary_size(model.tokenizer)
    parts = [csr_array((0, size), dtype=np.float32)]
    with progress_bar("Counting tokens", length_hint(reader, 0) or None, show=progress) as bar:
        for texts in in_batches((document.text for document in reader), len, TOKENIZED_CHARACTERS):
            tokens = token_ids(model.tokenizer, texts_as_read(model, texts), budget)
            lengths = np.array([len(ids) for ids in tokens])
            ids = np.fromiter(itertools.chain.from_iterable(tokens), dtype=np.int64, count=int(lengths.sum()))
            parts.append(count_matrix(ids, lengths, size, special))
            bar.update(len(texts))
    return csr_array(vstack(parts, format="csr"))


def count_matrix(
    ids: NDArray[np.integer[Any]], lengths: NDArray[np.int64], size: int, without: Sequence[int]
) -> csr_array:
    """Return token counts ``[texts, V]``, float32, of texts with concatenated ``ids``, ``without`` some tokens."""
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    counts = csr_array(((~np.isin(ids, without)).astype(np.float32), ids, bounds), shape=(len(lengths), size))
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts
