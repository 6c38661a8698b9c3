"""What documents are linked to: seeds, which are documents of the index, files, or texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.document import Document
from simlte_st.data.documents import list_documents
from simlte_st.errors import DataError
from simlte_st.index.adding import text_hash
from simlte_st.index.encoder import Encoder
from simlte_st.index.queries import Question
from simlte_st.index.store import Store, is_one_of
from simlte_st.index.words import WordCounts
from simlte_st.vectors import unit_rows


def find_seed(store: Store, seed: str) -> list[Document]:
    """Find what a seed stands for: a document of the index, those in a file, or a text.

    Returns:
        The documents; one that is not from the index has an empty id.

    Raises:
        DataError: It is empty, seems to be an id or a path but is none, or is a file that cannot be read.
    """
    rows = store.rows(f"part = 0 AND {is_one_of('id', [seed])}", ["id", "text"]).to_pylist()
    if rows:
        return [Document(row["id"], row["text"]) for row in rows]
    if os.path.exists(seed):
        return [replace(document, id="") for document in list_documents(seed)]
    if not seed.strip():
        raise DataError("A seed is empty.")
    if seed.isascii() and len(seed.split()) == 1:
        raise DataError(
            f"{seed!r} is neither an id of the index nor a file. A seed that is a text has several words; for one word "
            "there is: simlte search"
        )
    return [Document("", seed)]


def seed_vector(
    store: Store, encoder: Callable[[], Encoder], cut: Callable[[Document], list[str]], seed: Document
) -> NDArray[np.float32]:
    """Give the mean of the vectors that a seed would be found by, scaled to length 1: shape ``[dim]``.

    Args:
        store: The index's table.
        encoder: Gives the model, for a seed that is not in the index.
        cut: Cuts a document into passages, if the index has them.
        seed: The seed.
    """
    if seed.id:
        rows = store.rows(f"searched AND {is_one_of('id', [seed.id])}", ["vector"])["vector"]
        vectors = np.array(rows.to_pylist(), dtype=np.float32)
    else:
        vectors = encoder().documents(cut(seed) or [seed.text])
    return _unit_mean(vectors)


def make_question(
    store: Store, words: WordCounts, seeds: Sequence[Document], vectors: Sequence[NDArray[np.float32]] | None
) -> Question:
    """Make one question of several seeds; neither they nor documents of the same text are an answer.

    Args:
        store: The index's table.
        words: Chooses the words.
        seeds: The seeds.
        vectors: A vector each; None where only text is searched.
    """
    same = store.rows_of("hash", [text_hash(seed.text) for seed in seeds], ["id"], "part = 0")["id"].to_pylist()
    excluded = sorted({*same, *(seed.id for seed in seeds)})
    vector = None if vectors is None else _unit_mean(np.stack(vectors))
    return Question(words.of_question("\n\n".join(seed.text for seed in seeds)), vector, excluded)


def _unit_mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = unit_rows(vectors.mean(axis=0)[None]).astype(np.float32)[0]
    return mean
