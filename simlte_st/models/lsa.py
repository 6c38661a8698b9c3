"""Latent semantic analysis of the user's documents, appended to an encoder or folded into a static model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simlte_st.arguments import Count, Seed, check_arguments
from simlte_st.files import atomic_path, check_apart, check_free
from simlte_st.models.names import shown_base, warn_of_second_lsa
from simlte_st.prompts import document_prompt
from simlte_st.reading.documents import DocumentSource, ReadReport, read_documents

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sentence_transformers import SentenceTransformer


DIMENSION = 256
"""Default number of dimensions."""

SAMPLE = 2000
"""Approximate number of documents for estimating the norms of a static model's two parts."""


@dataclass(frozen=True)
class Appended:
    """Result of :func:`append_lsa`.

    Attributes:
        output: Folder of the new model.
        read: Report of the reader.
        dimension: Dimensions of the analysis; fewer than requested if there are few documents.
        embedding_dimension: Dimensions of the embeddings.
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
        base: The model; see :func:`~simlte_st.models.names.find_model`. An encoder's earlier analysis is replaced; a
            static model keeps it beside the new one.
        documents: The documents to analyse: anything that :func:`~simlte_st.data.read_documents` takes.
        output: Folder of the new model.
        dimension: Number of dimensions; fewer if there are few documents.
        seed: Random seed of the analysis.
        device: Where to compute: cpu, cuda, cuda:1 or mps (default: a GPU, if there is one).
        overwrite: Overwrite an existing model.
        progress: Show progress bars.

    Returns:
        The folder, the report of the reader, and the numbers of dimensions.

    Raises:
        ModelError: The base cannot be loaded.
        DataError: The documents cannot be read, or fewer than two of them differ in their tokens.
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

    from simlte_st.models.cards import write_model_card
    from simlte_st.models.loading import load_model
    from simlte_st.models.static import is_plain, write_for_model2vec

    model = load_model(base, dtype="auto", device=device).model  # keep the stored dtype when saving
    dimensions = end_with_lsa([model], reader, dimension, seed, progress)
    size = int(model.get_embedding_dimension() or 0)
    plain = is_plain(model)
    method = "folded into its token vectors" if plain else "appended to its embeddings"
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        if plain:
            write_for_model2vec(path)
        write_model_card(
            path,
            name=target.name,
            base=name,
            summary=f"`{shown_base(name)}` with a latent semantic analysis of documents {method}, by simlte_st.",
            about="## Latent semantic analysis\n\n"
            f"- Documents: {reader.report.documents:,}\n"
            f"- Dimensions: {dimensions}, {method}; the embeddings have {size}\n"
            f"- Seed: {seed}\n",
        )
    return Appended(target, reader.report, dimensions, size)


def end_with_lsa(
    models: Sequence[SentenceTransformer], documents: DocumentSource, dimension: int = DIMENSION, seed: int = 0,
    progress: bool = False,
) -> int:  # fmt: skip
    """Add one latent semantic analysis of documents to models, in place; return its number of dimensions.

    It is appended to an encoder, replacing an earlier analysis, or folded into a static model (:func:`fold`).
    Embeddings of a model with ``truncate_dim`` stay truncated before the analysis.
    """
    import torch

    from simlte_st.models.static import is_plain
    from simlte_st.models.word_vectors import document_token_counts, word_vectors
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

    The analysis first becomes a second part of each token vector. As in an encoder, it has half of the weight in the
    median document, or less if documents are short. The vectors are then rotated to their principal directions in the
    documents and cut to their original size. On ten sets of documents this lost nothing, and a model that is trained
    again does not grow.

    Args:
        model: A plain model (:func:`~simlte_st.models.static.is_plain`), which is changed.
        words: The analysis (:func:`~simlte_st.models.word_vectors.word_vectors`), ``[V, k]``.
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
    scatter = (present.T * frequencies[frequencies > 0]) @ present
    directions = np.linalg.eigh(scatter)[1][:, ::-1][:, : table.shape[1]]
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
