"""A latent semantic analysis of a user's documents behind a model: by itself, or at the end of a training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.data.documents import read_documents
from simlte_st.data.report import ReadReport
from simlte_st.files import atomic_path, check_apart, check_free
from simlte_st.models.base import load_model
from simlte_st.models.cards import write_model_card
from simlte_st.models.names import shown_base
from simlte_st.modules.latent_semantic_analysis import DIMENSION, LatentSemanticAnalysis


@dataclass(frozen=True)
class Appended:
    """What :func:`append_lsa` did.

    Attributes:
        output: The new model's folder.
        read: What came of reading the documents.
        dimension: Dimensions that were appended; fewer than asked for where there are few documents.
        embedding_dimension: Dimensions of the new model's embeddings.
    """

    output: Path
    read: ReadReport
    dimension: int
    embedding_dimension: int


def append_lsa(
    base: str | os.PathLike[str],
    documents: Any,
    output: str | os.PathLike[str],
    *,
    dimension: int = DIMENSION,
    text_column: str | None = None,
    id_column: str | None = None,
    encoding: str = "utf-8",
    limit: int | None = None,
    seed: int = 0,
    device: str | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Appended:
    """Write a model that ends in a latent semantic analysis of documents; its weights stay as they are.

    Args:
        base: The model; see :func:`~simlte_st.models.base.find_model`. An analysis that it ends with is replaced.
        documents: Anything :func:`~simlte_st.data.read_documents` takes; the options below are for it.
        output: The folder to write, in one rename.
        dimension: Dimensions to append at most; see :class:`~simlte_st.modules.LatentSemanticAnalysis`.
        text_column: Column of the text.
        id_column: Column of the ids.
        encoding: Encoding of text files.
        limit: Use no more than so many documents.
        seed: Decides the randomized decomposition.
        device: Where the model is loaded to.
        overwrite: Replace a model at the output.
        progress: Show a progress bar.

    Returns:
        What was done.

    Raises:
        ModelError: The base cannot be loaded.
        DataError: The documents cannot be read, or fewer than two of them differ in their tokens.
        ConfigurationError: ``dimension`` is below 1, something is at the output, or the documents are in there.
    """
    target = Path(output)
    check_apart(documents, target)
    check_free(target, overwrite)
    reader = read_documents(documents, text_column=text_column, id_column=id_column, encoding=encoding, limit=limit)
    model = load_model(base, device=device).model
    analysis = end_with_lsa([model], reader, dimension, seed, progress)
    embedding_dimension = int(model.get_embedding_dimension() or 0)
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        write_model_card(
            path,
            name=target.name,
            base=os.fspath(base),
            summary=f"`{shown_base(os.fspath(base))}` as it was, with a part appended by simlte_st that learned "
            "without labels which words tell documents apart.",
            about="## Latent semantic analysis\n\n"
            f"- Documents: {reader.report.documents:,}\n"
            f"- Appended: latent semantic analysis, {analysis.dimension} dimensions; embeddings have "
            f"{embedding_dimension}\n"
            f"- Seed: {seed}\n",
        )
    return Appended(target, reader.report, analysis.dimension, embedding_dimension)


def end_with_lsa(
    models: Sequence[SentenceTransformer], documents: Any, dimension: int, seed: int, progress: bool
) -> LatentSemanticAnalysis:
    """Append one latent semantic analysis to models, in place, and in the place of those that they end with.

    A model that cuts its embeddings (``truncate_dim``) keeps as many numbers of its own, before those of the analysis.
    """
    for model in models:
        if isinstance(model[-1], LatentSemanticAnalysis):
            del model[-1]
    size = models[0].get_embedding_dimension()
    for model in models:
        model.truncate_dim = None
    analysis = LatentSemanticAnalysis.fit(
        models[0], documents, dimension=dimension, embedding_dimension=size, seed=seed, progress=progress
    )
    for model in models:
        model.append(analysis.to(model.device))
    return analysis


def lengthened(
    model: SentenceTransformer, analysis: LatentSemanticAnalysis, texts: Sequence[str], vectors: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Lengthen vectors that a model gave before an analysis was fitted, without encoding again."""
    parts = []
    for start in range(0, len(texts), 32):
        rows = slice(start, start + 32)
        read = {**model.preprocess(list(texts[rows])), "sentence_embedding": torch.from_numpy(vectors[rows])}
        parts.append(analysis(read)["sentence_embedding"].numpy())
    return np.concatenate(parts)
