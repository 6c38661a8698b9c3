"""Static models in a run: one distilled from the base, and the settings that a static model has no use for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.data.tokens import flat_ids
from simlte_st.errors import ConfigurationError
from simlte_st.files import atomic_path
from simlte_st.models.base import load_model
from simlte_st.models.config import StaticConfig
from simlte_st.models.distillation import distilled
from simlte_st.models.loading import LoadedModel
from simlte_st.models.static import is_static
from simlte_st.training.choose_base import wants_static
from simlte_st.training.config import ONLY_ENCODERS, STATIC_PRESET, Preset, get_preset
from simlte_st.training.run import TrainingRun

logger = logging.getLogger(__name__)

STATIC_LSA = 256
"""Dimensions of the latent semantic analysis that a static model ends with by default."""


def distil(run: TrainingRun, base: LoadedModel) -> LoadedModel:
    """Return the base of a static model, which is distilled from an encoder in the run's folder, once."""
    config, folder = run.config, run.folder.base
    if is_static(base.model):
        if config.static is False:
            raise ConfigurationError(f"static=False: {base.name} is a static model. Name an encoder as base=.")
        return base
    if not wants_static(config):
        return base
    if not folder.exists():
        logger.info("Base: %s, distilled to a vector for each token.", base.name)
        model = distilled(base, StaticConfig(progress=config.progress))
        with atomic_path(folder) as path:
            model.save_pretrained(str(path), create_model_card=False)
    made = load_model(folder, dtype=torch.float32, device=config.device)
    return replace(made, name=base.name)


def check_static(preset: Preset) -> None:
    """Check that a preset suits a static model."""
    usual = get_preset(STATIC_PRESET)
    for name, why in ONLY_ENCODERS.items():
        value = getattr(preset, name)
        if value != getattr(usual, name) and (name, value) != ("max_length", "base"):
            raise ConfigurationError(
                f"{name}={value!r} does not apply to a static model, which {why}. The preset for static models is "
                f"{STATIC_PRESET!r}; for an encoder: static=False."
            )


def reader_of(model: SentenceTransformer) -> Callable[..., dict[str, Tensor]]:
    """Return what tokenizes the views of a static model for the Trainer, with less work than its own ``preprocess``."""

    def preprocess(texts: Sequence[str], prompt: str | None = None, **options: Any) -> dict[str, Tensor]:
        ids, lengths = flat_ids(model.tokenizer, [f"{prompt}{text}" for text in texts] if prompt else texts)
        return {"input_ids": torch.from_numpy(ids), "offsets": torch.from_numpy(np.cumsum(lengths) - lengths)}

    return preprocess
