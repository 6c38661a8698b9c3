"""What documents are linked to: seeds, which are documents of the index, files, or texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simlte_st.checks import check_text
from simlte_st.data.document import Document
from simlte_st.data.documents import list_documents
from simlte_st.data.segmenters import Segmenter
from simlte_st.errors import DataError
from simlte_st.index.passages import passages_of
from simlte_st.index.queries import Question
from simlte_st.index.store import Store, is_one_of, text_hash
from simlte_st.index.words import WordCounts
from simlte_st.models.vectors import unit_rows

if TYPE_CHECKING:
    from simlte_st.index.encoder import Encoder


def find_seed(store: Store, seed: str | os.PathLike[str]) -> list[Document]:
    """Find what a seed stands for: a document of the index, those in a file, or a text."""
    seed = os.fspath(seed) if isinstance(seed, os.PathLike) else seed
    check_text("seed", seed)
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


def seed_vectors(
    store: Store, encoder: Callable[[], Encoder], segmenter: Segmenter | None, seeds: Sequence[Document]
) -> list[NDArray[np.float32]]:
    """Return for each seed the mean of the vectors that it would be found by, scaled to length 1: shape ``[dim]``."""
    known: dict[str, list[list[float]]] = {seed.id: [] for seed in seeds if seed.id}
    for row in store.rows_of("id", list(known), ["id", "vector"], "searched").to_pylist() if known else ():
        known[row["id"]].append(row["vector"])
    texts: list[list[str]] = [[] for _ in seeds]
    encoded: Iterator[NDArray[np.float32]] = iter(())
    if not all(seed.id for seed in seeds):
        model = encoder()
        for seed, own in zip(seeds, texts, strict=True):
            if not seed.id:
                cut = passages_of(seed, segmenter, model.count, model.budget) if segmenter else []
                own.extend(cut or [seed.text])
        encoded = iter(model.documents([*chain.from_iterable(texts)]))
    return [
        _unit_mean(np.array(known[seed.id] if seed.id else [*islice(encoded, len(own))], dtype=np.float32))
        for seed, own in zip(seeds, texts, strict=True)
    ]


def find_texts(store: Store, documents: Sequence[Document]) -> list[Document]:
    """Let documents whose text the index has stand for its own, whose vectors are there; others lose their id."""
    hashes = [text_hash(document.text) for document in documents]
    rows = store.rows_of("hash", hashes, ["id", "hash"], "part = 0").to_pylist()
    names = {row["hash"]: row["id"] for row in rows}
    return [Document(names.get(digest, ""), one.text) for digest, one in zip(hashes, documents, strict=True)]


def make_questions(
    store: Store,
    words: WordCounts,
    groups: Sequence[Sequence[Document]],
    vectors: Sequence[NDArray[np.float32]] | None,
) -> list[Question]:
    """Make one question of each group of seeds; neither they nor documents of the same text are an answer."""
    hashes = [[text_hash(seed.text) for seed in seeds] for seeds in groups]
    same: dict[str, list[str]] = {}
    rows = store.rows_of("hash", sorted({*chain.from_iterable(hashes)}), ["id", "hash"], "part = 0")
    for row in rows.to_pylist():
        same.setdefault(row["hash"], []).append(row["id"])
    rest = None if vectors is None else iter(vectors)
    questions = []
    for seeds, own in zip(groups, hashes, strict=True):
        excluded = {name for digest in own for name in same.get(digest, ())} | {seed.id for seed in seeds if seed.id}
        vector = None if rest is None else _unit_mean(np.stack([*islice(rest, len(seeds))]))
        text = "\n\n".join(seed.text for seed in seeds)
        questions.append(Question(words.of_question(text), vector, sorted(excluded)))
    return questions


def _unit_mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = unit_rows(vectors.mean(axis=0)[None]).astype(np.float32)[0]
    return mean
