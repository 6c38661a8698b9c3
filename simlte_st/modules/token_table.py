"""Extend an encoder's embedding with the mean of the vectors in a token table."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from simlte_st.arguments import Count, Share, check_arguments
from simlte_st.compat import Features
from simlte_st.modules.base import SavedModule, repad_features

WEIGHT, FULL = 0.5, 512
"""The second part's share in long texts, and the length in tokens at which a text is long. Both were chosen on ten data
sets, also for static models, where scores for shares of .4 to .6 differ by at most half a point. A constant share costs
encoders 2 to 10 points on STS-B; one that grows with the length costs nothing."""


class TokenTable(SavedModule):
    """Append the mean of a text's vectors in a token table to its embedding.

    A pretrained encoder does not know which words distinguish a user's documents; a table of token vectors from a
    latent semantic analysis of those documents does (:func:`~simlte_st.models.lsa.append_lsa`). The cosine of two long
    texts becomes a mixture: ``1 - weight`` of the encoder's and ``weight`` of the table's. In a text of fewer than 512
    tokens the weight is proportionally smaller. The table covers the tokens that the encoder reads, without prompts.

    The table separates documents by style, period and type, sometimes much better than the encoder does, but adds
    hardly anything for topics (``benchmarks/results/models.md``).

    Args:
        embedding_dimension: Dimension d of the incoming sentence embedding; a longer one is truncated to d numbers.
        vocabulary_size: Size V of the tokenizer's vocabulary.
        dimension: Dimension k of the token vectors.
        weight: The table's share in the cosine of long texts, 0 to 1.

    Attributes:
        table: Token vectors ``[V, k]``, float32. Tokens whose vector begins with 0 are ignored.

    Features:
        Extends ``sentence_embedding`` ``[B, d]`` to ``[B, d + k]`` in its dtype. Reads ``input_ids`` and
        ``attention_mask`` ``[B, S]``, or flattened ids (``cu_seq_lens_q``; ``offsets`` ``[B]`` after a
        ``StaticEmbedding``). Both parts are scaled to length 1 before weighting; the second is 0 for a text without
        tokens that count.

    Raises:
        ConfigurationError: A size is not positive, or ``weight`` is outside 0 to 1.
    """

    config_keys: list[str] = ["embedding_dimension", "vocabulary_size", "dimension", "weight"]  # noqa: RUF012  # as in the base class
    include_prompt = False
    table: Tensor

    @check_arguments
    def __init__(
        self, embedding_dimension: Count, vocabulary_size: Count, dimension: Count, weight: Share = WEIGHT
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.embedding_dimension, self.vocabulary_size = embedding_dimension, vocabulary_size
        self.dimension, self.weight = dimension, weight
        self.register_buffer("table", torch.zeros(vocabulary_size, dimension))

    @classmethod
    def of(cls, table: Tensor, embedding_dimension: int) -> Self:
        """Return a module with a given table, for d-dimensional embeddings."""
        module = cls(embedding_dimension, *table.shape)
        module.table = table
        return module

    def forward(self, features: Features, **kwargs: object) -> Features:
        """Extend ``sentence_embedding``."""
        embedding: Tensor = features["sentence_embedding"][:, : self.embedding_dimension]
        if "offsets" in features:
            ids, offsets, is_known = features["input_ids"], features["offsets"], (self.table[:, :1] != 0).float()
            tables = (self.table, is_known)
            sums, counts = (functional.embedding_bag(ids, table, offsets, mode="sum") for table in tables)
        else:
            ids, mask = repad_features(features, "input_ids", include_prompt=False)
            rows = self.table[ids].float() * mask[..., None]
            sums, counts = rows.sum(dim=1), (rows[..., :1] != 0).float().sum(dim=1)
        share = self.weight * (counts / FULL).clamp(max=1)
        first, second = (functional.normalize(part.float(), dim=-1) for part in (embedding, sums))
        extended = torch.cat([first * (1 - share).sqrt(), second * share.sqrt()], dim=-1)
        features["sentence_embedding"] = extended.to(embedding.dtype)
        return features

    def get_embedding_dimension(self) -> int:
        """Return d + k."""
        return self.embedding_dimension + self.dimension
