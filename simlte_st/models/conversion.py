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

    Args:
        base: The model, loaded already or not; see :func:`~simlte_st.models.base.find_model`.
            A loaded one is not changed.
        output: The folder to write, in one rename.
        backbone: What becomes of the base: a name of :data:`~simlte_st.backbones.registry.BACKBONES`. None for
            ``"chunk-mean"`` where nothing else is said, so that any base reads whole documents; for ``"longformer"``
            where ``max_length`` or settings are given, or the base is a stock Longformer.
        max_length: Tokens that the new model reads, special tokens included; None for what the backbone says:
            :data:`~simlte_st.chunk_mean.backbone.WHOLE_DOCUMENTS`, :data:`~simlte_st.backbones.base.MAX_LENGTH`, or
            what a stock Longformer reads.
        pooling: See :func:`~simlte_st.models.base.load_model`.
        overwrite: Replace what is at the output.
        **settings: Those of the backbone: see :class:`~simlte_st.longformer.backbone.Longformer` and
            :class:`~simlte_st.chunk_mean.backbone.ChunkMean`. None leaves its default.

    Returns:
        The base as it was loaded, not converted.

    Raises:
        ModelError: The base cannot be loaded or cannot be converted; the message says why.
        ConfigurationError: A setting is out of its range or belongs to another backbone, or the output exists.
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
