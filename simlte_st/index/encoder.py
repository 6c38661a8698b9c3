"""The model of an index: what it is known by, and vectors of length 1 from it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.compat import document_prompt, query_prompt
from simlte_st.data.sentences import TokenCounter
from simlte_st.models.base import load_model
from simlte_st.models.loading import check_encodes
from simlte_st.models.parts import encode_counted, weights_digest
from simlte_st.models.truncation import Truncation, text_lengths
from simlte_st.models.vectors import unit_rows

Model = str | os.PathLike[str] | SentenceTransformer


class Encoder:
    """A model that encodes documents and queries, with its prompts for each where it has some.

    Attributes:
        budget: Tokens of a document that the model reads, special tokens and prompt not counted; None for no bound.
        count: Counts tokens, special tokens not counted.
        dimension: Size of a vector.
        model: The model.
        name: Its name, or its folder; None where it was given itself.
    """

    def __init__(self, model: Model, device: str | None = None) -> None:
        self.model = model if isinstance(model, SentenceTransformer) else load_model(model, device=device).model
        self.name: str | None = None
        if not isinstance(model, SentenceTransformer):  # a folder is found from anywhere
            self.name = os.path.abspath(model) if os.path.isdir(model) else os.fspath(model)
        check_encodes(self.model, self.name or "the model of this index")
        self._prompt = document_prompt(self.model)
        self.budget = self.truncation().budget
        self.count: TokenCounter = lambda texts: text_lengths(self.model, texts, self._prompt)
        self.dimension = int(self.model.get_embedding_dimension() or 0)

    def truncation(self) -> Truncation:
        """Begin to count what the model reads of documents."""
        return Truncation.of(self.model, prompt=self._prompt)

    def identity(self) -> dict[str, Any]:
        """Return everything that decides the vectors."""
        return {
            "weights": weights_digest(self.model),
            "prompts": dict(self.model.prompts),
            "default_prompt": self.model.default_prompt_name,
            "dimension": self.dimension,
            "normalized": True,
        }

    def documents(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Encode documents, passages or sentences: shape ``[len(texts), dimension]``."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return unit_rows(encode_counted(self.model, list(texts), batch_size)[0]).astype(np.float32)

    def query(self, text: str) -> NDArray[np.float32]:
        """Encode what is searched for: shape ``[dimension]``."""
        rows = self.model.encode_query([text], prompt=query_prompt(self.model), show_progress_bar=False)
        vectors = unit_rows(rows).astype(np.float32)
        vector: NDArray[np.float32] = vectors[0]
        return vector
