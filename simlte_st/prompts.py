"""Find a model's prompts for documents and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""Names that sentence-transformers uses for a document prompt."""


def document_prompt_name(prompts: Mapping[str, str | None], default: str | None) -> str | None:
    """Return the name of a model's document prompt or, failing that, of its default prompt.

    Unlike ``encode_document``, this skips an empty "document" prompt if there is a "passage" prompt.
    """
    return next((name for name in DOCUMENT_PROMPTS if prompts.get(name)), default)


def document_prompt(model: Any) -> str:
    """Return the prompt of a SentenceTransformer or TokenVectors for documents; it may be empty."""
    return model.prompts.get(document_prompt_name(model.prompts, model.default_prompt_name) or "") or ""


def query_prompt(model: Any) -> str:
    """Return the model's query prompt, or its default prompt if that is not a document prompt."""
    default = None if model.default_prompt_name in DOCUMENT_PROMPTS else model.default_prompt_name
    return model.prompts.get("query") or model.prompts.get(default or "") or ""
