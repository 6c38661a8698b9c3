"""A latent semantic analysis of a user's documents: at the end of an encoder, or in the vectors of a static model."""

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
    from scipy.sparse import csr_array
    from sentence_transformers import SentenceTransformer

    from simlte_st.modules.latent_semantic_analysis import LatentSemanticAnalysis


SHARE, POWER = 0.5, 1.5
"""Share of the analysis in long documents, and power of a token's rareness, in static models: the best in the median
of ten sets of documents. From .4 to .6 and from 1 to 1.5 all are within half a point."""

SAMPLE = 2000
"""Documents, about, that say how long the parts of a static model are."""


@dataclass(frozen=True)
class Appended:
    """What :func:`append_lsa` did.

    Attributes:
        output: The new model's folder.
        read: What came of reading the documents.
        dimension: Dimensions of the analysis; fewer than asked for if there are few documents.
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
    """Write a model with a latent semantic analysis of documents.

    It is appended to an encoder, whose weights stay as they are. Into the token vectors of a static model it is folded
    (:func:`fold`): the folder needs no module of this package.

    Args:
        base: The model; see :func:`~simlte_st.models.names.find_model`. An analysis that it ends with is
            replaced.
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
    from simlte_st.models.static import is_plain, write_for_model2vec

    model = load_model(base, dtype="auto", device=device).model  # it is saved as it is stored
    dimensions = end_with_lsa([model], reader, dimension, seed, progress)
    size = int(model.get_embedding_dimension() or 0)
    plain = is_plain(model)
    where, how = ("Folded in", "with, in its token vectors,") if plain else ("Appended", "as it was, followed by")
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        if plain:
            write_for_model2vec(path)
        write_model_card(
            path,
            name=target.name,
            base=name,
            summary=f"`{shown_base(name)}`, {how} what simlte_st learned without labels: which words tell documents "
            "apart.",
            about="## Latent semantic analysis\n\n"
            f"- Documents: {reader.report.documents:,}\n"
            f"- {where}: latent semantic analysis, {dimensions} dimensions; embeddings have {size}\n"
            f"- Seed: {seed}\n",
        )
    return Appended(target, reader.report, dimensions, size)


def end_with_lsa(
    models: Sequence[SentenceTransformer], documents: Any, dimension: int, seed: int, progress: bool
) -> int:
    """Give models one latent semantic analysis of documents, in place, and return its number of dimensions.

    The analysis is appended to an encoder, instead of one that it ends with, and folded into the vectors of a static
    model (:func:`fold`). Embeddings of a model with ``truncate_dim`` stay truncated, before the numbers of the
    analysis.
    """
    from simlte_st.models.static import is_plain
    from simlte_st.modules.latent_semantic_analysis import LatentSemanticAnalysis, token_counts

    for model in models:
        if isinstance(model[-1], LatentSemanticAnalysis):
            del model[-1]
    size = models[0].get_embedding_dimension()
    for model in models:
        model.truncate_dim = None
    counts = token_counts(models[0], documents, progress)
    analysis = LatentSemanticAnalysis.fit(
        models[0], counts, dimension=dimension, embedding_dimension=size, seed=seed, progress=progress
    )
    for model in models:
        if is_plain(model):
            fold(model, analysis, counts)
        else:
            model.append(analysis.to(model.device))
    return analysis.dimension


def fold(model: SentenceTransformer, analysis: LatentSemanticAnalysis, counts: csr_array) -> None:
    """Add a latent semantic analysis to the token vectors of a static model, whose dimensions stay as many.

    The coordinates of a text in the analysis are a sum over its tokens, like its embedding, if repetitions of a token
    count by its mean of ``(1 + log n) / n`` over the documents. So the analysis becomes a second part of each token's
    vector. The first singular vectors get less weight than in the module, which brings each text's part to length 1.
    The median document has :data:`SHARE` of the second part, or less where documents are short, as in the module.

    Last, the vectors are rotated to their principal directions in the documents and cut to their old length, which lost
    nothing on ten sets of documents; so a model that is trained again does not grow.

    Args:
        model: A model that is plain (:func:`~simlte_st.models.static.is_plain`); it is changed.
        analysis: The analysis.
        counts: The number of each token in each document that it was fitted to, ``[documents, V]``.
    """
    import numpy as np
    import torch
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    embedding: Any = model[0]
    table = embedding.embedding.weight.detach().float().cpu().numpy()[:, : analysis.embedding_dimension]
    idf, components = analysis.idf.numpy(), analysis.components.numpy()
    damped = counts.copy()
    damped.data = 1 + np.log(damped.data)
    times = counts.sum(axis=0)
    burst = damped.sum(axis=0) / np.maximum(times, 1)
    words = (burst * idf**POWER)[:, None] * components * np.linalg.norm(components, axis=0)
    sample = counts[:: -(-counts.shape[0] // SAMPLE)]
    share = SHARE * float(np.median(np.minimum(1, sample.sum(axis=1) / analysis.full)))
    own, latent = (np.median(np.linalg.norm(sample @ part, axis=1)) for part in (table, words))
    scale = np.float32(np.sqrt(share / (1 - share)) * own / max(latent, 1e-12))
    both = np.concatenate([table, scale * words], axis=1)
    read = both[times > 0]
    directions = np.linalg.eigh((read.T * times[times > 0]) @ read)[1][:, ::-1][:, : table.shape[1]]
    rows = torch.from_numpy(np.ascontiguousarray(both @ directions, dtype=np.float32))
    model[0] = StaticEmbedding(embedding.tokenizer, embedding_weights=rows).to(model.device)
    if len(model) == 1:
        model.append(Normalize())


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
