"""Which model is trained: the base as it is, or a Longformer made of it."""

from __future__ import annotations

import logging

from simlte_st.base_models import BaseModel
from simlte_st.conversion import STOCK, convert_base
from simlte_st.limits import readable_tokens
from simlte_st.losses.mlm_head import encoder_of
from simlte_st.training.presets import Preset
from simlte_st.training.run_folder import RunFolder

logger = logging.getLogger(__name__)


def preset_for(base: BaseModel) -> str:
    """Name the preset for a base: ``docsplit-tuned`` for sentence encoders, else the papers' for its architecture."""
    if base.tuned:
        return "docsplit-tuned"
    return "docsplit-longformer" if "longformer" in encoder_of(base.model).config.model_type else "docsplit-bert"


def make_backbone(base: BaseModel, preset: Preset, folder: RunFolder) -> str:
    """Convert the base where the preset asks for more tokens than it reads, or where it is a stock Longformer.

    Returns:
        The folder of the converted base, kept for as long as the run; the base's name where it is taken as it is.
    """
    limit = readable_tokens(base.model)
    stock = encoder_of(base.model).config.model_type == STOCK
    short = preset.min_length is not None and limit is not None and limit < preset.min_length
    if not stock and not short:
        return base.name
    if not folder.base.exists():
        length = None if stock else preset.min_length
        # A sentence encoder was tuned with what its own implementation does: no token attends globally.
        convert_base(base.name, folder.base, max_length=length, global_tokens="none" if stock and base.tuned else "cls")
    change = "trained as" if stock else f"which reads {limit:,} tokens, converted to"
    logger.info("Base: %s, %s a Longformer of %s tokens.", base.name, change, f"{preset.min_length or limit:,}")
    return str(folder.base)
