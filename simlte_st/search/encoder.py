"""The model of an index: its identity, its passages, and its vectors of length 1."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader
from simlte_st.data.sentences import Segmenter, TokenCounter, passages_of
from simlte_st.data.tokens import in_batches
from simlte_st.models.loading import check_encodes, load_model
from simlte_st.models.parts import Encoded, Part, Parts, encode_counted, identity_of
from simlte_st.models.static import is_static
from simlte_st.models.truncation import Truncation, text_lengths
from simlte_st.models.vectors import unit_rows
from simlte_st.prompts import query_prompt
from simlte_st.search.store import Store, text_hash

Model = str | os.PathLike[str] | SentenceTransformer

BATCH = 256
"""Maximum number of documents in a commit, and so the most that an interruption can lose."""

STATIC_BATCHES = 8
"""Factor of a commit's size with a static model: each commit searches the ids of the table."""

_BATCH_CHARACTERS = 4_000_000


class Encoder:
    """A model that encodes documents and queries, with its prompts.

    Attributes:
        budget: Maximum number of tokens of a document, without special tokens and prompt; None if unlimited.
        count: Function that counts tokens, without special tokens.
        dimension: Size of a vector.
        model: The model.
        name: Its name or folder; None if the model itself was given.
    """

    def __init__(self, model: Model, device: str | None = None) -> None:
        self.name: str | None = None
        if isinstance(model, SentenceTransformer):
            self.model = model
            check_encodes(self.model, "the model of this index")
        else:  # absolute, to find a folder from anywhere
            self.name = os.path.abspath(model) if os.path.isdir(model) else os.fspath(model)
            self.model = load_model(model, device=device).model
        self.budget = self.truncation().budget
        self.count: TokenCounter = lambda texts: text_lengths(self.model, texts)
        self.dimension = int(self.model.get_embedding_dimension() or 0)

    def truncation(self) -> Truncation:
        """Return an empty truncation count."""
        return Truncation.of(self.model)

    def identity(self) -> dict[str, Any]:
        """Return the properties of the model that determine its vectors."""
        return {**identity_of(self.model), "normalized": True}

    @property
    def dtype(self) -> str:
        """The dtype of the model, such as ``"float32"``."""
        return str(self.model.dtype or torch.float32).removeprefix("torch.")  # an ONNX graph has none

    def batches(self, documents: Iterable[Document]) -> Iterator[list[Document]]:
        """Yield the documents of each commit."""
        times = STATIC_BATCHES if is_static(self.model) else 1
        return in_batches(documents, lambda document: len(document.text), times * _BATCH_CHARACTERS, times * BATCH)

    def passages(self, document: Document, segmenter: Segmenter | None) -> list[str]:
        """Return the passages of a document; see :func:`~simlte_st.data.sentences.passages_of`."""
        return passages_of(document, segmenter, self.count, self.budget)

    def documents(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Return the vectors of documents, passages or sentences: shape ``[len(texts), dimension]``."""
        return self.counted(texts, batch_size).vectors

    def counted(self, texts: Sequence[str], batch_size: int = 32) -> Encoded:
        """Return the vectors of texts and their numbers of tokens."""
        if not texts:
            return Encoded(np.zeros((0, self.dimension), dtype=np.float32), [])
        found = encode_counted(self.model, list(texts), batch_size)
        return found._replace(vectors=unit_rows(found.vectors).astype(np.float32))

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query: shape ``[dimension]``."""
        rows = self.model.encode_query([text], prompt=query_prompt(self.model), show_progress_bar=False)
        vector: NDArray[np.float32] = unit_rows(rows).astype(np.float32)[0]
        return vector


class TextParts(Parts):
    """Texts and passages without a vector in an index, for other processes to encode; a part per batch of documents."""

    def __init__(self, reader: DocumentReader, folder: Path, encoder: Encoder, segmenter: Segmenter | None) -> None:
        super().__init__(reader, folder.absolute())
        self._encoder, self._segmenter = encoder, segmenter
        self.folder.mkdir(exist_ok=True)

    @property
    def total(self) -> int | None:
        """The number of documents, if each has one text."""
        return None if self._segmenter else super().total

    def __iter__(self) -> Iterator[Part]:
        """Read the documents."""
        store, seen = Store.open(self.folder.parent), set[str]()
        for number, batch in enumerate(self._encoder.batches(self.reader), start=1):
            pieces = [each for one in batch for each in (one.text, *self._encoder.passages(one, self._segmenter))]
            texts = {text_hash(text): text for text in pieces}
            seen.update(store.rows_of("hash", [one for one in texts if one not in seen], ["hash"])["hash"].to_pylist())
            missing = [one for one in texts if one not in seen]
            seen.update(missing)
            if missing:
                yield Part.of(self.folder, number, missing, [texts[one] for one in missing])
