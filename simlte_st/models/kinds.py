"""Reject unsupported kinds of models early."""

from __future__ import annotations

import json
from typing import Any

from sentence_transformers.util import load_file_path

from simlte_st.errors import ModelError

_KINDS = ("SparseEncoder", "CrossEncoder", "MultiVectorEncoder")


def check_kind(name: str, places: tuple[str, ...], local: bool, cache: str | None = None) -> None:
    """Check from its configuration that a model embeds each text as one vector."""

    def read(file: str) -> dict[str, Any]:
        paths = (load_file_path(place, file, cache_folder=cache, local_files_only=local) for place in places)
        try:
            with open(next((path for path in paths if path is not None), ""), encoding="utf-8") as opened:
                return dict(json.load(opened))
        except (OSError, ValueError, TypeError):  # loading reports damaged files
            return {}

    settings = read("config_sentence_transformers.json")
    kind = str(settings.get("model_type"))
    if not settings and any(
        "SequenceClassification" in str(each) for each in read("config.json").get("architectures") or ()
    ):
        kind = "CrossEncoder"
    if kind in _KINDS:
        raise ModelError(f"{name!r} is not an embedding model but a {kind}: load it with sentence_transformers.{kind}.")
