"""Token attention: pooling with weights from self-attention over the tokens (TA-SBERT)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from simlte_st.arguments import Count, Positive, Seed, check_arguments
from simlte_st.modules.base import WeightedPooling

BLOCK = 1 << 22
"""Maximum number of attention scores in memory at once, but at least those of one query."""

VARIANCE = 0.02
"""Variance of the initial weights, which are uniform around 0 (TA-SBERT, section IV-A)."""


class TokenAttention(WeightedPooling):
    r"""Replace ``Pooling`` with a mean of token embeddings E with learned weights (TA-SBERT, Eq. 1 to 4).

    ``Q = E Wq``, ``K = E Wk``, ``T = E Wt``; ``A = softmax(Q K' / sqrt(d))``; ``O = softmax(A T / sqrt(s_max))``, one
    weight per token; ``V = sum O * E``. Both softmaxes exclude padding. ``A`` is computed in blocks of rows, and
    recomputed for the gradient, so that memory grows linearly with the length and time quadratically.

    The paper's temperature, ``0 < s <= 128``, depends on the input's length. Here it is a constant, the length of the
    longest training text, so that an embedding does not depend on its batch. A larger value brings the result closer to
    a plain mean.

    The paper's learning rate is 2e-5 for the encoder and 3e-5 for all other parameters, including those of the losses:
    pass ``learning_rate_mapping={r"^(?!.*\b(model|sentence_embedder)\.0\.)": 3e-5}`` to
    ``SentenceTransformerTrainingArguments``. If the model's modules have names, use the first module's name instead of
    ``0``.

    Args:
        embedding_dimension: Dimension d of the token embeddings and of the sentence embedding.
        s_max: Temperature of the second softmax.
        include_prompt: Whether to include prompt tokens in the pooling.
        seed: Random seed of the initial weights; the global random state is not changed.

    Features:
        See :class:`~simlte_st.modules.base.WeightedPooling`; ``token_attention`` holds the weights O.

    Raises:
        ConfigurationError: A size is not positive.

    Example:
        ::

            encoder = Transformer("google-bert/bert-base-uncased")
            model = SentenceTransformer(modules=[encoder, TokenAttention(encoder.get_embedding_dimension())])
    """

    config_keys: list[str] = ["embedding_dimension", "s_max", "include_prompt"]  # noqa: RUF012  # as in the base class

    @check_arguments
    def __init__(
        self, embedding_dimension: Count, s_max: Positive = 128.0, include_prompt: bool = True, seed: Seed = 0
    ) -> None:
        super().__init__(embedding_dimension, include_prompt)
        self.s_max = s_max
        bound = math.sqrt(3 * VARIANCE)
        generator = torch.Generator().manual_seed(seed)
        for name, rows in (("query", embedding_dimension), ("key", embedding_dimension), ("token", 1)):
            layer = nn.utils.skip_init(nn.Linear, embedding_dimension, rows, bias=False)
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            self.add_module(name, layer)

    def pool(self, embeddings: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sentence embeddings V and the weights O."""
        weights = self.token_weights(embeddings, mask)
        return torch.einsum("bs,bsd->bd", weights, embeddings.float()), weights

    def token_weights(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        """Return O, one weight per token.

        Args:
            embeddings: Token embeddings E ``[B, S, d]``, floating point.
            mask: Tokens to count, ``[B, S]``, bool.

        Returns:
            Weights ``[B, S]``, float32: 0 outside the mask, and rows that sum to 1, or to 0 if the mask is empty.
        """
        values = self.token(embeddings).float().squeeze(-1)
        queries, keys = self.query(embeddings) / math.sqrt(self.embedding_dimension), self.key(embeddings)
        batch, length = mask.shape
        rows = max(1, BLOCK // max(1, batch * length))
        recompute = torch.is_grad_enabled() and rows < length
        blocks = []
        for start in range(0, length, rows):
            arguments = (queries[:, start : start + rows], keys, values, mask)
            blocks.append(checkpoint(_attend, *arguments, use_reentrant=False) if recompute else _attend(*arguments))
        influence = torch.cat(blocks, dim=1) if blocks else values
        return _softmax(influence / math.sqrt(self.s_max), mask)


def _attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Return a block of rows of A T, ``[B, rows]``, float32."""
    scores = torch.einsum("bqd,bkd->bqk", queries, keys).float()
    return torch.einsum("bqk,bk->bq", _softmax(scores, mask[:, None]), values)


def _softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the mask; 0 everywhere if the mask is empty."""
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1).masked_fill(~mask, 0.0)
