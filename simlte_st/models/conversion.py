"""A base model to a folder of one that reads long documents: ``simlte convert``, and the first step of training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from simlte_st.backbones.registry import make_backbone, replacement_of
from simlte_st.checks import check_count
from simlte_st.compat import encoder_of
from simlte_st.files import atomic_path, check_free
from simlte_st.models.base import load_model
from simlte_st.models.loading import LoadedModel


def convert_base(
    base: LoadedModel | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    backbone: str | None = None,
    max_length: int | None = None,
    pooling: str = "keep",
    overwrite: bool = False,
    **settings: Any,
) -> LoadedModel:
    """Write a base model as one that reads long documents: a folder that sentence-transformers loads.

    It is loaded after ``import simlte_st``.
    """
    said = max_length is not None or any(value is not None for value in settings.values())
    chosen = make_backbone(backbone or "longformer", **settings)
    if max_length is not None:
        check_count("max_length", max_length)
    target = Path(output)
    check_free(target, overwrite)
    loaded = base.copy(pooling) if isinstance(base, LoadedModel) else load_model(base, pooling)
    if backbone is None and not said and replacement_of(encoder_of(loaded.model)) is None:
        chosen = make_backbone("chunk-mean")
    with atomic_path(target) as path:
        chosen.convert(loaded.model, path, max_length, loaded.tuned)
    return loaded
