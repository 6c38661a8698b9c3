"""Token attention: a pooling that weighs each token by what the tokens that it attends to say of it (TA-SBERT)."""

from __future__ import annotations

import math
from typing import Any

import torch
from sentence_transformers.base.modules import Module
from sentence_transformers.util.tensor import repad_flattened_features
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from typing_extensions import Self

from simlte_st.compat import mask_without_prompt
from simlte_st.errors import ConfigurationError

BLOCK = 1 << 22
"""Scores of queries and keys that are held at once; at least those of one query."""

VARIANCE = 0.02
"""Of the weights before training: uniform around 0 (TA-SBERT, section IV-A)."""


class TokenAttention(Module):
    """Pool token embeddings E, in the place of ``Pooling`` (TA-SBERT, Eq. 1 to 4).

    ``Q = E Wq``, ``K = E Wk``, ``T = E Wt``; ``A = softmax(Q K' / sqrt(d))``; ``O = softmax(A T / sqrt(s_max))``, one
    weight a token; ``V = sum O * E``. Both softmaxes are over real tokens. ``A`` is only ever multiplied by ``T``, so
    it is computed a block of rows at a time, and again for the gradient: memory grows with the length, time with its
    square.

    The paper calls ``s_max`` "the temperature scalar for TA, which is used to control the variance of O based on the
    input sentence length" and has ``0 < s <= 128``. Here it is the most tokens that a text of the training may have, a
    constant: an embedding then does not depend on what else is in its batch. The larger, the nearer to a plain mean.

    A learning rate of its own (the paper: 3e-5, the encoder 2e-5) it gets in the Trainer by
    ``learning_rate_mapping={r"token_attention": 3e-5}`` of ``SentenceTransformerTrainingArguments``, where the model
    was made with names, ``SentenceTransformer(modules=OrderedDict(transformer=..., token_attention=...))``.

    Args:
        embedding_dimension: d, of token embeddings and so of the sentence embedding.
        s_max: The temperature.
        include_prompt: Whether the tokens of a prompt are pooled too.
        seed: Decides the initial weights; the global random numbers are not touched.

    Features:
        ``token_embeddings`` ``[B, S, d]`` and ``attention_mask`` ``[B, S]``, or flattened (``cu_seq_lens_q``), become
        ``sentence_embedding`` ``[B, d]``, of the token embeddings' dtype, and ``token_attention`` ``[B, S]``, the
        weights O in float32: 0 at padding, the sum of a text 1. A text without a token that counts has 0 in both.

    Raises:
        ConfigurationError: A size that is not positive.
    """

    config_keys: list[str] = ["embedding_dimension", "s_max", "include_prompt"]  # noqa: RUF012  # as in the base class

    def __init__(
        self, embedding_dimension: int, s_max: float = 128.0, include_prompt: bool = True, seed: int = 0
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if embedding_dimension < 1 or s_max <= 0:
            raise ConfigurationError(
                f"embedding_dimension={embedding_dimension}, s_max={s_max}: both must be greater than 0."
            )
        self.embedding_dimension = embedding_dimension
        self.s_max = s_max
        self.include_prompt = include_prompt
        bound = math.sqrt(3 * VARIANCE)
        generator = torch.Generator().manual_seed(seed)
        for name, rows in (("query", embedding_dimension), ("key", embedding_dimension), ("token", 1)):
            layer = nn.utils.skip_init(nn.Linear, embedding_dimension, rows, bias=False)
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            self.add_module(name, layer)

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add ``sentence_embedding`` and ``token_attention``."""
        padded = repad_flattened_features(dict(features)) if "cu_seq_lens_q" in features else features
        embeddings = padded["token_embeddings"]
        mask = padded.get("attention_mask")
        if mask is None or mask.shape[-1] != embeddings.shape[1]:
            mask = torch.ones(embeddings.shape[:2], dtype=torch.int64, device=embeddings.device)
        if not self.include_prompt and "prompt_length" in features:
            mask = mask_without_prompt(mask, features["prompt_length"])
        weights = self.token_weights(embeddings, mask.bool())
        features["token_attention"] = weights
        features["sentence_embedding"] = torch.einsum("bs,bsd->bd", weights, embeddings.float()).to(embeddings.dtype)
        return features

    def token_weights(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        """Compute O, one weight a token.

        Args:
            embeddings: E, ``[B, S, d]``, floating point.
            mask: Which tokens count, ``[B, S]``, bool.

        Returns:
            ``[B, S]``, float32: 0 where the mask is False, the sum of a row 1, or 0 where nothing counts.
        """
        values = self.token(embeddings).float().squeeze(-1)
        queries, keys = self.query(embeddings) / math.sqrt(self.embedding_dimension), self.key(embeddings)
        batch, length = mask.shape
        rows = max(1, BLOCK // max(1, batch * length))
        again = torch.is_grad_enabled() and rows < length
        found = []
        for start in range(0, length, rows):
            arguments = (queries[:, start : start + rows], keys, values, mask)
            found.append(checkpoint(_attended, *arguments, use_reentrant=False) if again else _attended(*arguments))
        influence = torch.cat(found, dim=1) if found else values
        return _softmax(influence / math.sqrt(self.s_max), mask)

    def get_embedding_dimension(self) -> int:
        """Give d."""
        return self.embedding_dimension

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write configuration and weights."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        init_defaults: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Read what :meth:`save` wrote, from a folder or the Hub."""
        place: dict[str, Any] = {
            "subfolder": subfolder,
            "token": token,
            "cache_folder": cache_folder,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        module = cls(**{**(init_defaults or {}), **cls.load_config(model_name_or_path, **place)})
        loaded: Self = cls.load_torch_weights(model_name_or_path, model=module, **place)
        return loaded


def _attended(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Compute a block of rows of A T: ``[B, rows]``, float32."""
    scores = torch.einsum("bqd,bkd->bqk", queries, keys).float()
    return torch.einsum("bqk,bk->bq", _softmax(scores, mask[:, None]), values)


def _softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over what the mask leaves; 0 everywhere where it leaves nothing."""
    shares = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
    return shares.masked_fill(~mask, 0.0)
