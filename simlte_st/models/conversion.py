"""A base model to a folder of one that reads long documents: ``simlte convert``, and the first step of training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from simlte_st.backbones.registry import make_backbone, replacement_of
from simlte_st.compat import encoder_of
from simlte_st.errors import ModelError
from simlte_st.files import atomic_path, check_free
from simlte_st.models.config import ConvertConfig
from simlte_st.models.loading import LoadedModel, load_model, without_queries
from simlte_st.models.static import is_static


def convert_base(
    base: LoadedModel | str | os.PathLike[str],
    output: str | os.PathLike[str],
    config: ConvertConfig | None = None,
    **settings: Any,
) -> LoadedModel:
    """Write a base model as one that reads long documents, and return the base.

    ``settings`` are those of :class:`~simlte_st.models.config.ConvertConfig` and of the backbone. The new model is
    loaded after ``import simlte_st``.
    """
    own = {name: settings.pop(name) for name in ConvertConfig.accepted() if name in settings}
    config = ConvertConfig.make(config, own)
    given = config.max_length is not None or any(value is not None for value in settings.values())
    backbone = make_backbone(config.backbone or "longformer", **settings)
    target = Path(output)
    check_free(target, config.overwrite)
    if not isinstance(base, LoadedModel):
        loaded = load_model(base, config.pooling, dtype="auto")  # what is written is stored as the base is
    else:
        loaded = base.copy(config.pooling)
    loaded = without_queries(loaded, "converted")
    if is_static(loaded.model):
        raise ModelError(f"{loaded.name!r} is a static embedding, which reads texts to their end as it is.")
    if config.backbone is None and not given and replacement_of(encoder_of(loaded.model)) is None:
        backbone = make_backbone("chunk-mean")
    with atomic_path(target) as path:
        backbone.convert(loaded.model, path, config.max_length, loaded.tuned)
    return loaded
