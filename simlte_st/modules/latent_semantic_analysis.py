"""Latent semantic analysis of a user's documents, as the second part of an embedding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import length_hint
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sentence_transformers import SentenceTransformer
from sentence_transformers.util.tensor import repad_flattened_features
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from torch import Tensor
from torch.nn import functional
from typing_extensions import Self

from simlte_st.arguments import Count, Seed, Share, checked
from simlte_st.compat import mask_without_prompt, view_budget
from simlte_st.data.documents import read_documents
from simlte_st.data.tokens import TOKENIZED_CHARACTERS, in_batches, special_ids, token_ids, vocabulary_size
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.modules.base import SavedModule
from simlte_st.modules.base_form import texts_as_read
from simlte_st.progress import progress_bar

DIMENSION = 256
WEIGHT = 0.4
FULL = 512
"""Chosen on 1,700 Wikipedia articles, sentence similarity, and tweets as queries for articles, all absent from
``benchmarks/models.py``: more dimensions are better, up to 256; a larger weight separates kinds of articles better, and
finds articles that mention each other worse; if it does not grow with the length, short texts get worse. That was
before :func:`scaling` shrank the dimensions."""


class LatentSemanticAnalysis(SavedModule):
    """Append a latent semantic analysis of the text's words, fitted on documents, to each embedding.

    An encoder that was trained elsewhere does not know which words distinguish these documents; their TF-IDF vectors
    do, and their singular vectors (Deerwester et al., 1990) express it in few dimensions, without labels and in
    seconds. The cosine of two long documents becomes a mixture: ``1 - weight`` of the encoder's cosine and ``weight``
    of that of the words. For a text of fewer than ``full`` tokens the weight is proportionally smaller. Words are the
    tokens that the encoder reads, without special tokens and prompt.

    It separates style, period and kind, sometimes much better than the encoder; on topics it adds hardly anything
    (``benchmarks/results/models.md``).

    Made by :meth:`fit` and put at the end of a model::

        model.append(LatentSemanticAnalysis.fit(model, documents))

    Args:
        embedding_dimension: d, of the incoming sentence embedding; the first d numbers of a longer one are used.
        vocabulary_size: V, of the tokenizer.
        dimension: k, singular vectors.
        weight: Share of the words in the cosine of long documents, 0 to 1.
        full: Number of tokens from which on a document is long.

    Features:
        ``sentence_embedding`` ``[B, d]``, with ``input_ids`` and ``attention_mask`` ``[B, S]`` or flattened
        (``cu_seq_lens_q``; ``offsets`` ``[B]`` after a ``StaticEmbedding``), becomes ``[B, d + k]``, of its dtype: both
        parts have length 1 before they are weighted. The second is 0 for a text without a token of the documents.

    Raises:
        ConfigurationError: A size that is not positive, or a weight outside 0 to 1.
    """

    config_keys: list[str] = ["embedding_dimension", "vocabulary_size", "dimension", "weight", "full"]  # noqa: RUF012  # as in the base class
    idf: Tensor
    components: Tensor

    @checked
    def __init__(
        self,
        embedding_dimension: Count,
        vocabulary_size: Count,
        dimension: Count = DIMENSION,
        weight: Share = WEIGHT,
        full: Count = FULL,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.embedding_dimension = embedding_dimension
        self.vocabulary_size = vocabulary_size
        self.dimension = dimension
        self.weight = weight
        self.full = full
        self.register_buffer("idf", torch.zeros(vocabulary_size))
        self.register_buffer("components", torch.zeros(vocabulary_size, dimension))

    @classmethod
    @checked
    def fit(
        cls,
        model: SentenceTransformer,
        documents: Any,
        *,
        dimension: Count = DIMENSION,
        weight: Share = WEIGHT,
        full: Count = FULL,
        embedding_dimension: Count | None = None,
        seed: Seed = 0,
        progress: bool = False,
    ) -> Self:
        """Return an analysis of documents: which tokens distinguish them, and which occur together.

        Args:
            model: The model that it will be appended to; its tokenizer and length are used.
            documents: Anything that :func:`~simlte_st.data.read_documents` takes; two or more. Or the number of each
                token in each document, ``[documents, V]``, float32.
            dimension: Largest number of singular vectors; few documents have fewer useful ones (:func:`scaling`).
            weight: See the class.
            full: See the class.
            embedding_dimension: Numbers of the model's embedding to keep, the first ones; None for all.
            seed: Seed of the randomized decomposition.
            progress: Show a bar.

        Raises:
            ConfigurationError: A setting is out of its range, or the model has an analysis already or a
                ``truncate_dim``.
            DataError: Fewer than two documents that differ in their tokens, or no token that two of them share.
        """
        if any(isinstance(module, LatentSemanticAnalysis) for module in model):
            raise ConfigurationError("The model has a latent semantic analysis already: remove it by del model[-1].")
        if model.truncate_dim is not None:
            raise ConfigurationError("Set model.truncate_dim to None: it would cut the analysis off.")
        size = vocabulary_size(model.tokenizer)
        own = int(model.get_embedding_dimension() or 0)
        fitted = cls(own if embedding_dimension is None else embedding_dimension, size, dimension, weight, full)
        counts = token_counts(model, documents, progress)
        present = np.diff(counts.tocsc().indptr) > 0
        most = min(dimension, counts.shape[0] - 1, int(present.sum()) - 1)
        if most < 1:
            raise DataError("A latent semantic analysis needs at least two documents, and two different tokens.")
        tfidf = TfidfTransformer(sublinear_tf=True)
        decomposition = TruncatedSVD(most, n_iter=5, random_state=seed).fit(tfidf.fit_transform(counts))
        factors = scaling(decomposition.singular_values_, counts.shape[0])
        kept = factors > 0
        if not kept.any():
            raise DataError(f"No two of the {counts.shape[0]} documents share a token: there is nothing to learn.")
        scaled = decomposition.components_[kept].T * factors[kept]
        fitted.dimension = int(kept.sum())
        fitted.components = torch.from_numpy(np.where(present[:, None], scaled, 0.0)).float().contiguous()
        fitted.idf = torch.from_numpy(np.where(present, tfidf.idf_, 0.0)).float()
        return fitted

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Extend ``sentence_embedding``."""
        embedding: Tensor = features["sentence_embedding"][:, : self.embedding_dimension]
        if "offsets" in features:
            latent, lengths = self._latent_of_flat(features["input_ids"], features["offsets"])
        else:
            counts = self._counts(features) * (self.idf > 0)  # tokens of the documents: no special ones, no padding
            weights = torch.where(counts > 0, 1 + counts.clamp(min=1).log(), 0) * self.idf.float()
            latent, lengths = weights @ self.components.float(), counts.sum(1, keepdim=True)
        latent = functional.normalize(latent, dim=-1)
        share = self.weight * (lengths / self.full).clamp(max=1)
        parts = functional.normalize(embedding, dim=-1) * (1 - share).sqrt(), latent * share.sqrt()
        features["sentence_embedding"] = torch.cat([part.to(embedding.dtype) for part in parts], dim=-1)
        return features

    def _latent_of_flat(self, ids: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sums of the tokens' components ``[B, k]`` and the tokens of the documents ``[B, 1]``, float32.

        A row of counts for each text, as for padded tokens, would be some hundred times as large as these texts.
        """
        texts = torch.arange(len(offsets), device=ids.device)
        row = texts.repeat_interleave(torch.diff(offsets, append=offsets.new_tensor([len(ids)])))
        kept = self.idf[ids] > 0
        pairs, counts = (row * self.vocabulary_size + ids)[kept].unique(return_counts=True)
        row, ids, times = pairs // self.vocabulary_size, pairs % self.vocabulary_size, counts.float()
        weights, starts = (1 + times.log()) * self.idf[ids].float(), torch.searchsorted(row, texts)
        sums = functional.embedding_bag(ids, self.components.float(), starts, per_sample_weights=weights, mode="sum")
        return sums, torch.zeros(len(offsets), device=ids.device).index_add_(0, row, times)[:, None]

    def _counts(self, features: dict[str, Any]) -> Tensor:
        """Return the number of each token in each text, ``[B, V]``, float32."""
        padded = repad_flattened_features(dict(features)) if "cu_seq_lens_q" in features else features
        ids: Tensor = padded["input_ids"]
        mask = padded.get("attention_mask")
        mask = torch.ones_like(ids) if mask is None else mask[:, : ids.shape[1]]
        if "prompt_length" in features:
            mask = mask_without_prompt(mask, features["prompt_length"])
        counts = torch.zeros(ids.shape[0], self.vocabulary_size, device=ids.device)
        return counts.scatter_add_(1, ids, mask.to(counts.dtype))

    def get_embedding_dimension(self) -> int:
        """Return d + k."""
        return self.embedding_dimension + self.dimension


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
        documents: The documents, as for :meth:`LatentSemanticAnalysis.fit`; or their counts, which are returned.
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
