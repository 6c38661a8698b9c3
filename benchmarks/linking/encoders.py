"""Encoders on static word vectors: AST and the three baselines in its paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Module
from sentence_transformers.sentence_transformer.modules import CNN, Pooling, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer
from torch import nn

from simlte_st.modules import StarTransformer

VECTORS = "glove100d_top100k_fp16.npz"
HEADS = 5
"""Heads of the Star Transformer, which must divide the 100 dimensions; the paper's figure shows 6 for 300."""


class LastStates(Module):  # type: ignore[misc]
    """A GRU's last state, or the last states of both directions, as the sentence embedding."""

    config_keys: list[str] = ["embedding_dimension", "bidirectional"]  # noqa: RUF012

    def __init__(self, embedding_dimension: int, bidirectional: bool) -> None:
        super().__init__()
        self.embedding_dimension, self.bidirectional = embedding_dimension, bidirectional
        self.readers = nn.ModuleList(
            nn.GRU(embedding_dimension, embedding_dimension, batch_first=True) for _ in range(1 + bidirectional)
        )

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add ``sentence_embedding``. Packed sequences would train eight times as slowly on a CPU."""
        vectors = features["token_embeddings"]
        last = features["attention_mask"].sum(dim=1).clamp(min=1) - 1
        positions = torch.arange(vectors.shape[1], device=vectors.device)
        backwards = (last[:, None] - positions).clamp(min=0)
        sides = [vectors, torch.take_along_dim(vectors, backwards[..., None], dim=1)]
        states = [reader(side)[0] for reader, side in zip(self.readers, sides, strict=False)]
        sentence = [torch.take_along_dim(tokens, last[:, None, None], dim=1).squeeze(1) for tokens in states]
        features["sentence_embedding"] = torch.cat(sentence, dim=-1)
        return features

    def get_embedding_dimension(self) -> int:
        """Return the size of the sentence embedding."""
        return (1 + self.bidirectional) * self.embedding_dimension

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write configuration and weights."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)


class KnownWords(WhitespaceTokenizer):  # type: ignore[misc]
    """Tokenizer that drops words without a vector; a text with none left becomes token 0."""

    def tokenize(self, text: str, **kwargs: Any) -> list[int]:
        """Return the token ids of a text."""
        return super().tokenize(text, **kwargs) or [0]


def word_vectors(path: Path, words: int) -> WordEmbeddings:
    """Load frozen GloVe vectors for the first ``words`` words of a text."""
    with np.load(path) as file:
        vectors, vocabulary = file["vectors"].astype(np.float32), file["words"].tolist()
    vectors = np.concatenate([np.zeros_like(vectors[:1]), vectors])
    tokenizer = KnownWords(["<no known word>", *vocabulary], stop_words=(), do_lower_case=True)
    return WordEmbeddings(tokenizer, vectors, update_embeddings=False, max_seq_length=words)


def _cnn(size: int) -> list[nn.Module]:
    convolutions = CNN(size, out_channels=size)
    return [convolutions, Pooling(convolutions.get_embedding_dimension(), "max")]


ENCODERS: dict[str, Callable[[int], list[nn.Module]]] = {
    "GloVe, mean": lambda size: [Pooling(size, "mean")],
    "CNN": _cnn,
    "GRU": lambda size: [LastStates(size, bidirectional=False)],
    "Bi-GRU": lambda size: [LastStates(size, bidirectional=True)],
    "AST": lambda size: [StarTransformer(size, heads=HEADS)],
}
"""The modules on top of the word vectors. The first encoder is untrained."""


def make_encoder(name: str, words: WordEmbeddings, seed: int) -> SentenceTransformer:
    """Build an encoder with weights initialised from a seed."""
    torch.manual_seed(seed)
    return SentenceTransformer(modules=[words, *ENCODERS[name](words.get_embedding_dimension())], device="cpu")
