"""The frozen base as a teacher: what it makes of whole documents, each drawn towards the documents nearest to it.

Two views of a document are taught to have the embedding of the whole of it, as the base gives it before training
(distillation: Hinton et al., 2015; EmbedDistill: Kim et al., 2023), after one step of smoothing over the graph of
nearest neighbours (as in SGC: Wu et al., 2019). Who is near whom, the base and the words decide together: where the
base errs, words often do not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset, concatenate_datasets
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from tqdm.auto import tqdm

from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.compat import readable_length
from simlte_st.errors import DataError, ModelError
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.lexical import fit_tfidf
from simlte_st.evaluation.splits import sample_rows
from simlte_st.evaluation.statistics import row_blocks, unit_rows
from simlte_st.files import atomic_path
from simlte_st.training.model import Trainee
from simlte_st.training.prepare import Prepared
from simlte_st.training.run import RunFolder, RunOptions

logger = logging.getLogger(__name__)

NEIGHBOURS = 5
"""Nearest documents whose mean a document is drawn towards (``benchmarks/results/recipe.md``)."""

LEXICAL = 0.5
"""Share of the words, beside the base's embedding, in who is near whom (likewise)."""

POOL = 20_000
"""Documents among which neighbours are looked for; of more, a sample. Bounds a time that grows with its square."""

LEAST_TOKENS = 1024
"""Tokens of a document that the teacher reads at least, in chunks; more where two views hold more."""

BLOCK = 256
"""Documents whose texts are held in memory at once."""

Rows = NDArray[np.float32]


def teach(trainee: Trainee, prepared: Prepared, folder: RunFolder, options: RunOptions) -> Prepared:
    """Give the documents of a run what the teacher shows for them; see :func:`add_targets`.

    Args:
        trainee: Its base is the teacher.
        prepared: The documents.
        folder: Keeps the targets for as long as the run.
        options: ``dtype``, ``seed`` and ``progress``.
    """
    dataset = add_targets(
        prepared.dataset.with_format(None),
        trainee.base.model,
        folder.path / "targets.arrow",
        smooth=trainee.preset.smooth,
        tokens=trainee.views.budget,
        bf16=options.dtype == "bfloat16",
        seed=options.seed,
        progress=options.progress,
    )
    return replace(prepared, dataset=dataset.with_transform(trainee.views))


def add_targets(
    dataset: Dataset,
    base: SentenceTransformer,
    path: Path,
    *,
    smooth: float,
    tokens: int | None = None,
    bf16: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> Dataset:
    """Give each document what the teacher shows for it, as a column ``label``.

    Args:
        dataset: The documents, as :meth:`~simlte_st.data.DocSplitTransform.attach` gave them, without their transform.
        base: The teacher. It is not changed.
        path: Arrow file of the targets; if it is there already, they are taken from it.
        smooth: Weight of the mean of the nearest documents, from 0 (the document alone) to 1.
        tokens: Tokens that a view may hold; None for as many as the base reads.
        bf16: Compute in bfloat16.
        seed: Decides among which documents neighbours are looked for, where there are more than :data:`POOL`.
        progress: Show a progress bar.

    Returns:
        The data set with the column: float32 vectors of length 1, memory-mapped.
    """
    if not path.exists():
        texts = TextColumn(dataset)
        teacher = _reader_of_whole_documents(base, max(LEAST_TOKENS, 2 * (tokens or 0)))
        parts = []
        with (
            torch.autocast(teacher.device.type, torch.bfloat16, enabled=bf16),
            tqdm(total=len(texts), desc="The base reads", unit="doc", disable=not progress) as bar,
        ):
            for start in range(0, len(texts), BLOCK):
                parts.append(unit_rows(encode_texts(teacher, texts[start : start + BLOCK])).astype(np.float32))
                bar.update(len(parts[-1]))
        targets = np.concatenate(parts)
        if smooth > 0:
            targets = smoothed(targets, nearest(targets, texts, seed=seed), smooth)
        column = pa.FixedSizeListArray.from_arrays(pa.array(targets.ravel()), targets.shape[1])
        with atomic_path(path) as temporary, pa.OSFile(str(temporary), "wb") as sink:
            table = pa.table({"label": column})
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=1024)
    return concatenate_datasets([dataset, Dataset.from_file(str(path))], axis=1)


class TextColumn(Sequence[str]):
    """The whole texts of a corpus of segmented documents, made as they are asked for."""

    def __init__(self, dataset: Dataset) -> None:
        self._rows = dataset.with_format(None).select_columns("sentences")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: Any) -> Any:
        found = self._rows[row]["sentences"]
        return [" ".join(sentences) for sentences in found] if isinstance(row, slice) else " ".join(found)


def nearest(
    vectors: Rows,
    texts: Sequence[str],
    *,
    count: int = NEIGHBOURS,
    lexical: float = LEXICAL,
    pool: int = POOL,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Find the documents that are nearest to each, by embedding and by words.

    Similarity is a mean of two cosines, of embeddings and of TF-IDF vectors (without English stop words), each first
    brought to mean 0 and deviation 1 over pairs of documents.

    Args:
        vectors: Embeddings of length 1, shape ``[N, dim]``, N >= 2.
        texts: The documents.
        count: Neighbours of each; fewer where there are not so many others.
        lexical: Weight of the words in the mean, 0 to 1.
        pool: Look among so many documents, a sample where there are more.
        seed: Decides the sample.

    Returns:
        Numbers of documents ``[N, count]``, the nearest first; never the document itself.
    """
    chosen = np.asarray(sample_rows(len(vectors), pool, seed))
    words = _words(texts, chosen) if lexical > 0 else None
    parts: list[tuple[float, Callable[[slice], Any]]] = [(1 - lexical, lambda rows: vectors[rows] @ vectors[chosen].T)]
    if words is not None:
        parts.append((lexical, lambda rows: np.asarray((words[rows] @ words[chosen].T).todense())))
    first = row_blocks(len(vectors), len(chosen))[0]
    own = np.arange(first.start, first.stop)[:, None] == chosen
    sample = [part(first)[~own] for _, part in parts]
    scales = [(similarities.mean(), similarities.std() or 1.0) for similarities in sample]
    found = np.empty((len(vectors), min(count, len(chosen) - 1)), dtype=np.int64)
    for rows in row_blocks(len(vectors), len(chosen)):
        near = sum(
            weight * (part(rows) - mean) / deviation
            for (weight, part), (mean, deviation) in zip(parts, scales, strict=True)
        )
        near[np.arange(rows.start, rows.stop)[:, None] == chosen] = -np.inf
        found[rows] = chosen[np.argsort(-near, axis=1, kind="stable")[:, : found.shape[1]]]
    return found


def _words(texts: Sequence[str], chosen: NDArray[np.int64]) -> Any:
    """TF-IDF of all texts, its vocabulary from the chosen ones; None where they share no words."""
    sample = [texts[int(row)] for row in chosen]
    try:
        vectorizer = fit_tfidf(sample, stop_words="english", min_df=2)
    except DataError:
        logger.info("The documents share no words: the base alone decides which are near each other.")
        return None
    return vectorizer.transform(texts[start] for start in range(len(texts)))


def smoothed(vectors: Rows, near: NDArray[np.int64], weight: float) -> Rows:
    """Move vectors towards the mean of their neighbours', and scale them to length 1.

    Args:
        vectors: Of length 1, shape ``[N, dim]``.
        near: Numbers of the neighbours ``[N, count]``.
        weight: Of the mean, 0 to 1.
    """
    mean = np.zeros_like(vectors)
    for column in near.T:
        mean += vectors[column] / near.shape[1]
    return unit_rows((1 - weight) * vectors + weight * mean).astype(np.float32)


def _reader_of_whole_documents(base: SentenceTransformer, tokens: int) -> SentenceTransformer:
    """Let the base read so many tokens in chunks, where it does not by itself, and can."""
    reads = readable_length(base)
    if reads is None or reads >= tokens:
        return base.eval()
    try:
        return to_chunk_mean(base, max_length=tokens).eval()
    except ModelError as error:
        logger.info("The teacher reads %d tokens of a document. %s", reads, error)
        return base.eval()
