"""What this package's poolings share: which tokens count."""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers.util.tensor import repad_flattened_features
from torch import Tensor

from simlte_st.compat import mask_without_prompt
from simlte_st.errors import ModelError
from simlte_st.modules.saved import SavedModule


class WeightedPooling(SavedModule):
    """A module in the place of ``Pooling`` that gives each token a weight; see :meth:`pool`.

    Attributes:
        embedding_dimension: d, of token embeddings and so of the sentence embedding.
        include_prompt: Whether the tokens of a prompt are pooled too. The stock ``SentenceTransformer``'s
            ``set_pooling_include_prompt`` leaves these poolings as they are: there set ``model[1].include_prompt``.

    Features:
        ``token_embeddings`` ``[B, S, d]`` and ``attention_mask`` ``[B, S]``, or flattened (``cu_seq_lens_q``), become
        ``sentence_embedding`` ``[B, d]``, of the token embeddings' dtype, and ``token_attention`` ``[B, S]``, float32:
        a weight a token, 0 at padding, the sum of a text 1. A text without a token that counts has 0 in both. Without
        a mask all tokens count.
    """

    embedding_dimension: int
    include_prompt: bool

    def pool(self, embeddings: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Pool token embeddings."""
        raise NotImplementedError

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add ``sentence_embedding`` and ``token_attention``."""
        padded = repad_flattened_features(dict(features)) if "cu_seq_lens_q" in features else features
        embeddings = padded["token_embeddings"]
        if embeddings.shape[-1] != self.embedding_dimension:
            raise ModelError(
                f"The encoder gives token embeddings of {embeddings.shape[-1]} numbers, and {type(self).__name__} was "
                f"made for {self.embedding_dimension}: make it with embedding_dimension={embeddings.shape[-1]}."
            )
        mask = padded.get("attention_mask")
        if mask is None:  # some encoders' tokenizers make none
            mask = torch.ones(embeddings.shape[:2], dtype=torch.int64, device=embeddings.device)
        if mask.shape != embeddings.shape[:2]:
            raise ModelError(
                f"The attention mask has the shape {tuple(mask.shape)}, the token embeddings {tuple(embeddings.shape)}:"
                f" which of them are padding cannot be told. {type(self).__name__} needs a text encoder that gives one "
                "embedding for each token."
            )
        if not self.include_prompt and "prompt_length" in features:
            mask = mask_without_prompt(mask, features["prompt_length"])
        vectors, features["token_attention"] = self.pool(embeddings, mask.bool())
        features["sentence_embedding"] = vectors.to(embeddings.dtype)
        return features

    def get_embedding_dimension(self) -> int:
        """Return d."""
        return self.embedding_dimension
