"""The model of a run: the base, converted where it has to read more, its pooling and dropout, and the loss."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from simlte_st.backbones.registry import BACKBONES, backbone_of, make_backbone, replacement_of
from simlte_st.compat import encoder_of, readable_tokens
from simlte_st.data.transform import DocSplitTransform
from simlte_st.errors import ConfigurationError
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.losses.mlm_head import MLMHead, make_mlm_head
from simlte_st.models.base import load_model
from simlte_st.models.conversion import convert_base
from simlte_st.models.loading import LoadedModel, check_symmetric, lengthen
from simlte_st.processes import world
from simlte_st.training.dropout import set_attention_dropout, set_dropout
from simlte_st.training.presets import Pooling as PoolingName
from simlte_st.training.presets import Preset, get_preset
from simlte_st.training.run import RunFolder, RunOptions

logger = logging.getLogger(__name__)

FEW_STEPS = 30
"""Steps of 32 documents in which [CLS] came up to the mean with few labels, averaged over six sets: all-MiniLM-L6-v2
(``docsplit-cls`` in ``benchmarks/results/recipe.md``)."""


@dataclass(frozen=True)
class Trainee:
    """What a run trains.

    Attributes:
        base: The base as it was loaded, but for its length where the preset asks for more.
        preset: The settings, those of the preset and those that replace them.
        model: The model to train.
        loss: Its loss.
        views: Draws its views.
        reads: Tokens that the trained model reads; None for no bound. Views may be shorter, and the finished model may
            read on, in chunks.
        origin: Where the model came from.
    """

    base: LoadedModel
    preset: Preset
    model: SentenceTransformer
    loss: torch.nn.Module
    views: DocSplitTransform
    reads: int | None
    origin: Origin

    def untrained(self) -> SentenceTransformer:
        """Return the base as used without training: with its own pooling, reading as much as the model.

        A base that was converted is read through the conversion, whose weights are the base's.
        """
        if self.origin.base is not None:
            return self.base.model.eval()
        return load_model(self.origin.name, dtype=torch.float32, device=str(self.model.device)).model.eval()


def make_trainee(folder: RunFolder, options: RunOptions) -> Trainee:
    """Load the base and make of it what is trained."""
    base = load_model(options.base, dtype=torch.float32, device=options.device)
    check_symmetric(base.model, base.name)
    preset = (options.named_preset or preset_for(base)).changed(**options.settings)
    if preset.batch_tokens is None and (rest := preset.batch_size % world()):
        nearest = max(preset.batch_size - rest, world())
        raise ConfigurationError(
            f"batch_size={preset.batch_size} is the batch of all {world()} processes, which take equal parts: "
            f"use {nearest}, or another multiple of {world()}."
        )
    logger.info("%s", replace(preset, steps=options.named_steps(preset)).summary())
    origin = make_origin(base, preset, folder, options.seed)
    try:
        model = origin.model(preset.max_view_length, options.device)
    except ConfigurationError as error:
        raise ConfigurationError(f"max_view_length={preset.max_view_length} does not suit the model: {error}") from None
    reads = base.model.max_seq_length if origin.name == base.name else readable_tokens(model)
    # encode cuts embeddings at the end; the loss shall see the same, as long as they are cut.
    model.register_forward_hook(_cut_embeddings)
    loss = _make_loss(model, preset, origin.head, options.seed)
    if preset.dropout is not None:
        set_dropout(model, preset.dropout)
    if preset.attention_dropout is not None:
        set_attention_dropout(model, preset.attention_dropout)
    views = DocSplitTransform(preset.view, model=model, seed=options.seed, segmenter=options.segmenter)
    return Trainee(base, preset, model, loss, views, reads, origin)


def _cut_embeddings(model: torch.nn.Module, inputs: Any, features: dict[str, Any]) -> None:
    if (size := model.truncate_dim) is not None:
        features["sentence_embedding"] = features["sentence_embedding"][:, :size]


def _make_loss(model: SentenceTransformer, preset: Preset, head: MLMHead | None, seed: int) -> torch.nn.Module:
    names = ("scale", "mlm_weight", "mlm_probability", "mlm_input", "mlm_share")
    options: dict[str, Any] = {name: getattr(preset, name) for name in names}
    options |= {"mlm_head": head or "auto", "seed": seed, "gather_across_devices": world() > 1}
    if preset.mini_batch_num_tokens is None:
        return MultipleNegativesRankingMLMLoss(model, **options)
    return CachedMultipleNegativesRankingMLMLoss(model, mini_batch_num_tokens=preset.mini_batch_num_tokens, **options)


@dataclass(frozen=True)
class Origin:
    """Where the model to train comes from.

    Attributes:
        name: A folder, or the base's name.
        pooling: Pooling to load it with.
        head: The MLM head, where the folder has none although the base has; None to find it by the name.
        base: The base as it was loaded, where that is what is trained.
    """

    name: str
    pooling: PoolingName
    head: MLMHead | None = None
    base: LoadedModel | None = None

    def model(self, max_seq_length: int | None = None, device: str | None = None) -> SentenceTransformer:
        """Make a model to train, in float32 where the base is; the base itself stays as it was loaded."""
        if self.base is not None:
            return self.base.copy(self.pooling, max_seq_length).model
        return load_model(self.name, self.pooling, max_seq_length, torch.float32, device).model


def preset_for(base: LoadedModel) -> Preset:
    """Choose the preset for a base: ``docsplit-tuned`` for sentence encoders, else the papers' for its architecture."""
    if base.tuned:
        return get_preset("docsplit-tuned")
    encoder = encoder_of(base.model)
    is_longformer = BACKBONES["longformer"] in (backbone_of(encoder), BACKBONES.get(replacement_of(encoder) or ""))
    return get_preset("docsplit-longformer" if is_longformer else "docsplit-bert")


def warn_of_pooling(base: LoadedModel, preset: Preset, steps: int) -> None:
    """Warn where [CLS] takes the place of a sentence encoder's own pooling and has few steps to learn it."""
    own = [module.pooling_mode for module in base.model if isinstance(module, Pooling)]
    if base.tuned and preset.pooling == "cls" and own not in (["cls"], []) and steps < FEW_STEPS:
        logger.warning(
            "The base pools by %s, and [CLS] is to learn that in few steps (%d): pooling='keep' is safer.",
            own[0],
            steps,
        )


def make_origin(base: LoadedModel, preset: Preset, folder: RunFolder, seed: int = 0) -> Origin:
    """Convert the base where it has too few positions for what the preset asks, or where it is a stock Longformer.

    A base that has the positions, and whose tokenizer alone cuts earlier, is set to read more, in place. A converted
    base is kept in the run's folder for as long as the run.
    """
    limit, replacement = readable_tokens(base.model), replacement_of(encoder_of(base.model))
    wanted = None if preset.max_length == "base" else preset.max_length
    if replacement is None and (wanted is None or lengthen(base, wanted)):
        if wanted is not None and (reads := base.model.max_seq_length) is not None and reads > wanted:
            logger.warning(
                "max_length=%d is less than the base reads: the model will read %d tokens as well. What bounds views "
                "of training is max_view_length=.", wanted, reads,
            )  # fmt: skip
        return Origin(base.name, preset.pooling, base=base)
    name = replacement or preset.backbone or "longformer"
    backbone, length = make_backbone(name), limit if replacement else wanted
    assert length is not None
    pooling: PoolingName = preset.pooling if backbone.pooled_inside else "keep"
    if not folder.base.exists():
        convert_base(base, folder.base, backbone=name, max_length=length, pooling=pooling)
    change = "trained as" if replacement else f"which reads {limit:,} tokens, converted to"
    logger.info("Base: %s, %s %s.", base.name, change, backbone.reading.format(length))
    if wanted is not None and length < wanted:
        logger.warning("max_length=%d: a Longformer keeps its own length, %d tokens.", wanted, length)
    if not backbone.pooled_inside:
        return Origin(str(folder.base), preset.pooling)
    head = make_mlm_head(base.model, seed=seed) if preset.mlm_weight > 0 else None
    return Origin(str(folder.base), "keep", head)
