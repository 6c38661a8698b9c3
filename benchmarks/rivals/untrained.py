"""Every encoder that needs no training, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from benchmarks.rivals.encoders import Bm25Encoder, ModelEncoder, TextEncoder, TfidfEncoder
from benchmarks.rivals.hub import HUB_MODELS, load_hub_model
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.compat import readable_tokens
from simlte_st.errors import ConfigurationError
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE


@dataclass(frozen=True)
class EncoderOptions:
    """What encoders are made from; the arguments of :func:`load_encoder`."""

    base: str | os.PathLike[str] = PACKAGED_BASE
    corpus: Sequence[str] | None = None
    max_seq_length: int | None = None
    chunk_mean_length: int = 4096
    trust_remote_code: bool = False
    batch_size: int = 32


def _tfidf(options: EncoderOptions) -> TextEncoder:
    if options.corpus is None:
        raise ConfigurationError("TF-IDF learns its words from texts: give corpus=, without labels.")
    return TfidfEncoder(options.corpus)


def _bm25(options: EncoderOptions) -> TextEncoder:
    return Bm25Encoder()


def _base(pooling: Literal["cls", "mean"]) -> Callable[[EncoderOptions], TextEncoder]:
    def make(options: EncoderOptions) -> TextEncoder:
        model = load_model(os.fspath(options.base), pooling, dtype=torch.float32).model
        limits = [limit for limit in (options.max_seq_length, readable_tokens(model)) if limit is not None]
        if options.max_seq_length is not None:
            model.max_seq_length = min(limits)
        return ModelEncoder(ENCODERS[f"base-{pooling}"].title, model.eval(), batch_size=options.batch_size)

    return make


def _chunk_mean(options: EncoderOptions) -> TextEncoder:
    model = load_model(os.fspath(options.base), "mean", dtype=torch.float32).model
    chunks = to_chunk_mean(model, max_length=options.chunk_mean_length)
    return ModelEncoder(ENCODERS["chunk-mean"].title, chunks.eval(), batch_size=options.batch_size)


def _hub(name: str) -> Callable[[EncoderOptions], TextEncoder]:
    return lambda options: load_hub_model(
        HUB_MODELS[name],
        max_seq_length=options.max_seq_length,
        trust_remote_code=options.trust_remote_code,
        batch_size=options.batch_size,
    )


@dataclass(frozen=True)
class EncoderEntry:
    """An encoder that needs no training.

    Attributes:
        title: What tables call it.
        make: Makes it.
        ranks_only: Whether it has scores but no vectors.
        contaminated: Benchmarks whose texts were in its training.
        note: What a reader of its numbers should know.
    """

    title: str
    make: Callable[[EncoderOptions], TextEncoder]
    ranks_only: bool = False
    contaminated: tuple[str, ...] = ()
    note: str = ""


ENCODERS: dict[str, EncoderEntry] = {
    "tfidf": EncoderEntry("TF-IDF", _tfidf),
    "bm25": EncoderEntry("BM25", _bm25, ranks_only=True),
    "base-cls": EncoderEntry("base, [CLS]", _base("cls")),
    "base-mean": EncoderEntry("base, mean", _base("mean")),
    "chunk-mean": EncoderEntry("base, mean over chunks", _chunk_mean, note="reads whole documents"),
    **{
        name: EncoderEntry(model.title, _hub(name), contaminated=model.contaminated, note=model.note)
        for name, model in HUB_MODELS.items()
    },
}
"""Every encoder by name."""


def load_encoder(
    name: str,
    *,
    base: str | os.PathLike[str] = PACKAGED_BASE,
    corpus: Sequence[str] | None = None,
    max_seq_length: int | None = None,
    chunk_mean_length: int = 4096,
    trust_remote_code: bool = False,
    batch_size: int = 32,
) -> TextEncoder:
    """Load one of :data:`ENCODERS`.

    Args:
        name: Its name.
        base: The model behind ``base-cls``, ``base-mean`` and ``chunk-mean``.
        corpus: Texts that ``tfidf`` learns its words from.
        max_seq_length: Tokens to read of a text, or as many as the model can where that is less; None for what the
            model is set to.
        chunk_mean_length: Tokens that ``chunk-mean`` reads of a text, in chunks of what the base reads.
        trust_remote_code: Run code that a repository of the Hub brings.
        batch_size: Texts encoded at once.

    Raises:
        ConfigurationError: There is no such encoder, or ``tfidf`` has no corpus.
        ModelError: The model cannot be had or loaded; of the Hub's, it is told within seconds.
        MissingExtraError: ``bm25`` without its library.
    """
    if name not in ENCODERS:
        raise ConfigurationError(f"Unknown encoder {name!r}: use one of {', '.join(ENCODERS)}.")
    options = EncoderOptions(base, corpus, max_seq_length, chunk_mean_length, trust_remote_code, batch_size)
    return ENCODERS[name].make(options)
