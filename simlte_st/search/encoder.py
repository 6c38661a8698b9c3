"""The model of an index: its identity, its passages, and its vectors of length 1."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simlte_st.models.names import ModelSource, cached_folder, local_folder
from simlte_st.models.parts import Part, Parts, encode_counted, model_identity
from simlte_st.models.truncation import Truncation, text_lengths
from simlte_st.models.vectors import Encoded, TokenVectors, unit_rows
from simlte_st.prompts import document_prompt, query_prompt
from simlte_st.reading.documents import Document, DocumentReader
from simlte_st.search.store import Store, text_hash
from simlte_st.words.sentences import Segmenter, TokenCounter, split_passages, tokenizer_counter
from simlte_st.words.tokens import in_batches

if TYPE_CHECKING:  # with torch
    from sentence_transformers import SentenceTransformer

Settings: TypeAlias = Mapping[str, object]
"""Settings of an index, which include the identity of its model."""

BATCH = 256
"""Maximum number of documents in a commit; an interruption loses no more than these."""

STATIC_BATCHES = 8
"""Factor of a commit's size with a static model: each commit searches the ids of the table."""

_BATCH_CHARACTERS = 4_000_000


class Encoder:
    """A model that encodes documents and queries, with its prompts.

    Args:
        model: The model, or its name or folder.
        device: Where to compute (default: a GPU, if there is one; a static model is as fast on the CPU).
        settings: Settings of the model's index. A static model with this identity in the Hub's cache is used without a
            request to the Hub.

    Attributes:
        budget: Maximum number of tokens of a document, without special tokens and prompt; None if unlimited.
        count: Function that counts tokens, without special tokens.
        dimension: Size of a vector.
        name: Its name or folder; None for a loaded model.
        quick: The token vectors of a static model in a folder, which need no torch; None for other models.
    """

    def __init__(self, model: ModelSource, device: str | None = None, settings: Settings | None = None) -> None:
        self.name: str | None = None
        self.quick: TokenVectors | None = None
        self._source, self._device = model, device
        if isinstance(model, (str, os.PathLike)):  # absolute, to find a folder from anywhere
            self.name = os.path.abspath(model) if os.path.isdir(model) else os.fspath(model)
            if device in (None, "cpu"):
                self.quick = _read_token_vectors(model, settings)
        self.budget = self.truncation().budget
        quick_count = self.quick and tokenizer_counter(self.quick.tokenizer)
        self.count: TokenCounter = quick_count or (lambda texts: text_lengths(self.model, texts))
        self.dimension = self.quick.dimension if self.quick else int(self.model.get_embedding_dimension() or 0)

    @cached_property
    def model(self) -> SentenceTransformer:
        """The model in torch."""
        from simlte_st.models.loading import check_encodes, load_model

        if isinstance(self._source, (str, os.PathLike)):
            return load_model(self._source, device=self._device).model
        check_encodes(self._source, "the model of this index")
        return self._source

    def truncation(self) -> Truncation:
        """Return an empty truncation count."""
        return Truncation() if self.quick else Truncation.of(self.model)

    def identity(self) -> dict[str, Any]:
        """Return the properties of the model that determine its vectors."""
        return {**(self.quick.identity() if self.quick else model_identity(self.model)), "normalized": True}

    def batches(self, documents: Iterable[Document]) -> Iterator[list[Document]]:
        """Yield the documents of each commit."""
        factor = STATIC_BATCHES if self.quick or self.model.transformers_model is None else 1
        return in_batches(documents, lambda document: len(document.text), factor * _BATCH_CHARACTERS, factor * BATCH)

    def passages(self, document: Document, segmenter: Segmenter | None) -> list[str]:
        """Return the passages of a document; see :func:`~simlte_st.words.sentences.split_passages`."""
        return split_passages(document, segmenter, self.count, self.budget)

    def documents(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Return the vectors of documents, passages or sentences: shape ``[len(texts), dimension]``."""
        return self.encode(texts, batch_size).vectors

    def encode(self, texts: Sequence[str], batch_size: int = 32) -> Encoded:
        """Return the vectors of documents, passages or sentences, and their numbers of tokens."""
        if not texts:
            return Encoded(np.zeros((0, self.dimension), dtype=np.float32), [])
        if self.quick:
            encoded = self.quick.encode(texts, document_prompt(self.quick))
        else:
            encoded = encode_counted(self.model, list(texts), batch_size)
        return encoded._replace(vectors=unit_rows(encoded.vectors).astype(np.float32))

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query: shape ``[dimension]``."""
        if self.quick:
            rows = self.quick.encode([text], query_prompt(self.quick)).vectors
        else:
            rows = self.model.encode_query([text], prompt=query_prompt(self.model), show_progress_bar=False)
        vector: NDArray[np.float32] = unit_rows(rows).astype(np.float32)[0]
        return vector


def _read_token_vectors(model: str | os.PathLike[str], settings: Settings | None) -> TokenVectors | None:
    folder = local_folder(model) or (cached_folder(os.fspath(model)) if settings else None)
    vectors = TokenVectors.load(Path(folder)) if folder else None
    return None if vectors and settings and not vectors.identity().items() <= settings.items() else vectors


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
        """Yield the texts of each batch that have no vector yet."""
        store, hashes = Store.open(self.folder.parent), set[str]()
        for number, batch in enumerate(self._encoder.batches(self.reader), start=1):
            passages = [(document.text, *self._encoder.passages(document, self._segmenter)) for document in batch]
            texts = {text_hash(text): text for text in chain(*passages)}
            new = [digest for digest in texts if digest not in hashes]
            hashes.update(store.find_rows("hash", new, ["hash"])["hash"].to_pylist())
            if missing := [digest for digest in new if digest not in hashes]:
                hashes.update(missing)
                yield Part.of(self.folder, number, missing, [texts[digest] for digest in missing])
