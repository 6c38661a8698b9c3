"""Create and check the folder and ``settings.json`` of an index, and encode texts with its model."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import ConfigurationError, ModelError, StoreError
from simlte_st.extras import check_installed
from simlte_st.files import SETTINGS_FILE, atomic_path, changes, check_new, check_place, hold, write_json
from simlte_st.models.limits import Truncation, text_lengths
from simlte_st.models.names import ModelSource, cached_folder, check_model, local_folder
from simlte_st.models.parts import encode_counted, model_identity
from simlte_st.models.vectors import Encoded, TokenVectors, unit_rows
from simlte_st.prompts import document_prompt, query_prompt
from simlte_st.reading.document import Document
from simlte_st.search.store import TABLE, Store, read_index_file, text_hash
from simlte_st.words.analyzer import ANALYZER
from simlte_st.words.sentences import Segmenter, TokenCounter, split_passages, tokenizer_counter
from simlte_st.words.tokens import in_batches

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

FORMAT = 6
"""Version of the index format on disk."""

_IDENTITY = ("weights", "modules", "tokenizer", "max_seq_length", "prompts", "default_prompt")
"""Settings that identify the model and must not change while an index is open."""

BATCH = 256
"""Maximum number of documents in a commit, and so the most that an interruption can lose."""

STATIC_BATCHES = 8
"""How many times larger commits are with a fast static model, because each commit looks up ids in the table."""

_BATCH_CHARACTERS = 4_000_000

BEGINNING, BEGINNING_WEIGHT = 400, 0.5
"""Characters of a long text whose vector a static model adds to the text's, and its weight.

A document's beginning usually says what the document is about. On the nine sets of the search benchmark, this raises
the mean MRR of vectors from .582 to .602 (``simlte-static``) and from .626 to .640 (trained on the documents), and that
of hybrid search with text queries from .744 to .755 and from .742 to .750. Weights of .3 to .7 and beginnings of 30 to
100 words differ by at most .003.
"""

_DESCRIPTION = {"files", "truncation"}
"""Settings with which a run without new texts need not load the model; an index of an earlier version lacks them."""


class IndexSettings(TypedDict):
    """Contents of ``settings.json``, apart from most of the model's identity."""

    format: int
    dimension: int
    files: str | None  # digest of the model's files when it was last loaded to write; see :func:`files_digest`
    truncation: dict[str, Any]  # arguments of Truncation
    model: str | None  # name or folder
    parts: bool
    analyzer: dict[str, Any]
    language: str | None
    languages: list[str]


class Encoder:
    """A model that encodes documents and queries, with its prompts.

    Args:
        model: A loaded model, or its name or folder.
        device: Torch device (default: a GPU if available; the CPU for a static model, which is as fast there).
        settings: Settings of an existing index. If the Hub cache has a static model with this identity, it is used
            without a request to the Hub.
        dtype: Dtype for loading the model (default: as for :func:`~simlte_st.models.loading.load_model`).

    Attributes:
        budget: Maximum number of tokens per document, excluding special tokens and the prompt; None if unlimited.
        count: Function that counts tokens, excluding special tokens.
        dimension: Embedding dimension.
        name: Name or folder of the model; None if ``model`` is a loaded model.
        quick: Token vectors of a static model in a folder, used without torch; None for other models.
    """

    def __init__(
        self,
        model: ModelSource,
        device: str | None = None,
        settings: IndexSettings | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.name: str | None = None
        self.quick: TokenVectors | None = None
        self._source, self._device, self._dtype = model, device, dtype
        if isinstance(model, (str, os.PathLike)):  # absolute, so that any working directory will do
            self.name = os.path.abspath(model) if os.path.isdir(model) else os.fspath(model)
            if device in (None, "cpu"):
                self.quick = _read_token_vectors(model, settings)
        self.budget = self.truncation().budget
        quick_count = self.quick and tokenizer_counter(self.quick.tokenizer)
        self.count: TokenCounter = quick_count or (lambda texts: text_lengths(self.model, texts))
        self.dimension = self.quick.dimension if self.quick else int(self.model.get_embedding_dimension() or 0)

    @cached_property
    def model(self) -> SentenceTransformer:
        """The torch model, loaded when first needed."""
        from simlte_st.models.loading import check_encodes, load_model

        if isinstance(self._source, (str, os.PathLike)):
            return load_model(self._source, dtype=self._dtype, device=self._device).model
        check_encodes(self._source, "the model of this index")
        return self._source

    @cached_property
    def is_static(self) -> bool:
        """Whether each token has one vector."""
        if self.quick is not None:
            return True  # without importing torch
        from simlte_st.models.static import is_static

        return is_static(self.model)

    def truncation(self) -> Truncation:
        """Return truncation counts that start at zero."""
        return Truncation() if self.quick else Truncation.of(self.model)

    def identity(self) -> dict[str, Any]:
        """Return the properties of the model that determine its vectors."""
        return {**(self.quick.identity() if self.quick else model_identity(self.model)), "normalized": True}

    def description(self) -> dict[str, Any]:
        """Describe the model for ``settings.json``."""
        return {"files": files_digest(self._source), "truncation": asdict(self.truncation())}

    def passages(self, document: Document, segmenter: Segmenter | None) -> list[str]:
        """Return the passages of a document; see :func:`~simlte_st.words.sentences.split_passages`."""
        return split_passages(document, segmenter, self.count, self.budget)

    def documents(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Return the vectors of documents, passages or sentences, of shape ``[len(texts), dimension]``."""
        return self.encode(texts, batch_size).vectors

    def encode(self, texts: Sequence[str], batch_size: int = 32) -> Encoded:
        """Return the vectors and token counts of documents, passages or sentences.

        A static model's vectors of long texts include the beginning: see :data:`BEGINNING`.
        """
        if not texts:
            return Encoded(np.zeros((0, self.dimension), dtype=np.float32), [])
        vectors, tokens = self._encode(texts, batch_size)
        if self.is_static and (rows := [row for row, text in enumerate(texts) if len(text) > BEGINNING]):
            beginnings = self._encode([texts[row][:BEGINNING] for row in rows], batch_size).vectors
            vectors[rows] = unit_rows(vectors[rows] + BEGINNING_WEIGHT * beginnings)
        return Encoded(vectors, tokens)

    def _encode(self, texts: Sequence[str], batch_size: int) -> Encoded:
        if self.quick:
            encoded = self.quick.encode(texts, document_prompt(self.quick))
        else:
            encoded = encode_counted(self.model, list(texts), batch_size)
        return encoded._replace(vectors=unit_rows(encoded.vectors).astype(np.float32))

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query, of shape ``[dimension]``."""
        if self.quick:
            rows = self.quick.encode([text], query_prompt(self.quick)).vectors
        else:
            rows = self.model.encode_query([text], prompt=query_prompt(self.model), show_progress_bar=False)
        return unit_rows(rows).astype(np.float32).reshape(-1)


def _read_token_vectors(model: str | os.PathLike[str], settings: IndexSettings | None) -> TokenVectors | None:
    folder = local_folder(model) or (cached_folder(os.fspath(model)) if settings else None)
    vectors = TokenVectors.load(Path(folder)) if folder else None
    return None if vectors and settings and not vectors.identity().items() <= settings.items() else vectors


def in_context(passages: ArrayLike, document: ArrayLike) -> NDArray[np.float32]:
    """Add the vector of a document, ``[dimension]``, to those of its passages, ``[n, dimension]``, for a static model.

    A passage alone does not say what its document is about. On the nine sets of the search benchmark, this raises the
    mean MRR of passages from .580 to .619 (vectors), and that of hybrid search with text queries from .741 to .755.
    """
    return unit_rows(np.asarray(passages) + np.asarray(document)).astype(np.float32)


def files_digest(model: ModelSource) -> str | None:
    """Return a digest of the names, sizes and times of a model's files; None if the model has no folder."""
    name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else ""
    if not (folder := name and (local_folder(name) or cached_folder(name))):
        return None
    states = [(str(path), path.stat()) for path in sorted(Path(folder).rglob("*")) if path.is_file()]
    return text_hash(repr([(name.removeprefix(folder), state.st_size, state.st_mtime_ns) for name, state in states]))


def document_batches(documents: Iterable[Document], budget: int | None) -> Iterator[list[Document]]:
    """Group documents into batches, one per commit; a model without a length limit is fast."""
    factor = STATIC_BATCHES if budget is None else 1
    return in_batches(documents, lambda document: len(document.text), factor * _BATCH_CHARACTERS, factor * BATCH)


def check_new_index(folder: Path, overwrite: bool = False) -> None:
    """Check that an index can be created in a folder; ``overwrite`` allows replacing an existing index."""
    check_installed("lancedb", "index", "indexes")
    check_place(folder)
    if not folder.exists() or (folder.is_dir() and all(path.name.startswith(".") for path in folder.iterdir())):
        return  # an empty folder may contain a lock file
    if not is_index(folder):
        raise ConfigurationError(f"{folder} already exists and is not an index: choose another folder for the index.")
    check_new(folder, overwrite)


def create_index(
    folder: Path, model: ModelSource, device: str | None, *, parts: bool, language: str | None, overwrite: bool
) -> Encoder:
    """Create an empty index and return its model; an existing index is replaced once the new one is complete."""
    check_new_index(folder, overwrite)
    check_model(model)
    encoder = Encoder(model, device)
    settings = {"format": FORMAT, "model": encoder.name, **encoder.identity(), **encoder.description(), "parts": parts}
    settings |= {"analyzer": ANALYZER, "language": language, "languages": []}
    loaded = None if encoder.quick else encoder.model
    if loaded and loaded.similarity_fn_name != "cosine" and type(loaded[-1]).__name__ != "Normalize":
        logger.warning("The model's similarity is %s, but an index ranks by cosine.", loaded.similarity_fn_name)
    lock = hold(folder)
    try:
        check_new_index(folder, overwrite)  # again: another process may have created one in the meantime
        with atomic_path(folder) as temporary:
            temporary.mkdir()
            Store.create(temporary, encoder.dimension)
            write_json(temporary / SETTINGS_FILE, settings)
            if os.name == "nt":  # Windows cannot rename a folder with an open file
                lock.release()
    finally:
        lock.release()
    return encoder


def is_index(place: object) -> bool:
    """Return whether a path is the folder of an index, complete or not."""
    return isinstance(place, (str, os.PathLike)) and os.path.isdir(Path(place) / f"{TABLE}.lance")


def read_settings(folder: Path, previous: IndexSettings | None = None) -> IndexSettings:
    """Read the settings of an index, and check that its model is still the one in the ``previous`` settings."""
    if not (folder / SETTINGS_FILE).is_file():
        raise StoreError(f"There is no index at {folder}: create one with simlte index.")

    def check(settings: IndexSettings) -> IndexSettings | None:
        if settings["format"] != FORMAT or settings["analyzer"]["version"] != ANALYZER["version"]:
            return None
        if missing := {*_IDENTITY, *IndexSettings.__required_keys__} - _DESCRIPTION - settings.keys():
            raise KeyError(*missing)
        return settings

    if (settings := read_index_file(folder, SETTINGS_FILE, check)) is None:
        raise StoreError(f"{folder} was made by another version of simlte-st: rebuild it with --overwrite.")
    if previous and any(settings.get(name) != previous.get(name) for name in _IDENTITY):
        raise StoreError(f"{folder} was replaced by an index made with another model: open it again.")
    return settings


def check_encoder(folder: Path, settings: IndexSettings, model: ModelSource | None = None) -> ModelSource:
    """Return the model of an index, or its name, after checking without torch that the model exists."""
    if model is not None:
        check_model(model)
        return model
    if (name := settings["model"]) is None:
        raise ConfigurationError(f"{folder} was made with a loaded model, which has no name: pass the model as model=.")
    try:
        check_model(name)
    except ModelError as error:
        raise ModelError(f"{error} {folder} uses this model: if it has moved, pass it as model=.") from None
    return name


def knows_model(folder: Path, settings: IndexSettings, model: ModelSource | None) -> bool:
    """Return whether the files of an index's model have not changed since it was last loaded to write."""
    digest = files_digest(check_encoder(folder, settings, model))
    return digest is not None and digest == settings.get("files")


def load_encoder(folder: Path, settings: IndexSettings, model: ModelSource | None, device: str | None) -> Encoder:
    """Load the model of an index."""
    encoder = Encoder(check_encoder(folder, settings, model), device, settings)
    identity = encoder.identity()
    if different := changes({name: settings.get(name) for name in identity}, identity):
        raise ModelError(
            f"{folder} was made with a different model than {encoder.name or 'the given one'} "
            f"({'; '.join(different.values())}), so their vectors cannot be compared. Pass the right model as model=, "
            "or create another index."
        )
    return encoder
