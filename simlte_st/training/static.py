"""Static models in a run: one distilled from the base, and the settings that a static model has no use for."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer

from simlte_st.errors import ConfigurationError
from simlte_st.files import atomic_path
from simlte_st.models.distillation import distilled
from simlte_st.models.loading import LoadedModel, load_model
from simlte_st.models.static import is_static
from simlte_st.training.config import ONLY_ENCODERS, STATIC_PRESET, Preset, get_preset, wants_static
from simlte_st.training.run import TrainingRun

logger = logging.getLogger(__name__)

TABLE_SIZE = 0.37
"""Root mean square of the numbers of a table that the preset's learning rate is for, MiniLM's. The size of a table says
nothing, since embeddings have length 1."""

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
        model = distilled(base, progress=config.progress)
        with atomic_path(folder) as path:
            model.save_pretrained(str(path), create_model_card=False)
    made = load_model(folder, dtype=torch.float32, device=config.device)
    return replace(made, name=base.name)


def scale_table(model: SentenceTransformer) -> None:
    """Scale the vectors of a static model's tokens to the size that it is trained in."""
    table = cast(Any, model[0]).embedding.weight
    with torch.no_grad():
        table.mul_(TABLE_SIZE / table.square().mean().sqrt().clamp(min=1e-12))


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
