"""First stage of a run: the base, converted if it has to read more, and the model, views and loss made from it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import set_seed

from simlte_st.backbones.registry import BACKBONES, backbone_of, make_backbone, replacement_of
from simlte_st.compat import encoder_of, readable_tokens
from simlte_st.data.transform import DocSplitTransform
from simlte_st.distributed import main_first, world
from simlte_st.errors import ConfigurationError
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.losses.mlm_head import MLMHead, make_mlm_head
from simlte_st.models import loading as models
from simlte_st.models.conversion import convert_base
from simlte_st.models.loading import LoadedModel, lengthen, without_queries
from simlte_st.models.static import is_static
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.training.config import STATIC_PRESET, Preset, get_preset
from simlte_st.training.dropout import set_attention_dropout, set_dropout
from simlte_st.training.run import TrainingRun
from simlte_st.training.static import check_static, distil, scale_table

logger = logging.getLogger(__name__)

FEW_STEPS = 30
"""Steps of 32 documents in which [CLS] came up to the mean with few labels, averaged over six sets: all-MiniLM-L6-v2
(``docsplit-cls`` in ``benchmarks/results/recipe.md``)."""


@main_first
def load_model(run: TrainingRun) -> TrainingRun:
    """Load the base, and make the model to train, its views and its loss as the preset says."""
    config, folder = run.config, run.folder.base
    set_seed(config.seed)
    base = models.load_model(run.base_name, dtype=torch.float32, device=config.device)
    base = run.base = without_queries(base, "trained")
    if (config.lsa == 0 or is_static(base.model)) and isinstance(base.model[-1], LatentSemanticAnalysis):
        del base.model[-1]  # a static model is trained without, and ends with one of its own documents
    base = run.base = distil(run, base)
    run.preset = preset = (config.named_preset or preset_for(base)).changed(**config.settings)
    run.static = is_static(base.model)
    if run.static:
        check_static(preset)
        run.dtype = "float32"
    if rest := preset.batch_size % world():
        nearest = max(preset.batch_size - rest, world())
        raise ConfigurationError(
            f"batch_size={preset.batch_size} is the batch of all {world()} processes, which take equal parts: "
            f"use {nearest}, or another multiple of {world()}."
        )
    pooling, head = convert(base, preset, folder, config.seed)
    length, dtype = preset.max_view_length, torch.float32
    try:
        if folder.exists():
            model = models.load_model(folder, pooling, length, dtype, config.device).model
        else:
            model = base.copy(pooling, length).model
    except ConfigurationError as error:
        raise ConfigurationError(f"max_view_length={length} does not suit the model: {error}") from None
    own = None if run.static else base.model.max_seq_length
    run.model, run.reads = model, readable_tokens(model) if folder.exists() else own
    if run.static:
        scale_table(model)
    # encode truncates embeddings at the end; the loss sees them truncated alike.
    model.register_forward_hook(_truncate_embeddings)
    run.loss = _make_loss(model, preset, head, config.seed)
    if preset.dropout is not None:
        set_dropout(model, preset.dropout)
    if preset.attention_dropout is not None:
        set_attention_dropout(model, preset.attention_dropout)
    # A static model reads all of a view: nothing has to fit, and to count tokens would take as long as training.
    fitted = None if run.static else model
    run.views = DocSplitTransform(preset.view, model=fitted, seed=config.seed, segmenter=config.segmenter)
    return run


def preset_for(base: LoadedModel) -> Preset:
    """Return the preset for a base: that of static models or of sentence encoders, else the papers' of its kind."""
    if is_static(base.model):
        return get_preset(STATIC_PRESET)
    if base.tuned:
        return get_preset("docsplit-tuned")
    encoder = encoder_of(base.model)
    is_longformer = BACKBONES["longformer"] in (backbone_of(encoder), BACKBONES.get(replacement_of(encoder) or ""))
    return get_preset("docsplit-longformer" if is_longformer else "docsplit-bert")


def convert(base: LoadedModel, preset: Preset, folder: Path, seed: int) -> tuple[str, MLMHead | None]:
    """Convert a base to a folder if it has too few positions for the preset, or if it is a stock Longformer.

    A base that has the positions, but whose tokenizer stops earlier, is set to read more in place. A static model
    stays as it is.

    Returns:
        The pooling to load the model with, and the MLM head, if the folder lacks the one that the base has.
    """
    if is_static(base.model):
        return preset.pooling, None
    limit, replacement = readable_tokens(base.model), replacement_of(encoder_of(base.model))
    wanted = None if preset.max_length == "base" else preset.max_length
    if replacement is None and (wanted is None or lengthen(base, wanted)):
        if wanted is not None and (reads := base.model.max_seq_length) is not None and reads > wanted:
            logger.warning(
                "max_length=%d is less than the base reads: the model will read %d tokens too. To bound the views of "
                "training, use max_view_length=.",
                wanted,
                reads,
            )
        return preset.pooling, None
    name = replacement or preset.backbone or "longformer"
    backbone, length = make_backbone(name), limit if replacement else wanted
    assert length is not None
    if not folder.exists():
        pooling = preset.pooling if backbone.pooled_inside else "keep"
        convert_base(base, folder, backbone=name, max_length=length, pooling=pooling)
    change = "trained as" if replacement else f"which reads {limit:,} tokens, converted to"
    logger.info("Base: %s, %s %s.", base.name, change, backbone.reading.format(length))
    if wanted is not None and length < wanted:
        logger.warning("max_length=%d: a Longformer keeps its own length, %d tokens.", wanted, length)
    if not backbone.pooled_inside:
        return preset.pooling, None
    return "keep", make_mlm_head(base.model, seed=seed) if preset.mlm_weight > 0 else None


def _truncate_embeddings(model: torch.nn.Module, inputs: Any, features: dict[str, Any]) -> None:
    if (size := model.truncate_dim) is not None:
        features["sentence_embedding"] = features["sentence_embedding"][:, :size]


def _make_loss(model: SentenceTransformer, preset: Preset, head: MLMHead | None, seed: int) -> torch.nn.Module:
    names = ("scale", "mlm_weight", "mlm_probability", "mlm_input")
    options: dict[str, Any] = {name: getattr(preset, name) for name in names}
    options |= {"mlm_head": head or "auto", "seed": seed, "gather_across_devices": world() > 1}
    if preset.symmetric:
        options |= {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    if preset.mini_batch_num_tokens is None:
        return MultipleNegativesRankingMLMLoss(model, **options)
    return CachedMultipleNegativesRankingMLMLoss(model, mini_batch_num_tokens=preset.mini_batch_num_tokens, **options)


def warn_of_pooling(base: LoadedModel, preset: Preset, steps: int) -> None:
    """Warn if [CLS] replaces a sentence encoder's own pooling and has few steps to learn it."""
    own = [module.pooling_mode for module in base.model if isinstance(module, Pooling)]
    if base.tuned and preset.pooling == "cls" and own not in (["cls"], []) and steps < FEW_STEPS:
        logger.warning(
            "The base pools by %s, and [CLS] is to learn that in few steps (%d): pooling='keep' is safer.",
            own[0],
            steps,
        )
