"""A latent semantic analysis of a user's documents at the end of a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simlte_st.arguments import Count, Seed, checked
from simlte_st.data.documents import read_documents
from simlte_st.data.reader import ReadReport
from simlte_st.files import atomic_path, check_apart, check_free
from simlte_st.models.names import shown_base
from simlte_st.prompts import document_prompt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    from simlte_st.modules.latent_semantic_analysis import LatentSemanticAnalysis


@dataclass(frozen=True)
class Appended:
    """What :func:`append_lsa` did.

    Attributes:
        output: The new model's folder.
        read: What came of reading the documents.
        dimension: Dimensions that were appended; fewer than asked for if there are few documents.
        embedding_dimension: Dimensions of the new model's embeddings.
    """

    output: Path
    read: ReadReport
    dimension: int
    embedding_dimension: int


@checked
def append_lsa(
    base: str | os.PathLike[str],
    documents: Any,
    output: str | os.PathLike[str],
    *,
    dimension: Count = 256,
    seed: Seed = 0,
    device: str | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Appended:
    """Write a model that ends in a latent semantic analysis of documents; its weights stay as they are.

    Args:
        base: The model; see :func:`~simlte_st.models.names.find_model`. An analysis that it ends with is replaced.
        documents: The documents to analyse: anything that :func:`~simlte_st.data.read_documents` takes.
        output: The folder to write.
        dimension: Number of dimensions; fewer if there are few documents.
        seed: Random seed of the analysis.
        device: Where to compute: cpu, cuda, cuda:1 or mps (default: a GPU, if there is one).
        overwrite: Overwrite an existing model.
        progress: Show progress bars.

    Returns:
        What was done.

    Raises:
        ModelError: The base cannot be loaded.
        DataError: The documents cannot be read, or fewer than two of them differ in their tokens.
        ConfigurationError: An argument is out of its range, something is at the output, or the documents are in there.
    """
    target, name = Path(output), os.fspath(base)
    check_apart(documents, target)
    check_free(target, overwrite)
    reader = read_documents(documents)

    from simlte_st.models.cards import write_model_card
    from simlte_st.models.loading import load_model

    model = load_model(base, dtype="auto", device=device).model  # it is saved as it is stored
    analysis = end_with_lsa([model], reader, dimension, seed, progress)
    size = int(model.get_embedding_dimension() or 0)
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        write_model_card(
            path,
            name=target.name,
            base=name,
            summary=f"`{shown_base(name)}` as it was, with a part appended by simlte_st that learned "
            "without labels which words tell documents apart.",
            about="## Latent semantic analysis\n\n"
            f"- Documents: {reader.report.documents:,}\n"
            f"- Appended: latent semantic analysis, {analysis.dimension} dimensions; embeddings have {size}\n"
            f"- Seed: {seed}\n",
        )
    return Appended(target, reader.report, analysis.dimension, size)


def end_with_lsa(
    models: Sequence[SentenceTransformer], documents: Any, dimension: int, seed: int, progress: bool
) -> LatentSemanticAnalysis:
    """Append one latent semantic analysis to models, in place, or replace those that they end with.

    Embeddings of a model with ``truncate_dim`` stay truncated, before the numbers of the analysis.
    """
    from simlte_st.modules.latent_semantic_analysis import LatentSemanticAnalysis

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
    """Append an analysis to vectors that a model made before, without encoding again."""
    import numpy as np
    import torch

    parts, prompt = [], document_prompt(model)
    for start in range(0, len(texts), 32):
        rows = slice(start, start + 32)
        read = model.preprocess(list(texts[rows]), prompt=prompt)
        read = {**read, "sentence_embedding": torch.from_numpy(vectors[rows])}
        parts.append(analysis(read)["sentence_embedding"].numpy())
    return np.concatenate(parts)
