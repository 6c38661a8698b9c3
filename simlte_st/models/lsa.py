"""Latent semantic analysis of the user's documents, appended to an encoder or folded into a static model."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.arguments import Count, Seed, check_arguments
from simlte_st.errors import DataError
from simlte_st.files import atomic_path, check_apart, check_free
from simlte_st.models.limits import texts_as_read
from simlte_st.models.names import shown_base, warn_of_second_lsa
from simlte_st.models.samples import check_vectors
from simlte_st.progress import progress_bar
from simlte_st.prompts import document_prompt
from simlte_st.reading.document import DocumentSource
from simlte_st.reading.documents import ReadReport, read_documents
from simlte_st.words.tokens import TOKENIZED_CHARACTERS, in_batches, special_ids, token_ids, vocabulary_size

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sentence_transformers import SentenceTransformer

DIMENSION = 256
"""Default number of dimensions."""

SAMPLE = 2000
"""Approximate number of documents used to estimate the norms of a static model's two parts."""

POWER = 1.5
"""Exponent of the inverse document frequency, chosen on ten document sets. In static models, scores for exponents from
1 to 1.5 differ by less than half a point."""


@dataclass(frozen=True)
class Appended:
    """Result of :func:`append_lsa`.

    Attributes:
        output: Folder of the new model.
        read: Report on the documents read.
        dimension: Number of dimensions of the analysis; fewer than requested if there are few documents.
        embedding_dimension: Number of dimensions of the embeddings.
    """

    output: Path
    read: ReadReport
    dimension: int
    embedding_dimension: int


@check_arguments
def append_lsa(
    base: str | os.PathLike[str],
    documents: DocumentSource,
    output: str | os.PathLike[str],
    *,
    dimension: Count = DIMENSION,
    seed: Seed = 0,
    device: str | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Appended:
    """Add a latent semantic analysis of documents to a model.

    The analysis gives each token a vector. For an encoder, whose weights do not change, the mean of these vectors is
    appended to the embedding (:class:`~simlte_st.modules.TokenTable`). For a static model, they are folded into the
    token vectors (:func:`fold`), and the folder needs no module of this package.

    Args:
        base: The model; see :func:`~simlte_st.models.names.find_model`. In an encoder, the new analysis replaces an
            earlier one; in a static model, both are kept.
        documents: The documents to analyse: anything that :func:`~simlte_st.data.read_documents` accepts.
        output: Folder of the new model.
        dimension: Number of dimensions; fewer if there are few documents.
        seed: Random seed of the analysis.
        device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available).
        overwrite: Overwrite an existing model.
        progress: Show progress bars.

    Returns:
        The folder, the report on the documents, and the numbers of dimensions.

    Raises:
        ModelError: The base cannot be loaded.
        DataError: The documents cannot be read, or fewer than two of them have different tokens.
        ConfigurationError: An argument is out of range, or the output exists or contains the documents.

    Example:
        ::

            append_lsa("simlte-longformer", "my_documents", "my-model")
            vectors = SentenceTransformer("my-model").encode(["A long document ...", "Another one ..."])
    """
    target, name = Path(output), os.fspath(base)
    check_apart(documents, target)
    check_free(target, overwrite)
    reader = read_documents(documents)
    warn_of_second_lsa(name)

    from simlte_st.models import cards, loading, static

    model = loading.load_model(base, dtype="auto", device=device).model  # keep the stored dtype when saving
    dimensions = end_with_lsa([model], reader, dimension, seed, progress)
    size = int(model.get_embedding_dimension() or 0)
    plain = static.is_plain(model)
    method = "folded into its token vectors" if plain else "appended to its embeddings"
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        check_vectors(loading.load_model(path, device=device).model, name)  # on a CPU, in float32
        if plain:
            static.write_for_model2vec(path)
        summary = f"`{shown_base(name)}` with a latent semantic analysis of documents {method}, by simlte_st."
        about = (
            f"## Latent semantic analysis\n\n- Documents: {reader.report.documents:,}\n"
            f"- Dimensions: {dimensions}, {method}; the embeddings have {size}\n- Seed: {seed}\n"
        )
        cards.write_model_card(path, base=name, summary=summary, about=about)
    return Appended(target, reader.report, dimensions, size)


def end_with_lsa(
    models: Sequence[SentenceTransformer], documents: DocumentSource, dimension: int = DIMENSION, seed: int = 0,
    progress: bool = False,
) -> int:  # fmt: skip
    """Add the same latent semantic analysis to each model, in place; return its number of dimensions.

    The analysis is appended to encoders, replacing an earlier one, and folded into static models (:func:`fold`). If a
    model has ``truncate_dim``, its embeddings are truncated before the analysis is added.
    """
    import torch

    from simlte_st.models.static import is_plain
    from simlte_st.modules import TokenTable

    for model in models:
        if isinstance(model[-1], TokenTable):
            del model[-1]
    size = int(models[0].get_embedding_dimension() or 0)
    for model in models:
        model.truncate_dim = None
    counts = document_token_counts(models[0], documents, progress)
    words = word_vectors(counts, dimension, seed)
    for model in models:
        if is_plain(model):
            fold(model, words, counts, size)
        else:
            model.append(TokenTable.of(torch.from_numpy(words), size).to(model.device))
    return int(words.shape[1])


def fold(model: SentenceTransformer, words: NDArray[np.float32], counts: csr_array, size: int) -> None:
    """Fold a latent semantic analysis into the token vectors of a static model, without adding dimensions.

    First, the analysis is appended to each token vector. As in an encoder, it has half of the weight in the median
    document, or less if documents are short. The vectors are then rotated to their principal directions in the
    documents and truncated to their original size. On ten document sets, this did not lower scores, and a model that is
    trained again does not grow.

    Args:
        model: A plain model (:func:`~simlte_st.models.static.is_plain`); modified in place.
        words: The analysis (:func:`word_vectors`), ``[V, k]``.
        counts: Token counts of the documents, ``[documents, V]``.
        size: Number of leading dimensions of the token vectors to keep.
    """
    import torch
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    from simlte_st.models.static import token_embedding
    from simlte_st.modules.token_table import FULL, WEIGHT

    table = token_embedding(model).weight.detach().float().cpu().numpy()[:, :size]
    frequencies = counts.sum(axis=0)
    sample = counts[:: -(-counts.shape[0] // SAMPLE)]
    share = WEIGHT * float(np.median(np.minimum(1, sample.sum(axis=1) / FULL)))
    table_norm, words_norm = (np.median(np.linalg.norm(sample @ part, axis=1)) for part in (table, words))
    scale = np.float32(np.sqrt(share / (1 - share)) * table_norm / max(words_norm, 1e-12))
    extended = np.concatenate([table, scale * words], axis=1)
    present = extended[frequencies > 0]
    directions = np.linalg.eigh((present.T * frequencies[frequencies > 0]) @ present)[1][:, ::-1][:, : table.shape[1]]
    rows = torch.from_numpy(np.ascontiguousarray(extended @ directions, dtype=np.float32))
    model[0] = StaticEmbedding(model.tokenizer, embedding_weights=rows).to(model.device)
    if len(model) == 1:
        model.append(Normalize())


def append_vectors(
    model: SentenceTransformer, texts: Sequence[str], vectors: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Apply a model's last module to vectors that were encoded without it."""
    import torch
    from sentence_transformers.util import batch_to_device

    parts, prompt = [], document_prompt(model)
    for start in range(0, len(texts), 32):
        rows = slice(start, start + 32)
        features = model.preprocess(list(texts[rows]), prompt=prompt)
        features = batch_to_device({**features, "sentence_embedding": torch.from_numpy(vectors[rows])}, model.device)
        parts.append(model[-1](features)["sentence_embedding"].cpu().numpy())
    return np.concatenate(parts)


# The analysis (Deerwester et al., 1990).


def word_vectors(counts: csr_array, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Return a vector for each token, such that documents with related words have similar sums of token vectors.

    The singular vectors of the TF-IDF matrix show which tokens distinguish documents and which occur together. A
    document's coordinates along these vectors are a sum over its tokens if the weight of a repeated token is replaced
    with the mean of ``(1 + log n) / n`` over the documents.

    Args:
        counts: Token counts of the documents, ``[documents, V]``, float32.
        dimension: Maximum number of singular vectors; with few documents, fewer are useful (:func:`scaling`).
        seed: Random seed of the decomposition.

    Returns:
        ``[V, dimension]``, with zeros for tokens that do not occur.

    Raises:
        DataError: Fewer than two documents have different tokens, or no two documents share a token.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    frequencies = counts.sum(axis=0)
    rank = min(dimension, counts.shape[0] - 1, int((frequencies > 0).sum()) - 1)
    if rank < 1:
        raise DataError("A latent semantic analysis needs at least two documents and two different tokens.")
    tfidf = TfidfTransformer(sublinear_tf=True)
    decomposition = TruncatedSVD(rank, n_iter=5, random_state=seed).fit(tfidf.fit_transform(counts))
    factors = scaling(decomposition.singular_values_, counts.shape[0])
    useful = factors > 0
    if not useful.any():
        raise DataError(f"No two of the {counts.shape[0]} documents share a token, so there is nothing to learn.")
    damped = counts.copy()
    damped.data = 1 + np.log(damped.data)
    damping = damped.sum(axis=0) / np.maximum(frequencies, 1)  # 0 for tokens that occur in no document
    # Squaring the factors gives the first directions less weight, which was better on ten document sets.
    vectors = (damping * tfidf.idf_**POWER)[:, None] * decomposition.components_[useful].T * factors[useful] ** 2
    return np.ascontiguousarray(vectors, dtype=np.float32)


def scaling(sizes: NDArray[np.floating[Any]], documents: int) -> NDArray[np.float64]:
    """Return the factors that scale coordinates along singular vectors.

    Dividing by the square root of the singular value keeps the first vector from dominating. A Wiener filter then
    shrinks each coordinate by the share of the squared singular value that a single document can cause by chance. With
    a few hundred documents, most singular vectors describe single documents and would hide how similar these are to
    others.
    """
    squares = np.asarray(sizes, dtype=np.float64) ** 2
    noise = max(0.0, documents - squares[0]) / max(1, documents - 1)  # the squares add up to the number of documents
    shares = 1 - noise / np.maximum(squares, 1e-12)
    useful = (squares > 1e-8 * squares[0]) & (shares > 1e-6)  # duplicates add only noise
    return np.where(useful, np.sqrt(shares.clip(0)) / np.maximum(squares, 1e-12) ** 0.25, 0.0)


def document_token_counts(model: SentenceTransformer, documents: DocumentSource, progress: bool = False) -> csr_array:
    """Count the document tokens that the model reads, and return the counts ``[documents, V]``, float32.

    Args:
        model: The model.
        documents: Anything that :func:`~simlte_st.data.read_documents` accepts, or token counts, which are returned
            unchanged.
        progress: Whether to show a progress bar.
    """
    from scipy.sparse import csr_array, vstack

    from simlte_st.compat import view_budget

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
    """Return the token counts of texts (float32, ``[texts, V]``) from their concatenated ids, ignoring ``without``."""
    from scipy.sparse import csr_array

    bounds = np.concatenate([[0], np.cumsum(lengths)])
    counts = csr_array(((~np.isin(ids, without)).astype(np.float32), ids, bounds), shape=(len(lengths), size))
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts
