"""Models of other kinds than one vector for each text, which are named before any work."""

from __future__ import annotations

import json
from typing import Any

from sentence_transformers.util import load_file_path

from simlte_st.errors import ModelError
from simlte_st.files import MODEL_FILE

_RERANKER = (
    "a cross-encoder (reranker), which scores pairs of texts and has no vectors: load it with "
    "sentence_transformers.CrossEncoder, and name an embedding model here"
)
_KINDS = {
    "SparseEncoder": "a sparse encoder (such as SPLADE), whose vectors have a number for each token of the vocabulary: "
    "load it with sentence_transformers.SparseEncoder, or search by words (mode='text')",
    "CrossEncoder": _RERANKER,
    "MultiVectorEncoder": "a multi-vector encoder (such as ColBERT), which has a vector for each token: load it with "
    "sentence_transformers.MultiVectorEncoder, and name a model of one vector for each text here",
    "CLIP": "a model of images and captions (CLIP), which reads 77 tokens: name an embedding model of texts",
}
_MODULES = {
    "SpladePooling": "SparseEncoder",
    "SparseAutoEncoder": "SparseEncoder",
    "SparseStaticEmbedding": "SparseEncoder",
    "LogitScore": "CrossEncoder",
    "MultiVectorMask": "MultiVectorEncoder",
    "CLIPModel": "CLIP",
}


def check_kind(name: str, places: tuple[str, ...], local: bool, cache: str | None = None) -> None:
    """Check by its files that a model has one vector for each text."""

    def read(file: str) -> Any:
        paths = (load_file_path(place, file, cache_folder=cache, local_files_only=local) for place in places)
        path = next((path for path in paths if path is not None), None)
        try:
            with open(path or "", encoding="utf-8") as opened:
                return json.load(opened)
        except (OSError, ValueError):  # loading says what is wrong with a file
            return None

    settings, modules = read("config_sentence_transformers.json"), read(MODEL_FILE)
    kinds = [settings.get("model_type")] if isinstance(settings, dict) else []
    if isinstance(modules, list):
        classes = [str(module.get("type", "")).rpartition(".")[2] for module in modules if isinstance(module, dict)]
        kinds += [_MODULES.get(each) for each in classes]
    else:
        encoder = read("config.json")
        encoder = encoder if isinstance(encoder, dict) else {}
        kinds.append({"clip": "CLIP", "siglip": "CLIP"}.get(str(encoder.get("model_type"))))
        if any(str(each).endswith("ForSequenceClassification") for each in encoder.get("architectures") or ()):
            kinds.append("CrossEncoder")
    known = next((_KINDS[kind] for kind in kinds if kind in _KINDS), None)
    if known is not None:
        raise ModelError(f"{name!r} is {known}.")
