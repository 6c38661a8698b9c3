"""Base classes of this package's modules: saving and loading, and pooling with one weight per token."""

from __future__ import annotations

from typing import Any, Self

import torch
from sentence_transformers.base.modules import Module
from sentence_transformers.util.tensor import repad_flattened_features
from torch import Tensor

from simlte_st.compat import Features, mask_without_prompt


class SavedModule(Module):
    """A module that is saved as its constructor arguments (``config_keys``), weights and buffers."""

    def save(self, output_path: str, *args: object, safe_serialization: bool = True, **kwargs: object) -> None:
        """Write the configuration and the weights."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:  # type: ignore[override]
        """Load a module saved by :meth:`save` from a folder or the Hub."""
        module = super().load(model_name_or_path, subfolder, **options)
        names = ("token", "cache_folder", "revision", "local_files_only")
        hub_options = {name: options[name] for name in names if name in options}
        with_weights: Self = cls.load_torch_weights(model_name_or_path, subfolder, model=module, **hub_options)
        return with_weights


def repad_features(features: Features, name: str, include_prompt: bool) -> tuple[Tensor, Tensor]:
    """Return token features ``[B, S, ..]``, repadded if flattened, and the mask ``[B, S]`` of tokens to count."""
    padded = repad_flattened_features(dict(features)) if "cu_seq_lens_q" in features else features
    values: Tensor = padded[name]
    mask = padded.get("attention_mask")
    if mask is None:  # some tokenizers return none
        mask = torch.ones(values.shape[:2], dtype=torch.int64, device=values.device)
    if not include_prompt and "prompt_length" in features:
        mask = mask_without_prompt(mask, features["prompt_length"])
    return values, mask


class WeightedPooling(SavedModule):
    """A replacement for ``Pooling`` that gives each token a weight; subclasses define :meth:`pool`.

    Attributes:
        embedding_dimension: Dimension d of the token embeddings and of the sentence embedding.
        include_prompt: Whether to include prompt tokens in the pooling. The stock
            ``SentenceTransformer.set_pooling_include_prompt`` does not change it; set ``model[1].include_prompt``
            instead.

    Features:
        Reads ``token_embeddings`` ``[B, S, d]`` and ``attention_mask`` ``[B, S]``, or flattened features
        (``cu_seq_lens_q``). Writes ``sentence_embedding`` ``[B, d]`` in the dtype of the token embeddings, and
        ``token_attention`` ``[B, S]``, float32: the weights, which sum to 1 in each text and are 0 at padding. For a
        text without tokens to pool, both are 0. If there is no mask, all tokens count.
    """

    def __init__(self, embedding_dimension: int, include_prompt: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.embedding_dimension, self.include_prompt = embedding_dimension, include_prompt

    def pool(self, embeddings: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return sentence embeddings, and the weights of the tokens in the mask."""
        raise NotImplementedError

    def forward(self, features: Features, **kwargs: object) -> Features:
        """Add ``sentence_embedding`` and ``token_attention``."""
        embeddings, mask = repad_features(features, "token_embeddings", self.include_prompt)
        vectors, features["token_attention"] = self.pool(embeddings, mask.bool())
        features["sentence_embedding"] = vectors.to(embeddings.dtype)
        return features

    def get_embedding_dimension(self) -> int:
        """Return the dimension d."""
        return self.embedding_dimension
