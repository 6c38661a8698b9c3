"""The encoders of the Hub that documents are compared on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Task = Literal["classification", "query", "document"]
"""What a text is encoded for: some models are told by a prompt."""

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
    """

    title: str
    repository: str
    pooling: Literal["cls", "mean", "pooler"] | None = None
    max_tokens: int = 512
    prompts: Mapping[Task, str] = field(default_factory=dict)
    include_prompt: bool = True
    remote_code: bool = False
    contaminated: tuple[str, ...] = ()


HUB_MODELS: dict[str, HubModel] = {
    "unsup-simcse": HubModel("SimCSE, unsupervised (Hub)", "princeton-nlp/unsup-simcse-bert-base-uncased", "cls"),
    # Trained on labels of NLI.
    "sup-simcse": HubModel("SimCSE, supervised (Hub)", "princeton-nlp/sup-simcse-bert-base-uncased", "pooler"),
    "facebook-contriever": HubModel("Contriever (Hub)", "facebook/contriever", "mean"),
    # Trained on labelled tasks, 20News among them: the DocSplit paper gives no numbers there.
    "instructor": HubModel(
        "INSTRUCTOR (Hub)",
        "hkunlp/instructor-large",
        prompts=_INSTRUCTOR,
        include_prompt=False,
        contaminated=("20news",),
    ),
    "longformer": HubModel("Longformer (Hub)", "allenai/longformer-base-4096", "cls", 4096),
    "bigbird": HubModel("BigBird (Hub)", "google/bigbird-roberta-base", "cls", 4096),
    # All below: trained on labelled pairs.
    "modernbert-embed": HubModel(
        "ModernBERT-embed (Hub)", "nomic-ai/modernbert-embed-base", max_tokens=8192, prompts=_MODERNBERT_EMBED
    ),
    "gte-modernbert": HubModel("GTE-ModernBERT (Hub)", "Alibaba-NLP/gte-modernbert-base", max_tokens=8192),
    "gte": HubModel("GTE v1.5 (Hub)", "Alibaba-NLP/gte-base-en-v1.5", max_tokens=8192, remote_code=True),
    "jina": HubModel("Jina v2 (Hub)", "jinaai/jina-embeddings-v2-base-en", "mean", 8192, remote_code=True),
    "nomic": HubModel(
        "Nomic v1.5 (Hub)", "nomic-ai/nomic-embed-text-v1.5", max_tokens=8192, prompts=_NOMIC, remote_code=True
    ),
}
"""Every model by its short name, in the order of the tables."""
