"""Part files: the units of an encoding run, which any process or machine can write.

A part's file name contains a digest of its texts, so that a resumed run encodes new and changed documents.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simlte_st.errors import ModelError
from simlte_st.files import atomic_path, compute_digest
from simlte_st.models.vectors import Encoded, modules_digest, tokenizer_digest
from simlte_st.prompts import document_prompt

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

    from simlte_st.models.device import Pool
    from simlte_st.reading.documents import DocumentReader


@dataclass(frozen=True)
class Part:
    """Texts to encode together, and the file to hold their vectors."""

    path: Path
    ids: list[str]
    texts: list[str]

    @classmethod
    def of(cls, folder: Path, number: int, ids: list[str], texts: list[str]) -> Part:
        """Return part ``number`` of the documents."""
        digest = compute_digest(string.encode("utf-8") for pair in zip(ids, texts, strict=True) for string in pair)
        return cls(folder / f"part-{number:08d}-{digest}.parquet", ids, texts)


class Parts:
    """A reader's documents, in parts of a fixed size and in order.

    Attributes:
        reader: The reader.
        folder: Folder of the part files.
        size: Number of documents in a part.
    """

    def __init__(self, reader: DocumentReader, folder: Path, size: int = 1024) -> None:
        self.reader, self.folder, self.size = reader, folder, size

    @property
    def total(self) -> int | None:
        """Number of documents, if known."""
        return length_hint(self.reader, 0) or None

    def __iter__(self) -> Iterator[Part]:
        """Yield the parts, starting with the first."""
        documents = iter(self.reader)
        for number, batch in enumerate(iter(lambda: list(itertools.islice(documents, self.size)), []), start=1):
            ids = [document.id for document in batch]
            yield Part.of(self.folder, number, ids, [document.text for document in batch])


@dataclass(frozen=True)
class PartEncoder:
    """Encodes parts with a model."""

    model: SentenceTransformer
    batch_size: int = 32
    normalize: bool = False

    def make(self, part: Part, pool: Pool | None = None) -> None:
        """Encode a part and write its columns: ``id`` (string), ``vector`` (float32) and ``tokens`` (int64)."""
        vectors, tokens = encode_counted(self.model, part.texts, self.batch_size, self.normalize, pool)
        broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(broken):
            raise ModelError(
                f"The vectors of {len(broken)} of {len(part.ids)} documents are not finite (first: "
                f"{part.ids[broken[0]]!r}): values overflow the model's dtype. Load the model in float32."
            )
        columns = {
            "id": pa.array(part.ids, type=pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
            "tokens": pa.array(tokens, type=pa.int64()),
        }
        with atomic_path(part.path) as temporary:
            pq.write_table(pa.table(columns), temporary, use_dictionary=False)  # it would not compress floats
        # glibc keeps freed memory in pieces that cannot be reused for texts of other lengths. With mixed lengths, a
        # process grew by 1.4 GiB an hour without this call, and by 0.3 GiB with it.
        if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
            trim(0)


def encode_counted(
    model: SentenceTransformer, texts: list[str], batch_size: int, normalize: bool = False, pool: Pool | None = None
) -> Encoded:
    """Encode documents with the model's document prompt, and count their tokens."""
    from simlte_st.models.passes import TextReader

    order = np.argsort([-len(text) for text in texts], kind="stable") if pool is not None else np.arange(len(texts))
    prompt, reader = document_prompt(model), TextReader(model, batch_size, texts, embeds=pool is None)
    vectors = reader.model.encode_document(
        [texts[row] for row in order],
        prompt=prompt,
        batch_size=reader.batch_size,
        normalize_embeddings=normalize,
        show_progress_bar=False,
        pool=pool,
        chunk_size=reader.batch_size,
    )
    ordered = np.empty((len(texts), len(vectors[0])), dtype=np.float32)
    ordered[order] = vectors
    return Encoded(ordered, reader.token_counts(texts, prompt))


_NOT_COMPUTED = ("_name_or_path", "architectures", "auto_map", "dtype", "transformers_version", "use_cache")
"""Settings in an encoder's configuration that do not affect its vectors."""


def model_identity(model: SentenceTransformer) -> dict[str, Any]:
    """Return everything that determines a model's vectors except its dtype: digests, length, dimension and prompts.

    The result is the same on every machine: paths, library versions, default settings, and the tokenizer's current
    truncation and padding are ignored.
    """
    from simlte_st.compat import readable_length

    submodules = ((name, module) for name, module in model.named_modules() if name)
    modules = [pair for pair in submodules if pair[0].isdecimal() or hasattr(pair[1], "config_keys")]
    tokenizers = (getattr(module, "tokenizer", None) for _, module in modules)
    return {
        "weights": weights_digest(model),
        "modules": modules_digest((name, type(module).__name__, _module_config(module)) for name, module in modules),
        "tokenizer": tokenizer_digest(tokenizer for tokenizer in tokenizers if tokenizer is not None),
        "max_seq_length": readable_length(model),
        "dimension": int(model.get_embedding_dimension() or 0),
        "prompts": dict(model.prompts),
        "default_prompt": model.default_prompt_name,
    }


def _module_config(module: Any) -> dict[str, Any]:
    """Return the non-default settings of a module and of its encoder."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(type(module)).parameters.items()}
    settings = module.get_config_dict() if hasattr(module, "config_keys") else {}
    if (config := getattr(getattr(module, "auto_model", None), "config", None)) is not None:
        with contextlib.suppress(Exception):  # some configurations have no defaults
            defaults |= type(config)().to_dict()
        settings |= {name: setting for name, setting in config.to_dict().items() if name not in _NOT_COMPUTED}
        defaults["model_type"] = None
    return {name: setting for name, setting in settings.items() if setting != defaults.get(name, defaults)}


def weights_digest(model: SentenceTransformer) -> str:
    """Return a digest of the names and values of a model's weights.

    Pooler weights are ignored, because a checkpoint may lack them. 16-bit values are converted to 32 bits first.
    """
    import torch

    def to_bytes(weight: torch.Tensor) -> NDArray[np.uint8]:
        weight = weight.detach().cpu()
        weight = weight.float() if weight.is_floating_point() and weight.itemsize == 2 else weight
        return weight.contiguous().view(-1).view(torch.uint8).numpy()

    weights = {name: weight for name, weight in sorted(model.state_dict().items()) if ".pooler." not in name}
    return compute_digest(itertools.chain([f"{[*weights]}".encode()], map(to_bytes, weights.values())))
