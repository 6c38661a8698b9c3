"""The prompts that a model puts before documents and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""sentence-transformers' names of a prompt for documents."""


def document_prompt_name(prompts: Mapping[str, str | None], default: str | None) -> str | None:
    """Return the name of the prompt for documents among a model's prompts, or that of its default prompt.

    ``encode_document`` would use the prompt "document" even if that is empty and the prompt "passage" is not.
    """
    return next((name for name in DOCUMENT_PROMPTS if prompts.get(name)), default)


def document_prompt(model: Any) -> str:
    """Return the prompt that stands before every document of this package, encoded or trained on; may be empty."""
    return model.prompts.get(document_prompt_name(model.prompts, model.default_prompt_name) or "") or ""


def query_prompt(model: Any) -> str:
    """Return the model's prompt for queries, or its default prompt unless that one is for documents."""
    default = None if model.default_prompt_name in DOCUMENT_PROMPTS else model.default_prompt_name
    return model.prompts.get("query") or model.prompts.get(default or "") or ""
