"""The Star Transformer with adaptively sparse attention: a pooling of long texts in linear time (AST)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.arguments import Count, Seed, checked
from simlte_st.errors import ConfigurationError
from simlte_st.extras import require
from simlte_st.modules.base import WeightedPooling

LEAST_ALPHA = 1.01
"""Below it the gradient of entmax by alpha, which divides by the square of alpha - 1, is imprecise."""

BISECTIONS = 16
"""Bisection steps of entmax: they find the threshold, in an interval of length 1, to 2e-5; the sum stays 1."""


class AdaptiveAttention(nn.Module):
    """Multi-head cosine attention whose heads learn how sparse they are (AST, Eq. 1 to 3 and section 3.4).

    ``a_h = entmax_h(cos(Q Wq_h, K Wk_h)) K Wv_h``, the heads side by side, without an output projection. The alpha of
    entmax is ``1 + sigmoid(a_h)`` with a parameter a head (Correia et al., 2019): 1 is softmax, 2 sparsemax; it starts
    at 1.5.
    """

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear

    def __init__(self, dimension: int, heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.heads = heads
        bound = 1 / math.sqrt(dimension)
        for name in ("query", "key", "value"):
            layer = nn.utils.skip_init(nn.Linear, dimension, dimension, bias=False)
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            self.add_module(name, layer)
        self.sparsity = nn.Parameter(torch.zeros(heads))
        self._entmax = require("entmax", "ast", "the Star Transformer").entmax_bisect

    @property
    def alpha(self) -> Tensor:
        """Alpha of each head, ``[heads]``: above 1, at most 2."""
        return (1 + torch.sigmoid(self.sparsity.float())).clamp(min=LEAST_ALPHA)

    def split(self, layer: nn.Linear, vectors: Tensor) -> Tensor:
        """Return vectors ``[..., d]`` projected and split into heads, ``[..., heads, d / heads]``, float32."""
        heads: Tensor = layer(vectors.to(layer.weight.dtype)).float().unflatten(-1, (self.heads, -1))
        return heads

    def directions(self, layer: nn.Linear, vectors: Tensor) -> Tensor:
        """Return the same with rows of length 1."""
        return functional.normalize(self.split(layer, vectors), dim=-1)

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return the entmax of scores ``[B, n, heads, keys]`` over the keys that the mask leaves, 0 elsewhere."""
        low = scores.masked_fill(~mask, -1e4)
        weights: Tensor = self._entmax(low, self.alpha[:, None], dim=-1, n_iter=BISECTIONS)
        return weights.masked_fill(~mask, 0.0)


class StarTransformer(WeightedPooling):
    """Pool token embeddings, in the place of ``Pooling``, with a Star Transformer, in linear time (AST, section 3.5).

    The states h begin as the token embeddings, the relay s as their mean. In each round every state attends to its
    window and the relay, ``C_i = [h_(i-c); ..; h_(i+c); s]`` (Eq. 5 and 6), and then the relay attends to the new
    states. The sentence embedding is ``(max(H) + s) / 2``. Attention is by the cosine, with alpha-entmax instead of
    softmax, so that tokens can have no weight at all; see :class:`AdaptiveAttention`.

    Eq. 6 has the context as the queries, which would leave a single key; here, as in the Star Transformer (Guo et al.,
    2019), a state is the query and its context the keys. The rounds share their weights: the paper calls them
    re-reading and has one alpha a head.

    Args:
        embedding_dimension: d, of token embeddings and so of the sentence embedding.
        heads: Heads of both attentions; they must divide d.
        window: c, neighbours on each side.
        rounds: T, number of rounds.
        include_prompt: Whether the tokens of a prompt are pooled too.
        seed: Seed of the initial weights; the global random numbers do not change.

    Features:
        Those of :class:`~simlte_st.modules.base.WeightedPooling`; ``token_attention`` is the relay's attention in the
        last round, the mean of its heads.

    Raises:
        ConfigurationError: A size that is not positive, or heads that do not divide d.
        MissingExtraError: entmax is not installed (extra ``ast``).
    """

    config_keys: list[str] = ["embedding_dimension", "heads", "window", "rounds", "include_prompt"]  # noqa: RUF012

    @checked
    def __init__(
        self,
        embedding_dimension: Count,
        heads: Count = 6,
        window: Count = 1,
        rounds: Count = 2,
        include_prompt: bool = True,
        seed: Seed = 0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if embedding_dimension % heads:
            raise ConfigurationError(f"heads={heads} do not divide embedding_dimension={embedding_dimension}.")
        self.embedding_dimension = embedding_dimension
        self.heads = heads
        self.window = window
        self.rounds = rounds
        self.include_prompt = include_prompt
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
            embeddings: ``[B, S, d]``, floating point.
            mask: Which tokens count, ``[B, S]``, bool. Neighbours are those in the tensor, whether they count or not.

        Returns:
            Sentence embeddings ``[B, d]``; the weights of the ring, ``[B, S, heads, 2 c + 2]``, the relay's last; the
            weights of the star, ``[B, heads, S]``; all float32.
        """
        keep = mask[..., None]
        states = embeddings.float().masked_fill(~keep, 0.0)
        relay = states.sum(dim=1) / keep.sum(dim=1).clamp(min=1)
        near = functional.pad(mask, (self.window, self.window)).unfold(1, 2 * self.window + 1, 1)
        around = torch.cat([near & keep, keep], dim=-1)[:, :, None]
        for _ in range(self.rounds):
            states, ring = self._round_of_states(states, relay, around)
            states = states.masked_fill(~keep, 0.0)
            relay, star = self._round_of_relay(states, relay, mask)
        highest = states.masked_fill(~keep, torch.finfo(states.dtype).min).amax(dim=1)
        vectors = (highest + relay) / 2
        return vectors.masked_fill(~mask.any(dim=1)[:, None], 0.0), ring, star

    def _round_of_states(self, states: Tensor, relay: Tensor, around: Tensor) -> tuple[Tensor, Tensor]:
        """Return the new states and the weights."""
        attention = self.ring
        queries = attention.directions(attention.query, states)
        keys, relay_key = (attention.directions(attention.key, vectors) for vectors in (states, relay))
        values, relay_value = (attention.split(attention.value, vectors) for vectors in (states, relay))
        near = [(queries * shifted).sum(dim=-1) for shifted in self._shifted(keys)]
        scores = torch.stack([*near, (queries * relay_key[:, None]).sum(dim=-1)], dim=-1)
        weights = attention.weights(scores, around)
        of_neighbours = weights.unbind(dim=-1)[:-1]
        attended = weights[..., -1:] * relay_value[:, None]
        for weight, shifted in zip(of_neighbours, self._shifted(values), strict=True):
            attended = torch.addcmul(attended, weight[..., None], shifted)
        return attended.flatten(-2), weights

    def _round_of_relay(self, states: Tensor, relay: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the new relay and the weights."""
        attention = self.star
        query = attention.directions(attention.query, relay)
        keys = attention.directions(attention.key, states)
        scores = torch.einsum("bhd,bshd->bhs", query, keys)
        weights = attention.weights(scores, mask[:, None])
        pooled = weights @ states  # weighing first saves a projection of every state
        value = attention.value.weight.float().unflatten(0, (self.heads, -1))
        return torch.einsum("bhd,hvd->bhv", pooled, value).float().flatten(-2), weights

    def _shifted(self, vectors: Tensor) -> list[Tensor]:
        """Return the neighbours of all tokens, from the left: 2 c + 1 views of one padded copy."""
        padded = functional.pad(vectors, (0, 0, 0, 0, self.window, self.window))
        return [padded[:, start : start + vectors.shape[1]] for start in range(2 * self.window + 1)]
