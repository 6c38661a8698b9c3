"""Reject unsupported kinds of models early."""

from __future__ import annotations

import json
from typing import Any

from sentence_transformers.util import load_file_path

from simlte_st.errors import ModelError

_KINDS = ("SparseEncoder", "CrossEncoder", "MultiVectorEncoder")


def check_kind(name: str, places: tuple[str, ...], local: bool, cache: str | None = None) -> None:
    """Check from its configuration that a model embeds each text as one vector."""

    def read_settings(name: str) -> dict[str, Any]:
        paths = (load_file_path(place, name, cache_folder=cache, local_files_only=local) for place in places)
        try:
            with open(next((path for path in paths if path is not None), ""), encoding="utf-8") as file:
                return dict(json.load(file))
        except (OSError, ValueError, TypeError):  # loading reports damaged files
            return {}

    settings = read_settings("config_sentence_transformers.json")
    kind = str(settings.get("model_type"))
    if not settings and "SequenceClassification" in str(read_settings("config.json").get("architectures")):
        kind = "CrossEncoder"
    if kind in _KINDS:
        raise ModelError(f"{name!r} is not an embedding model but a {kind}: load it with sentence_transformers.{kind}.")
