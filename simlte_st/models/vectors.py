"""Embeddings without torch: arrays, and static models in NumPy, so that commands need not wait for an import.

:class:`TokenVectors` computes the same as ``StaticEmbedding`` and ``Normalize``; it does not read models with other
modules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from simlte_st.errors import DataError
from simlte_st.files import MODEL_FILE, compute_digest, read_json
from simlte_st.models.names import read_model_settings
from simlte_st.words.tokens import counted_ids, group_sums

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# Scratch memory of a block: 4 million float64 values are 32 MB.
_SCRATCH_VALUES = 4_000_000

_SETTINGS = {"StaticEmbedding": {}, "Normalize": {"module_output_name": "sentence_embedding"}}
"""Settings of the supported modules."""

_SAMPLE = "Ein Café in İzmir: naïve 12,5% of it’s \t\tUPPER lower_case 東京 x\u0301 [MASK] <mask> don't"

_KIND = re.compile(r"sentence_transformers\.[\w.]*\.(\w+)")


def row_blocks(rows: int, columns: int) -> list[slice]:
    """Divide the rows of a table that is too large for memory into blocks."""
    size = max(1, _SCRATCH_VALUES // columns)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def unit_rows(x: ArrayLike) -> NDArray[np.float64]:
    """L2-normalise rows in float64."""
    data = check_embeddings(x, np.float64)
    norms = np.linalg.norm(data, axis=1, keepdims=True)
    unit: NDArray[np.float64] = data / np.where(norms == 0.0, 1.0, norms)
    return unit


def check_embeddings(x: Any, dtype: Any = None) -> Any:
    """Convert embeddings to an array ``[n, dim]`` of ``dtype`` (default: their own); keep a SciPy sparse matrix."""
    sparse = hasattr(x, "tocsr")
    try:
        data = x if sparse else np.asarray(x, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"Embeddings must form an array of numbers [n, dim]: {error}.") from None
    if data.ndim != 2 or 0 in data.shape:
        raise DataError(f"Embeddings must form a non-empty array [n, dim], got shape {data.shape}.")
    if not np.isfinite(data.data if sparse else data).all():
        raise DataError("The embeddings contain NaN or infinity: the model has diverged.")
    return data


class Encoded(NamedTuple):
    """Vectors and numbers of tokens of texts."""

    vectors: Floats
    tokens: list[int]


@dataclass(frozen=True)
class TokenVectors:
    """A static model in NumPy: one vector for each token; the vector of a text is their mean.

    Attributes:
        tokenizer: The tokenizer.
        table: The token vectors, ``[V, dimension]``.
        modules: Names of the modules, which have their default settings.
        prompts: Prompts by name.
        default_prompt_name: Name of the default prompt, or None.
    """

    tokenizer: Tokenizer
    table: Floats
    modules: list[str]
    prompts: dict[str, str | None]
    default_prompt_name: str | None

    @classmethod
    def read(cls, folder: Path) -> TokenVectors | None:
        """Read a model; None if it has other modules, or files in another format."""
        try:
            modules, settings = read_json(folder / MODEL_FILE), read_model_settings(folder)
            kinds = [_KIND.fullmatch(module["type"]) for module in modules]
            names = [kind[1] if kind else "" for kind in kinds]
            usual = names in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"])
            cosine = settings.get("similarity_fn_name") in (None, "cosine")
            if not (usual and cosine) or modules[0]["path"] not in ("", "."):
                return None
            table = token_table(load_file(folder / "model.safetensors"))
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception:  # tokenizers raises plain exceptions
            return None  # the usual loader reports the error
        prompts = {"query": "", "document": "", **(settings.get("prompts") or {})}
        return cls(tokenizer, table, names, prompts, settings.get("default_prompt_name"))

    @property
    def dimension(self) -> int:
        """Size of a vector."""
        return int(self.table.shape[1])

    def identity(self) -> dict[str, Any]:
        """Return the same as :func:`~simlte_st.models.parts.identity_of` for the loaded model."""
        values = np.ascontiguousarray(self.table).reshape(-1).view(np.uint8)
        return {
            "weights": compute_digest([b"['0.embedding.weight']", values]),
            "modules": modules_digest((str(place), name, _SETTINGS[name]) for place, name in enumerate(self.modules)),
            "tokenizer": tokenizer_digest([self.tokenizer]),
            "max_seq_length": None,
            "dimension": self.dimension,
            "prompts": self.prompts,
            "default_prompt": self.default_prompt_name,
        }

    def encode(self, texts: Sequence[str], prompt: str) -> Encoded:
        """Return the vectors of texts after a prompt, and their numbers of tokens, without those of the prompt."""
        ids, times, sizes = counted_ids(self.tokenizer, [prompt, *(prompt + text for text in texts)])
        vectors, tokens = np.zeros((len(texts), self.dimension), dtype=np.float32), group_sums(times, sizes)
        rows = (np.split(each, np.cumsum(sizes)[:-1])[1:] for each in (ids, times))
        for row, (own, of_words) in enumerate(zip(*rows, strict=True)):
            distinct, places = np.unique(own, return_inverse=True)  # a long text has more tokens than the table rows
            counts = np.bincount(places, of_words, len(distinct)).astype(np.float32)
            vectors[row] = counts @ self.table[distinct] / max(np.float32(1), counts.sum())
        return Encoded(vectors, (tokens[1:] - tokens[0]).tolist())


def modules_digest(modules: Iterable[tuple[str, str, dict[str, Any]]]) -> str:
    """Return a digest of the positions, classes and settings of modules."""
    return compute_digest([json.dumps([*modules], sort_keys=True, default=lambda value: type(value).__name__).encode()])


def tokenizer_digest(tokenizers: Iterable[Any]) -> str:
    """Return a digest of tokenizers, without their current truncation and padding."""

    def content(tokenizer: Any) -> str:
        backend = tokenizer if isinstance(tokenizer, Tokenizer) else getattr(tokenizer, "backend_tokenizer", None)
        if backend is not None:
            return str(backend.to_str().partition('"added_tokens"')[2])
        return (
            f"{type(tokenizer)} {sorted(tokenizer.get_vocab().items())} {tokenizer(_SAMPLE)['input_ids']}"  # in Python
        )

    return compute_digest(
        f"{getattr(each, 'truncation_side', 'right')} {content(each)}".encode() for each in tokenizers
    )


def token_table(weights: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the token vectors; model2vec may store them in fewer bits, share them, or weight tokens."""
    if (stock := weights.get("embedding.weight")) is not None:
        return stock.astype(np.float32)
    table: Floats = weights["embeddings"].astype(np.float32)
    if (rows := weights.get("mapping")) is not None:
        table = table[rows.astype(np.int64)]
    if (scale := weights.get("weights")) is not None:
        table = (table * scale[:, None]).astype(np.float32)
    return table
