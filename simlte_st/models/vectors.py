"""Check embeddings and run static models in NumPy, so that commands need not wait for torch to be imported.

:class:`TokenVectors` computes the same vectors as ``StaticEmbedding`` and ``Normalize``; it does not load models with
other modules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from simlte_st.errors import DataError
from simlte_st.files import MODEL_FILE, compute_digest, read_json
from simlte_st.models.names import read_model_settings
from simlte_st.words.tokens import counted_ids, group_sums

if TYPE_CHECKING:
    from simlte_st.words.tokens import AnyTokenizer

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# Number of values in a block: 4 million float64 values take 32 MB.
_SCRATCH_VALUES = 4_000_000

_SETTINGS = {"StaticEmbedding": {}, "Normalize": {"module_output_name": "sentence_embedding"}}
"""Settings of the supported modules."""

_SAMPLE = "Ein Café in İzmir: naïve 12,5% of it’s \t\tUPPER lower_case 東京 x\u0301 [MASK] <mask> don't"

_KIND = re.compile(r"sentence_transformers\.[\w.]*\.(\w+)")


def row_blocks(rows: int, columns: int) -> list[slice]:
    """Divide the rows of a table into blocks that fit in memory."""
    size = max(1, _SCRATCH_VALUES // columns)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def unit_rows(x: ArrayLike) -> NDArray[np.float64]:
    """L2-normalise rows in float64."""
    vectors = check_embeddings(x, np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = vectors / np.where(norms == 0.0, 1.0, norms)
    return unit


def unit_mean(vectors: Floats) -> Floats:
    """Return the mean of vectors, scaled to length 1."""
    return unit_rows(vectors.mean(axis=0)[None]).astype(np.float32).reshape(-1)


def check_embeddings(x: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Convert embeddings to an array ``[n, dim]`` of ``dtype`` (default: their own); SciPy matrices stay sparse."""
    sparse = hasattr(x, "tocsr")
    try:
        vectors: Any = x if sparse else np.asarray(x, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"Embeddings must form an array of numbers [n, dim]: {error}.") from None
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise DataError(f"Embeddings must form a non-empty array [n, dim], got shape {vectors.shape}.")
    if not np.isfinite(vectors.data if sparse else vectors).all():
        raise DataError("The embeddings contain NaN or infinity: the model has diverged.")
    return vectors  # type: ignore[no-any-return]


class Encoded(NamedTuple):
    """Vectors and token counts of texts."""

    vectors: Floats
    tokens: list[int]


@dataclass(frozen=True)
class TokenVectors:
    """A static model in NumPy: each token has one vector, and a text's vector is their mean.

    Attributes:
        tokenizer: The tokenizer.
        table: The token vectors, ``[V, dimension]``.
        modules: Names of the modules, all with default settings.
        prompts: Prompts by name.
        default_prompt_name: Name of the default prompt, or None.
    """

    tokenizer: Tokenizer
    table: Floats
    modules: list[str]
    prompts: dict[str, str | None]
    default_prompt_name: str | None

    @classmethod
    def load(cls, folder: Path) -> TokenVectors | None:
        """Load a model; return None if it has other modules, or files in another format."""
        try:
            modules, settings = read_json(folder / MODEL_FILE), read_model_settings(folder)
            names = [kind[1] if kind else "" for kind in [_KIND.fullmatch(module["type"]) for module in modules]]
            plain = names in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"])
            cosine = settings.get("similarity_fn_name") in (None, "cosine")
            if not (plain and cosine) or modules[0]["path"] not in ("", "."):
                return None
            table = token_table(load_file(folder / "model.safetensors"))
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception:  # tokenizers raises plain exceptions
            return None  # load_model reports the error
        prompts = {"query": "", "document": "", **(settings.get("prompts") or {})}
        return cls(tokenizer, table, names, prompts, settings.get("default_prompt_name"))

    @property
    def dimension(self) -> int:
        """Size of a vector."""
        return int(self.table.shape[1])

    def identity(self) -> dict[str, Any]:
        """Return what :func:`~simlte_st.models.parts.model_identity` returns for the same model in torch."""
        weights = np.ascontiguousarray(self.table).reshape(-1).view(np.uint8)
        return {
            "weights": compute_digest([b"['0.embedding.weight']", weights]),
            "modules": modules_digest((str(place), name, _SETTINGS[name]) for place, name in enumerate(self.modules)),
            "tokenizer": tokenizer_digest([self.tokenizer]),
            "max_seq_length": None,
            "dimension": self.dimension,
            "prompts": self.prompts,
            "default_prompt": self.default_prompt_name,
        }

    def encode(self, texts: Sequence[str], prompt: str) -> Encoded:
        """Encode texts with a prompt; return their vectors, and their token counts without the prompt."""
        ids, counts, sizes = counted_ids(self.tokenizer, [prompt, *(prompt + text for text in texts)])
        vectors, lengths = np.zeros((len(texts), self.dimension), dtype=np.float32), group_sums(counts, sizes)
        groups = (np.split(array, np.cumsum(sizes)[:-1])[1:] for array in (ids, counts))
        for row, (row_ids, row_counts) in enumerate(zip(*groups, strict=True)):
            # A long text may have more tokens than the table has rows.
            distinct, places = np.unique(row_ids, return_inverse=True)
            weights = np.bincount(places, row_counts, len(distinct)).astype(np.float32)
            vectors[row] = weights @ self.table[distinct] / max(np.float32(1), weights.sum())
        return Encoded(vectors, (lengths[1:] - lengths[0]).tolist())


def modules_digest(modules: Iterable[tuple[str, str, dict[str, Any]]]) -> str:
    """Return a digest of the positions, classes and settings of modules."""
    listing = json.dumps([*modules], sort_keys=True, default=lambda setting: type(setting).__name__)
    return compute_digest([listing.encode()])


def tokenizer_digest(tokenizers: Iterable[AnyTokenizer]) -> str:
    """Return a digest of tokenizers, ignoring their current truncation and padding."""

    def describe(tokenizer: AnyTokenizer) -> str:
        if not isinstance(tokenizer, Tokenizer):
            backend = getattr(tokenizer, "backend_tokenizer", None)
            if backend is None:  # a slow tokenizer
                return f"{type(tokenizer)} {sorted(tokenizer.get_vocab().items())} {tokenizer(_SAMPLE)['input_ids']}"
            tokenizer = backend
        return str(tokenizer.to_str().partition('"added_tokens"')[2])

    return compute_digest(
        f"{getattr(tokenizer, 'truncation_side', 'right')} {describe(tokenizer)}".encode() for tokenizer in tokenizers
    )


def token_table(weights: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the token vectors; model2vec may store them in fewer bits, share them between tokens, or scale them."""
    if (vectors := weights.get("embedding.weight")) is not None:  # sentence-transformers' format
        return vectors.astype(np.float32)
    table: Floats = weights["embeddings"].astype(np.float32)
    if (rows := weights.get("mapping")) is not None:
        table = table[rows.astype(np.int64)]
    if (scale := weights.get("weights")) is not None:
        table = (table * scale[:, None]).astype(np.float32)
    return table
