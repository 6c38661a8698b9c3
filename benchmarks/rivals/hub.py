"""Encoders of the Hub that documents are compared on, and loading them: quickly refused where they cannot be had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from benchmarks.rivals.big_bird import steady_big_bird
from benchmarks.rivals.encoders import ModelEncoder, Task
from simlte_st.compat import readable_tokens, with_encoder
from simlte_st.errors import ModelError
from simlte_st.longformer import SimlteLongformerModel
from simlte_st.models.names import find_model

_NOMIC: Mapping[Task, str] = {
    "classification": "classification: ",
    "query": "search_query: ",
    "document": "search_document: ",
}
_MODERNBERT_EMBED: Mapping[Task, str] = {  # trained with these two only
    "classification": "search_document: ",
    "query": "search_query: ",
    "document": "search_document: ",
}
# The paper (Su et al., 2023) gives every data set an instruction of its own; these are of its form, for any documents.
_INSTRUCTOR: Mapping[Task, str] = {
    "classification": "Represent the document for classification: ",
    "query": "Represent the document for retrieving supporting documents: ",
    "document": "Represent the document for retrieval: ",
}


@dataclass(frozen=True)
class HubModel:
    """A model of the Hub.

    Attributes:
        title: What tables call it.
        repository: Its name on the Hub, or a folder.
        pooling: ``"cls"``, ``"mean"``, ``"pooler"`` (BERT's pooler over [CLS]), or None for what the repository says.
        max_tokens: Tokens that it reads, special tokens included.
        prompts: The prompt of each task that has one.
        include_prompt: Whether the prompt's tokens are pooled.
        remote_code: Whether the repository brings code of its own, which is run only where that is allowed.
        contaminated: Benchmarks whose texts were in its training: its numbers there mean nothing.
        note: What a reader of its numbers should know.
    """

    title: str
    repository: str
    pooling: Literal["cls", "mean", "pooler"] | None = None
    max_tokens: int = 512
    prompts: Mapping[Task, str] = field(default_factory=dict)
    include_prompt: bool = True
    remote_code: bool = False
    contaminated: tuple[str, ...] = ()
    note: str = ""


HUB_MODELS: dict[str, HubModel] = {
    "unsup-simcse": HubModel("SimCSE, unsupervised (Hub)", "princeton-nlp/unsup-simcse-bert-base-uncased", "cls"),
    "sup-simcse": HubModel(
        "SimCSE, supervised (Hub)", "princeton-nlp/sup-simcse-bert-base-uncased", "pooler", note="trained on NLI labels"
    ),
    "facebook-contriever": HubModel("Contriever (Hub)", "facebook/contriever", "mean"),
    "instructor": HubModel(
        "INSTRUCTOR (Hub)",
        "hkunlp/instructor-large",
        prompts=_INSTRUCTOR,
        include_prompt=False,
        contaminated=("20news",),
        note="trained on labelled tasks; the DocSplit paper gives no numbers on 20News, which was among them",
    ),
    "longformer": HubModel(
        "Longformer (Hub)", "allenai/longformer-base-4096", "cls", 4096, note="[CLS] attends globally"
    ),
    "bigbird": HubModel("BigBird (Hub)", "google/bigbird-roberta-base", "cls", 4096, note="sparse where it can be"),
    "modernbert-embed": HubModel(
        "ModernBERT-embed (Hub)",
        "nomic-ai/modernbert-embed-base",
        max_tokens=8192,
        prompts=_MODERNBERT_EMBED,
        note="trained on labelled pairs",
    ),
    "gte-modernbert": HubModel(
        "GTE-ModernBERT (Hub)", "Alibaba-NLP/gte-modernbert-base", max_tokens=8192, note="trained on labelled pairs"
    ),
    "gte": HubModel(
        "GTE v1.5 (Hub)",
        "Alibaba-NLP/gte-base-en-v1.5",
        max_tokens=8192,
        remote_code=True,
        note="trained on labelled pairs",
    ),
    "jina": HubModel(
        "Jina v2 (Hub)",
        "jinaai/jina-embeddings-v2-base-en",
        "mean",
        8192,
        remote_code=True,
        note="trained on labelled pairs",
    ),
    "nomic": HubModel(
        "Nomic v1.5 (Hub)",
        "nomic-ai/nomic-embed-text-v1.5",
        max_tokens=8192,
        prompts=_NOMIC,
        remote_code=True,
        note="trained on labelled pairs",
    ),
}
"""Every model by its short name."""


def load_hub_model(
    entry: HubModel, *, max_seq_length: int | None = None, trust_remote_code: bool = False, batch_size: int = 32
) -> ModelEncoder:
    """Load a model of the Hub, or of its cache where the Hub cannot be reached.

    A stock Longformer becomes this package's, of the same weights, with [CLS] attending globally: through
    sentence-transformers' pipeline the stock one would give [CLS] its window only.

    Args:
        entry: The model.
        max_seq_length: Tokens to read of a text, or as many as the model can where that is less; None for these.
        trust_remote_code: Run code that the repository brings.
        batch_size: Texts encoded at once.

    Raises:
        ModelError: The repository cannot be reached and is not in the cache (told within seconds), wants code of its
            own to be run, or cannot be loaded.
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
            steady_big_bird(first)
    limits = (entry.max_tokens, max_seq_length, readable_tokens(model))
    model.max_seq_length = min(limit for limit in limits if limit is not None)
    return ModelEncoder(entry.title, model.eval(), entry.prompts, batch_size)


def _set_pooling(model: SentenceTransformer, entry: HubModel) -> None:
    """Give the model the entry's pooling; the modules of a repository that says how to pool stay."""
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
