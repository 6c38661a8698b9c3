"""A second vector for each token, whose mean becomes the second part of an encoder's embedding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from typing_extensions import Self

from simlte_st.arguments import Count, Share, checked
from simlte_st.modules.base import SavedModule, padded

WEIGHT, FULL = 0.5, 512
"""Share of the second part in long texts, and tokens of a long text. Chosen on ten sets of documents, for static models
too, where shares of .4 to .6 are within half a point. A share that does not grow with the length costs encoders 2 to 10
points of STS-B, one that does nothing."""


class TokenTable(SavedModule):
    """Append the mean of a text's token vectors, from a table of their own, to its embedding.

    An encoder that was trained elsewhere does not know which words distinguish a user's documents. A table of what a
    latent semantic analysis of them says about each token does (:func:`~simlte_st.models.lsa.append_lsa`). The cosine
    of two long texts becomes a mixture: ``1 - weight`` of the encoder's and ``weight`` of the table's. For a text of
    fewer than 512 tokens the weight is proportionally smaller. Tokens are those that the encoder reads, without
    prompt.

    It separates style, period and kind, sometimes much better than the encoder; on topics it adds hardly anything
    (``benchmarks/results/models.md``).

    Args:
        embedding_dimension: d, of the incoming sentence embedding; the first d numbers of a longer one are used.
        vocabulary_size: V, of the tokenizer.
        dimension: k, of the token vectors.
        weight: Share of the table in the cosine of long texts, 0 to 1.

    Attributes:
        table: The vectors, ``[V, k]``, float32. A token whose vector begins with 0 does not count.

    Features:
        ``sentence_embedding`` ``[B, d]``, with ``input_ids`` and ``attention_mask`` ``[B, S]`` or flattened
        (``cu_seq_lens_q``; ``offsets`` ``[B]`` after a ``StaticEmbedding``), becomes ``[B, d + k]``, of its dtype: both
        parts have length 1 before they are weighted. The second is 0 for a text without a token that counts.

    Raises:
        ConfigurationError: A size that is not positive, or a weight outside 0 to 1.
    """

    config_keys: list[str] = ["embedding_dimension", "vocabulary_size", "dimension", "weight"]  # noqa: RUF012  # as in the base class
    include_prompt = False
    table: Tensor

    @checked
    def __init__(
        self, embedding_dimension: Count, vocabulary_size: Count, dimension: Count, weight: Share = WEIGHT
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.embedding_dimension = embedding_dimension
        self.vocabulary_size = vocabulary_size
        self.dimension = dimension
        self.weight = weight
        self.register_buffer("table", torch.zeros(vocabulary_size, dimension))

    @classmethod
    def of(cls, table: Tensor, embedding_dimension: int) -> Self:
        """Return a module with these vectors, for embeddings of d numbers."""
        made = cls(embedding_dimension, *table.shape)
        made.table = table
        return made

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Extend ``sentence_embedding``."""
        embedding: Tensor = features["sentence_embedding"][:, : self.embedding_dimension]
        if "offsets" in features:
            ids, offsets, known = features["input_ids"], features["offsets"], (self.table[:, :1] != 0).float()
            sums, counted = (functional.embedding_bag(ids, each, offsets, mode="sum") for each in (self.table, known))
        else:
            ids, mask = padded(features, "input_ids", include_prompt=False)
            rows = self.table[ids].float() * mask[..., None]
            sums, counted = rows.sum(dim=1), (rows[..., :1] != 0).float().sum(dim=1)
        share = self.weight * (counted / FULL).clamp(max=1)
        own, second = (functional.normalize(part.float(), dim=-1) for part in (embedding, sums))
        both = torch.cat([own * (1 - share).sqrt(), second * share.sqrt()], dim=-1)
        features["sentence_embedding"] = both.to(embedding.dtype)
        return features

    def get_embedding_dimension(self) -> int:
        """Return d + k."""
        return self.embedding_dimension + self.dimension
