"""The Star Transformer with adaptively sparse attention, which pools long texts in linear time (AST)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.arguments import Count, Seed, check_arguments
from simlte_st.errors import ConfigurationError
from simlte_st.extras import require
from simlte_st.modules.base import WeightedPooling

MIN_ALPHA = 1.01
"""Smallest alpha. Below it, the gradient, which divides by the square of alpha - 1, becomes imprecise."""

BISECTIONS = 16
"""Bisection steps of entmax. In an interval of length 1, 16 steps find the threshold to 2e-5; the sum stays 1."""


class AdaptiveAttention(nn.Module):
    """Multi-head cosine attention with learned sparsity (AST, Eq. 1 to 3 and section 3.4).

    Computes ``entmax_h(cos(Q Wq_h, K Wk_h)) K Wv_h`` for each head h and concatenates the heads, without an output
    projection. The alpha of entmax is ``1 + sigmoid(a_h)`` with one parameter per head (Correia et al., 2019): 1 is
    softmax, 2 is sparsemax. It starts at 1.5.
    """

    def __init__(self, dimension: int, heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.heads = heads
        bound = 1 / math.sqrt(dimension)
        layers = [nn.utils.skip_init(nn.Linear, dimension, dimension, bias=False) for _ in range(3)]
        for layer in layers:
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
        self.query, self.key, self.value = layers
        self.sparsity = nn.Parameter(torch.zeros(heads))
        self._entmax = require("entmax", "ast", "the Star Transformer").entmax_bisect

    @property
    def alpha(self) -> Tensor:
        """Alpha of each head, ``[heads]``, between 1 and 2."""
        return (1 + torch.sigmoid(self.sparsity.float())).clamp(min=MIN_ALPHA)

    def split(self, layer: nn.Linear, vectors: Tensor) -> Tensor:
        """Project vectors ``[..., d]`` and split them into heads ``[..., heads, d / heads]``, float32."""
        heads: Tensor = layer(vectors.to(layer.weight.dtype)).float().unflatten(-1, (self.heads, -1))
        return heads

    def directions(self, layer: nn.Linear, vectors: Tensor) -> Tensor:
        """Project and split vectors with :meth:`split`, and scale each head to length 1."""
        return functional.normalize(self.split(layer, vectors), dim=-1)

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return the entmax of scores ``[B, n, heads, keys]`` over the keys in the mask; 0 elsewhere."""
        weights: Tensor = self._entmax(scores.masked_fill(~mask, -1e4), self.alpha[:, None], dim=-1, n_iter=BISECTIONS)
        return weights.masked_fill(~mask, 0.0)


class StarTransformer(WeightedPooling):
    """Replace ``Pooling`` with a Star Transformer, which pools in linear time (AST, section 3.5).

    The states h start as the token embeddings, and the relay s as their mean. In each round every state attends to its
    window and the relay, ``C_i = [h_(i-c); ..; h_(i+c); s]`` (Eq. 5 and 6); then the relay attends to the new states.
    The sentence embedding is ``(max(H) + s) / 2``. Attention uses cosines and alpha-entmax instead of softmax, so that
    tokens can have a weight of exactly 0; see :class:`AdaptiveAttention`.

    Eq. 6 uses the context as the queries, which would leave a single key. Here, as in the Star Transformer (Guo et al.,
    2019), the state is the query and its context has the keys. The rounds share their weights: the paper calls them
    re-reading and has one alpha per head.

    Args:
        embedding_dimension: Dimension d of the token embeddings and of the sentence embedding.
        heads: Number of heads of both attentions; must divide d.
        window: Number of neighbours c on each side.
        rounds: Number of rounds T.
        include_prompt: Whether to include prompt tokens in the pooling.
        seed: Random seed of the initial weights; the global random state is not changed.

    Features:
        See :class:`~simlte_st.modules.base.WeightedPooling`; ``token_attention`` is the relay's attention in the last
        round, averaged over its heads.

    Raises:
        ConfigurationError: A size is not positive, or ``heads`` does not divide d.
        MissingExtraError: entmax is not installed (the ``ast`` extra).

    Example:
        ::

            encoder = Transformer("google-bert/bert-base-uncased")
            model = SentenceTransformer(modules=[encoder, StarTransformer(encoder.get_embedding_dimension())])
    """

    config_keys: list[str] = ["embedding_dimension", "heads", "window", "rounds", "include_prompt"]  # noqa: RUF012

    @check_arguments
    def __init__(
        self,
        embedding_dimension: Count,
        heads: Count = 6,
        window: Count = 1,
        rounds: Count = 2,
        include_prompt: bool = True,
        seed: Seed = 0,
    ) -> None:
        super().__init__(embedding_dimension, include_prompt)
        if embedding_dimension % heads:
            raise ConfigurationError(f"embedding_dimension={embedding_dimension} is not divisible by heads={heads}.")
        self.heads, self.window, self.rounds = heads, window, rounds
        generator = torch.Generator().manual_seed(seed)
        self.ring = AdaptiveAttention(embedding_dimension, heads, generator)
        self.star = AdaptiveAttention(embedding_dimension, heads, generator)

    def pool(self, embeddings: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return sentence embeddings and the relay's weights."""
        vectors, _, relay = self.attention(embeddings, mask)
        return vectors, relay.mean(dim=1)

    def attention(self, embeddings: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return sentence embeddings and all weights of the last round.

        Args:
            embeddings: Token embeddings ``[B, S, d]``, floating point.
            mask: Tokens to count, ``[B, S]``, bool. Neighbours are adjacent in the tensor, whether they count or not.

        Returns:
            Sentence embeddings ``[B, d]``, the ring's weights ``[B, S, heads, 2 c + 2]`` with the relay's last, and the
            star's weights ``[B, heads, S]``; all float32.
        """
        keep = mask[..., None]
        states = embeddings.float().masked_fill(~keep, 0.0)
        relay = states.sum(dim=1) / keep.sum(dim=1).clamp(min=1)
        near = functional.pad(mask, (self.window, self.window)).unfold(1, 2 * self.window + 1, 1)
        context = torch.cat([near & keep, keep], dim=-1)[:, :, None]
        for _ in range(self.rounds):
            states, ring = self._update_states(states, relay, context)
            states = states.masked_fill(~keep, 0.0)
            relay, star = self._update_relay(states, relay, mask)
        highest = states.masked_fill(~keep, torch.finfo(states.dtype).min).amax(dim=1)
        vectors = (highest + relay) / 2
        return vectors.masked_fill(~mask.any(dim=1)[:, None], 0.0), ring, star

    def _update_states(self, states: Tensor, relay: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return the new states and the weights."""
        attention = self.ring
        queries = attention.directions(attention.query, states)
        keys, relay_key = (attention.directions(attention.key, vectors) for vectors in (states, relay))
        values, relay_value = (attention.split(attention.value, vectors) for vectors in (states, relay))
        near = [(queries * neighbours).sum(dim=-1) for neighbours in self._neighbours(keys)]
        weights = attention.weights(torch.stack([*near, (queries * relay_key[:, None]).sum(dim=-1)], dim=-1), context)
        near_weights = weights.unbind(dim=-1)[:-1]
        sums = weights[..., -1:] * relay_value[:, None]
        for weight, neighbours in zip(near_weights, self._neighbours(values), strict=True):
            sums = torch.addcmul(sums, weight[..., None], neighbours)
        return sums.flatten(-2), weights

    def _update_relay(self, states: Tensor, relay: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the new relay and the weights."""
        attention = self.star
        query = attention.directions(attention.query, relay)
        scores = torch.einsum("bhd,bshd->bhs", query, attention.directions(attention.key, states))
        weights = attention.weights(scores, mask[:, None])
        pooled = weights @ states  # weighting first avoids projecting every state
        value = attention.value.weight.float().unflatten(0, (self.heads, -1))
        return torch.einsum("bhd,hvd->bhv", pooled, value).float().flatten(-2), weights

    def _neighbours(self, vectors: Tensor) -> list[Tensor]:
        """Return the neighbours of all tokens, left to right, as 2 c + 1 views of one padded copy."""
        padded = functional.pad(vectors, (0, 0, 0, 0, self.window, self.window))
        return [padded[:, start : start + vectors.shape[1]] for start in range(2 * self.window + 1)]
