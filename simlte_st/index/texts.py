"""The texts and passages of documents, which have vectors in an index, and how many processes encode them first."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import in_batches
from simlte_st.index.encoder import Encoder
from simlte_st.index.passages import passages_of
from simlte_st.index.store import Store, text_hash
from simlte_st.models.parts import Part, Parts, part_files, part_number
from simlte_st.models.vectors import unit_rows

BATCH = 256
"""Documents of a commit, or fewer of long ones: what an interruption can lose."""

VECTORS_FOLDER = "vectors.parts"
"""Vectors that are not yet in the table."""

_BATCH_CHARACTERS = 4_000_000


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Cut documents into what is one commit."""
    return in_batches(documents, lambda document: len(document.text), _BATCH_CHARACTERS, BATCH)


class TextParts(Parts):
    """The texts and passages that have no vector in an index yet: those of a batch of documents are a part."""

    def __init__(self, reader: DocumentReader, folder: Path, encoder: Encoder, segmenter: Segmenter | None) -> None:
        self._index, self._encoder, self._segmenter = folder.absolute(), encoder, segmenter
        super().__init__(reader, self._index / VECTORS_FOLDER)
        self.folder.mkdir(exist_ok=True)

    @property
    def total(self) -> int | None:
        """The documents, where each has one text."""
        return None if self._segmenter else super().total

    def __iter__(self) -> Iterator[Part]:
        """Read the documents."""
        store, seen = Store.open(self._index), set[str]()
        for number, batch in enumerate(batches(self.reader), start=1):
            texts = {text_hash(text): text for document in batch for text in self._texts(document)}
            seen.update(store.rows_of("hash", [one for one in texts if one not in seen], ["hash"])["hash"].to_pylist())
            missing = [one for one in texts if one not in seen]
            seen.update(missing)
            if missing:
                yield Part.of(self.folder, number, missing, [texts[one] for one in missing])

    def _texts(self, document: Document) -> list[str]:
        passages = (
            passages_of(document, self._segmenter, self._encoder.count, self._encoder.budget) if self._segmenter else []
        )
        return [document.text, *passages]


class VectorsAhead:
    """The vectors of :class:`TextParts` that were made, by the number of their batch.

    Whatever is in the files is right: a text is known by its hash, and the index has one model.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder / VECTORS_FOLDER, defaultdict[int, list[Path]](list)
        for path in part_files(self._folder):
            self._files[part_number(path)].append(path)

    def of_batch(self, number: int) -> dict[str, NDArray[np.float64]]:
        """Return vectors of length 1 by the hash of their text."""
        vectors: dict[str, NDArray[np.float64]] = {}
        for path in self._files[number]:
            table = pq.read_table(path)
            rows = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)
            vectors.update(zip(table["id"].to_pylist(), unit_rows(rows), strict=True))
        return vectors

    def discard(self) -> None:
        """Remove the files: all are in the table."""
        shutil.rmtree(self._folder, ignore_errors=True)
