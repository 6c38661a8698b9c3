"""Run and save static models, which have one vector for each token and read whole texts.

Passes are limited by length, not by number of texts. The tokenizer, which takes almost all of the time, gets enough
text to keep its threads busy, and one very long text does not make all other passes small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import torch as tensors
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional as F

from simlte_st.compat import has_hooks
from simlte_st.files import MODEL_FILE, read_json
from simlte_st.models.vectors import token_table
from simlte_st.modules import OWN_MODULES
from simlte_st.words.tokens import TOKENIZED_CHARACTERS, counted_ids, group_sums, in_batches, unknown_id

TEXTS = 4096
"""Number of texts to pass to sentence-transformers at once, before they are divided into passes."""

WEIGHTS, SETTINGS, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
"""File names of a model in model2vec's format."""


def is_static(model: SentenceTransformer) -> bool:
    """Return whether a model is static: its first module is a table of token vectors."""
    return isinstance(model[0], StaticEmbedding)


def token_embedding(model: SentenceTransformer) -> nn.EmbeddingBag:
    """Return the table of token vectors of a static model."""
    embedding = model[0]
    assert isinstance(embedding, StaticEmbedding)
    return embedding.embedding


class StaticLoader(StaticEmbedding):
    """Loads a stock ``StaticEmbedding`` in float32, without a length limit.

    model2vec also stores tables in 8 or 16 bits, for which torch does not implement means or gradients, and writes its
    default limit of 512 tokens into the tokenizer.
    """

    @classmethod
    def load(cls, model_name_or_path: str, **options: Any) -> StaticEmbedding:  # type: ignore[override]
        """Load a table and its tokenizer from a folder or the Hub."""
        names = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
        hub_options = {name: options[name] for name in names if name in options}
        paths = (cls.load_file_path(model_name_or_path, file, **hub_options) for file in (WEIGHTS, TOKENIZER))
        weights, tokenizer = map(str, paths)
        # NumPy has no bfloat16.
        arrays = {name: tensor.float().numpy() for name, tensor in tensors.load_file(weights).items()}
        embedding = StaticEmbedding(Tokenizer.from_file(tokenizer), embedding_weights=token_table(arrays))
        embedding.tokenizer.no_truncation()
        return embedding


LOADED = (*OWN_MODULES, StaticLoader)
"""Module classes for loading models: this package's, and the static embedding loader."""


def model2vec_modules(source: str) -> list[nn.Module] | None:
    """Return the modules of a model2vec folder without a ``modules.json``; None for other sources."""
    folder = Path(source)
    if (folder / MODEL_FILE).exists() or not (folder / SETTINGS).is_file() or not (folder / TOKENIZER).is_file():
        return None
    settings = read_json(folder / SETTINGS)
    if not isinstance(settings, dict) or settings.get("model_type") != "model2vec":
        return None
    embedding = StaticLoader.load(source, local_files_only=True)
    return [embedding, Normalize()] if settings.get("normalize") else [embedding]


def is_plain(model: SentenceTransformer) -> bool:
    """Return whether a model consists of token vectors and at most a ``Normalize``."""
    return is_static(model) and [type(module) for module in model][1:] in ([], [Normalize])


def adds_up(model: SentenceTransformer) -> bool:
    """Return whether token vectors can be summed in any order, as in a plain float32 model on a CPU."""
    if not is_plain(model) or type(model[0]) is not StaticEmbedding:
        return False
    bag = token_embedding(model)
    is_mean = type(bag) is nn.EmbeddingBag and (bag.mode, bag.padding_idx, bag.max_norm) == ("mean", None, None)
    return is_mean and (bag.weight.device.type, bag.weight.dtype) == ("cpu", torch.float32) and not has_hooks(model)


def static_passes(
    model: SentenceTransformer, texts: Sequence[str], prompt: str, **options: Any
) -> Iterator[tuple[list[str], torch.Tensor, NDArray[np.int64]]]:
    """Yield texts, their embeddings and their token counts, pass by pass.

    A plain model reads each distinct word of a text once, because the order of tokens does not change their mean.
    """
    plain = adds_up(model)
    for batch in in_batches(texts, len, TOKENIZED_CHARACTERS):
        inputs = [prompt + text for text in batch] if prompt else batch
        ids, counts, sizes = counted_ids(model.tokenizer, inputs, once=plain)
        lengths, features = group_sums(counts, sizes), flat_features(ids, sizes)
        if plain:
            weights, table = torch.from_numpy(counts.astype(np.float32)), token_embedding(model).weight
            tokens, starts = features["input_ids"], features["offsets"]
            sums = F.embedding_bag(tokens, table, starts, mode="sum", per_sample_weights=weights)
            outputs = {"sentence_embedding": sums / torch.from_numpy(lengths.clip(min=1)).float()[:, None]}
            for module in [*model][1:]:
                outputs = module(outputs)
        else:
            outputs = model.forward({name: tensor.to(model.device) for name, tensor in features.items()}, **options)
        yield batch, outputs["sentence_embedding"], lengths


def flat_features(ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> dict[str, torch.Tensor]:
    """Return concatenated token ids as the input of a static embedding."""
    return {"input_ids": torch.from_numpy(ids), "offsets": torch.from_numpy(np.cumsum(lengths) - lengths)}


# model2vec's format, which sentence-transformers also loads; it is written without model2vec.


def write_for_model2vec(folder: Path, dtype: str = "float32") -> None:
    """Rewrite a saved static model so that model2vec also loads it and computes the same embeddings of whole texts.

    model2vec skips unknown tokens, so they get a zero vector. Embeddings without ``Normalize`` still differ in length,
    because sentence-transformers counts unknown tokens.
    """
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    table, unknown = token_table(load_file(folder / WEIGHTS)), unknown_id(tokenizer)
    table[[] if unknown is None else [unknown]] = 0
    save_for_model2vec(folder, table, dtype, normalize='.Normalize"' in (folder / MODEL_FILE).read_text("utf-8"))


def save_for_model2vec(folder: Path, table: NDArray[np.float32], dtype: str, *, normalize: bool = True) -> None:
    """Write token vectors as float32, or as float16 or int8 with a scale for each token (model2vec's weights).

    sentence-transformers multiplies by these weights in float32. Without them, it cannot load int8 vectors, and float16
    vectors give NaN for a text without tokens.
    """
    weights: dict[str, NDArray[Any]] = {"embeddings": table}
    if dtype != "float32":
        largest = np.abs(table).max(axis=1)
        scale = (np.where(largest > 0, largest, 1) / (127 if dtype == "int8" else 1)).astype(np.float32)
        numbers = table / scale[:, None]
        weights = {"embeddings": (np.rint(numbers) if dtype == "int8" else numbers).astype(dtype), "weights": scale}
    save_file(weights, folder / WEIGHTS)
    # If max_length is missing, model2vec reads only the first 512 tokens.
    settings = {
        "model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": table.shape[1],
        "normalize": normalize, "max_length": None, "embedding_dtype": dtype,
    }  # fmt: skip
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
