"""Encoders that need no training, texts in, vectors out: the base as it is, and models of the Hub.

Those of the Hub are refused quickly where they cannot be had.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from benchmarks.rivals.hub_models import HUB_MODELS, HubModel, Task
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.compat import readable_tokens, with_encoder
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer import SimlteLongformerModel
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE, find_model

ENCODERS: dict[str, str] = {
    "base-cls": "base, [CLS]",
    "base-mean": "base, mean",
    "chunk-mean": "base, mean over chunks",
    **{name: model.title for name, model in HUB_MODELS.items()},
}
"""What tables call every encoder that needs no training, by its name."""


class ModelEncoder:
    """A SentenceTransformer as it is, with the prompts that it wants."""

    def __init__(self, model: SentenceTransformer, prompts: Mapping[Task, str] | None = None) -> None:
        self.model = model
        self.prompts = dict(prompts or {})
        default: Task = "classification"
        if default in self.prompts:
            model.prompts = {**model.prompts, default: self.prompts[default]}
            model.default_prompt_name = default

    def encode(self, texts: Sequence[str], task: Task = "classification") -> NDArray[np.float32]:
        """Encode texts with a task's prompt."""
        vectors = self.model.encode(
            list(texts), prompt=self.prompts.get(task, ""), show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)


def load_encoder(
    name: str,
    *,
    base: str | os.PathLike[str] = PACKAGED_BASE,
    max_seq_length: int | None = None,
    chunk_mean_length: int = 4096,
    trust_remote_code: bool = False,
) -> ModelEncoder:
    """Load one of :data:`ENCODERS`."""
    if name not in ENCODERS:
        raise ConfigurationError(f"Unknown encoder {name!r}: use one of {', '.join(ENCODERS)}.")
    if name in HUB_MODELS:
        return load_hub_model(HUB_MODELS[name], max_seq_length=max_seq_length, trust_remote_code=trust_remote_code)
    model = load_model(os.fspath(base), "cls" if name == "base-cls" else "mean", dtype=torch.float32).model
    if name == "chunk-mean":
        model = to_chunk_mean(model, max_length=chunk_mean_length)
    elif max_seq_length is not None:
        model.max_seq_length = min(max_seq_length, readable_tokens(model) or max_seq_length)
    return ModelEncoder(model.eval())


def load_hub_model(
    entry: HubModel, *, max_seq_length: int | None = None, trust_remote_code: bool = False
) -> ModelEncoder:
    """Load a model of the Hub, or of its cache where the Hub cannot be reached.

    A stock Longformer becomes this package's, of the same weights, with [CLS] attending globally: through
    sentence-transformers' pipeline the stock one would give [CLS] its window only.
    """
    if entry.remote_code and not trust_remote_code:
        raise ModelError(
            f"{entry.repository} brings code of its own. It is run only where trust_remote_code=True is given "
            "(in benchmarks: --trust-remote-code); read it first."
        )
    source = find_model(entry.repository)
    try:
        model = SentenceTransformer(
            source,
            trust_remote_code=entry.remote_code and trust_remote_code,
            model_kwargs={"dtype": torch.float32},
        )
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        raise ModelError(f"{entry.repository} could not be loaded: {error}") from error
    _set_pooling(model, entry)
    first = model[0]
    if isinstance(first, Transformer):
        kind = first.auto_model.config.model_type
        if kind == "longformer":
            ours: Any = SimlteLongformerModel.from_longformer(first.auto_model, "cls")
            model[0] = with_encoder(first, ours.to(model.device))
        elif kind == "big_bird":
            _steady_big_bird(first)
    limits = (entry.max_tokens, max_seq_length, readable_tokens(model))
    model.max_seq_length = min(limit for limit in limits if limit is not None)
    return ModelEncoder(model.eval(), entry.prompts)


def _set_pooling(model: SentenceTransformer, entry: HubModel) -> None:
    """Return the model the entry's pooling; the modules of a repository that says how to pool stay."""
    pooling: Any = next((module for module in model if isinstance(module, Pooling)), None)
    if pooling is None:
        raise ModelError(f"{entry.repository} has no pooling.")
    if entry.pooling is not None:
        mode = "cls" if entry.pooling == "pooler" else entry.pooling
        pooling = Pooling(pooling.embedding_dimension, pooling_mode=mode)
        model[1] = pooling.to(model.device)
    if entry.pooling == "pooler":
        model.append(_pooler(model, entry.repository).to(model.device))
    pooling.include_prompt = entry.include_prompt


def _pooler(model: SentenceTransformer, repository: str) -> Dense:
    """Make a module of the pooler that the encoder has and sentence-transformers leaves unused."""
    dense = getattr(getattr(model.transformers_model, "pooler", None), "dense", None)
    if not isinstance(dense, nn.Linear):
        raise ModelError(f"{repository} has no pooler.")
    weight, bias = dense.weight.detach().clone(), dense.bias.detach().clone()
    return Dense(
        dense.in_features, dense.out_features, activation_function=nn.Tanh(), init_weight=weight, init_bias=bias
    )


def _steady_big_bird(transformer: Transformer) -> None:
    """Let transformers' BigBird read each batch as its length asks for, whatever it has read before.

    At its first batch of few tokens the stock model goes over to full attention, for all batches to come; and its
    sparse attention reseeds numpy's global generator at every pass (in newer versions of transformers only while it is
    trained).
    """
    sparse, full = "block_sparse", "original_full"
    encoder: Any = transformer.auto_model
    if encoder.attention_type != sparse:
        return
    config = encoder.config
    fewest = (5 + 2 * config.num_random_blocks) * config.block_size  # tokens that sparse attention needs more than
    states: list[Any] = []

    # sentence-transformers may call the encoder's forward itself, past its hooks: they are on the module around it.
    def before(module: Any, inputs: tuple[Any, ...]) -> None:
        states.append(np.random.get_state())
        with torch.random.fork_rng():  # the layers that it makes are drawn at random, and then get the old weights
            encoder.set_attention_type(sparse if inputs[0]["input_ids"].shape[1] > fewest else full)

    def after(module: Any, inputs: Any, result: Any) -> None:
        np.random.set_state(states.pop())

    transformer.register_forward_pre_hook(before)
    transformer.register_forward_hook(after, always_call=True)
