"""Which model is trained: the base as it is, or one made of it that reads more."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from simlte_st.compat import readable_tokens
from simlte_st.losses.mlm_head import MLMHead, encoder_of, make_mlm_head
from simlte_st.models.base import LoadedModel, load_model
from simlte_st.models.conversion import STOCK, convert_base
from simlte_st.training.presets import Pooling as PoolingName
from simlte_st.training.presets import Preset, get_preset
from simlte_st.training.run_folder import RunFolder

logger = logging.getLogger(__name__)

FEW_STEPS = 30
"""Steps of 32 documents in which [CLS] came up to the mean: all-MiniLM-L6-v2 on 20 Newsgroups and BBC News
(``benchmarks/results/equal_time.md``)."""


@dataclass(frozen=True)
class Backbone:
    """What to train.

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

    def model(self, max_seq_length: int | None = None) -> SentenceTransformer:
        """Make a model to train: another one at each call, in float32 where the base is.

        Args:
            max_seq_length: Tokens to read of an input; None for what the base or the folder says.

        Raises:
            ModelError: It has no pooling that could be changed.
            ConfigurationError: It has no positions for ``max_seq_length`` tokens.
        """
        if self.base is not None:
            return self.base.copy(self.pooling, max_seq_length).model
        return load_model(self.name, self.pooling, max_seq_length, torch.float32).model


def preset_for(base: LoadedModel) -> Preset:
    """Choose the preset for a base: ``docsplit-tuned`` for sentence encoders, else the papers' for its architecture.

    A sentence encoder whose tokenizer has no [CLS], such as a decoder or T5, keeps its own pooling.
    """
    if base.tuned:
        preset = get_preset("docsplit-tuned")
        return preset if getattr(base.model.tokenizer, "cls_token", None) else preset.changed(pooling="keep")
    longformer = "longformer" in encoder_of(base.model).config.model_type
    return get_preset("docsplit-longformer" if longformer else "docsplit-bert")


def warn_of_pooling(base: LoadedModel, preset: Preset, steps: float) -> None:
    """Warn where [CLS] takes the place of a sentence encoder's own pooling and has few steps to learn it.

    Args:
        base: The base as it was loaded.
        preset: How to train.
        steps: Steps that the run will have.
    """
    own = [module.pooling_mode for module in base.model if isinstance(module, Pooling)]
    if base.tuned and preset.pooling == "cls" and own not in (["cls"], []) and steps < FEW_STEPS:
        logger.warning(
            "The base pools by %s, and [CLS] is to learn that in few steps (%d): pooling='keep' is safer.",
            own[0],
            steps,
        )


def make_backbone(base: LoadedModel, preset: Preset, folder: RunFolder, seed: int = 0) -> Backbone:
    """Convert the base where the preset asks for more tokens than it reads, or where it is a stock Longformer.

    A converted base is kept in the run's folder for as long as the run.

    Args:
        base: The base as it was loaded.
        preset: How to train.
        folder: Folder of the run.
        seed: Seed of an MLM head that is new.
    """
    limit = readable_tokens(base.model)
    stock = encoder_of(base.model).config.model_type == STOCK
    short = preset.min_length is not None and limit is not None and limit < preset.min_length
    if not stock and not short:
        return Backbone(base.name, preset.pooling, base=base)
    if not stock and preset.reader == "chunk-mean":
        assert preset.min_length is not None
        if not folder.base.exists():
            convert_base(base, folder.base, backbone="chunk-mean", max_length=preset.min_length, pooling=preset.pooling)
        logger.info("Base: %s, read in chunks, up to %s tokens of a document.", base.name, f"{preset.min_length:,}")
        head = make_mlm_head(base.model, seed=seed) if preset.mlm_weight > 0 else None
        return Backbone(str(folder.base), "keep", head)  # it pools inside its chunks
    if not folder.base.exists():
        length = None if stock else preset.min_length
        # A sentence encoder was tuned with what its own implementation does: no token attends globally.
        convert_base(base, folder.base, max_length=length, global_tokens="none" if stock and base.tuned else "cls")
    change = "trained as" if stock else f"which reads {limit:,} tokens, converted to"
    logger.info("Base: %s, %s a Longformer of %s tokens.", base.name, change, f"{preset.min_length or limit:,}")
    return Backbone(str(folder.base), preset.pooling)
