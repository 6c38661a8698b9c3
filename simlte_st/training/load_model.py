"""First stage of a run: the base that it begins with, and the model, views and loss that the preset makes of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import set_seed

from simlte_st.compat import encoder_of, readable_tokens
from simlte_st.data.document import LONG, median_words
from simlte_st.data.document_stream import shard_order
from simlte_st.data.documents import DocumentReader, Shards
from simlte_st.data.sentences import Segmenter
from simlte_st.data.transform import DocSplitTransform
from simlte_st.distributed import from_main, main_first, world
from simlte_st.errors import ConfigurationError
from simlte_st.files import atomic_path
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.losses.masked_language_model import MLMHead, make_mlm_head
from simlte_st.models import loading as models
from simlte_st.models.conversion import convert_base
from simlte_st.models.distillation import distilled
from simlte_st.models.loading import LoadedModel, lengthen
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.modules import TokenTable
from simlte_st.training.presets import ONLY_ENCODERS, STATIC_PRESET, Preset, get_preset
from simlte_st.training.run import Run

logger = logging.getLogger(__name__)

TABLE_SIZE = 0.37
"""Root mean square of the numbers of a table that the preset's learning rate is for, MiniLM's. The size of a table says
nothing, since embeddings have length 1."""


@dataclass(frozen=True)
class Loaded:
    """What a run trains.

    Attributes:
        base: The base before training, in the form in which it is trained: distilled for a static model, converted
            where the preset asks for more tokens.
        preset: The preset of the run, with the arguments that replace its fields.
        model: The model to train.
        loss: Its loss.
        views: What draws its views.
        static: Whether it is a static model.
        reads: Tokens that the trained model reads, None for no bound. Views may be shorter; in chunks it may read more.
    """

    base: LoadedModel
    preset: Preset
    model: SentenceTransformer
    loss: nn.Module
    views: DocSplitTransform
    static: bool
    reads: int | None


@from_main
def choose_base(
    run: Run, documents: DocumentReader | Shards, base: str | os.PathLike[str] | None, *, static: bool | None
) -> str:
    """Return the name of the base: the one asked for, or the default for such documents.

    Args:
        run: The run.
        documents: Its documents.
        base: The base that was asked for.
        static: Whether to make a static model; None lets the length of the documents decide.
    """
    if base is not None:
        return os.fspath(base)
    if static is None:
        reader = documents
        if isinstance(reader, Shards):
            reader = reader.first(200, shard_order(len(reader.names), run.seed, epoch=0))
        words = median_words(document.text for document in reader.peek())
        static = words >= LONG
        kinds = ("a static model", "an encoder")[:: 1 if static else -1]
        logger.info(
            "The median document has %.0f words: training %s (static=%s: %s).", words, kinds[0], not static, kinds[1]
        )
    name = OWN_STATIC if static else PACKAGED_BASE
    logger.info("Base: %s.", name)
    return name


@main_first
def load_model(
    run: Run,
    base: str,
    preset: Preset | None,
    changes: Mapping[str, Any],
    *,
    static: bool | None = None,
    lsa: int | None = None,
    segmenter: str | Segmenter = "punkt",
) -> Loaded:
    """Load the base, and make the model to train, its views and its loss as the preset says.

    Args:
        run: The run.
        base: Name of the base.
        preset: The preset; None chooses it by the base.
        changes: Fields of the preset to replace.
        static: Whether to make a static model; None if the base decides.
        lsa: 0 removes a latent semantic analysis that the base ends with.
        segmenter: What splits documents into sentences.
    """
    folder = run.folder.base
    set_seed(run.seed)
    loaded = models.load_model(base, dtype=torch.float32, device=run.device)
    if lsa == 0 and isinstance(loaded.model[-1], TokenTable):
        del loaded.model[-1]
    if is_static(loaded.model) and static is False:
        raise ConfigurationError(f"static=False: {base} is a static model. Name an encoder as base=.")
    if static and not is_static(loaded.model):
        loaded = _distil(loaded, folder, run.device, run.progress)
    static = is_static(loaded.model)
    preset = replace(preset or preset_for(loaded), **changes)
    if static:
        for name in ONLY_ENCODERS:
            if (value := getattr(preset, name)) not in (getattr(get_preset(STATIC_PRESET), name), "base"):
                raise ConfigurationError(
                    f"{name}={value!r} does not apply to a static model, whose preset is {STATIC_PRESET!r}. For an "
                    "encoder: static=False."
                )
    if preset.batch_size % world():
        raise ConfigurationError(
            f"batch_size={preset.batch_size}: must be divisible by the number of processes, {world()}."
        )
    head = reads = None
    if not static:
        head, reads = convert(loaded, preset, folder, run.seed), loaded.model.max_seq_length
        if folder.exists():
            converted = models.load_model(folder, dtype=torch.float32, device=run.device)
            loaded = replace(loaded, model=converted.model)
            reads = readable_tokens(converted.model) or cast(int, preset.max_length)
    model = loaded.copy(preset.pooling, preset.max_view_length).model
    if static:
        _scale_table(model)
    # encode truncates embeddings at the end; the loss sees them truncated alike.
    model.register_forward_hook(_truncate_embeddings)
    loss = _make_loss(model, preset, head, run.seed)
    if preset.dropout is not None:
        set_dropout(model, preset.dropout)
    if preset.attention_dropout is not None:
        set_attention_dropout(model, preset.attention_dropout)
    # A static model reads all of a view: nothing has to fit, and to count tokens would take as long as training.
    fitted = None if static else model
    views = DocSplitTransform(preset.view, model=fitted, seed=run.seed, segmenter=segmenter)
    return Loaded(loaded, preset, model, loss, views, static, reads)


def preset_for(base: LoadedModel) -> Preset:
    """Return the preset for a base: that of static models or of sentence encoders, else the papers' of its kind."""
    if is_static(base.model):
        return get_preset(STATIC_PRESET)
    if base.tuned:
        return get_preset("docsplit-tuned")
    kind = encoder_of(base.model).config.model_type
    return get_preset("docsplit-longformer" if kind in ("longformer", "simlte_longformer") else "docsplit-bert")


def convert(base: LoadedModel, preset: Preset, folder: Path, seed: int) -> MLMHead | None:
    """Convert a base to a folder if it has too few positions for the preset, or if it is a stock Longformer.

    A base that has the positions, but whose tokenizer stops earlier, is set to read more in place.

    Returns:
        The MLM head, if the folder lacks the one that the base has.
    """
    limit, replacement = readable_tokens(base.model), encoder_of(base.model).config.model_type == "longformer"
    wanted = None if preset.max_length == "base" else preset.max_length
    if not replacement and (wanted is None or lengthen(base, wanted)):
        return None
    chunks, length = preset.backbone == "chunk-mean" and not replacement, limit if replacement else wanted
    assert length is not None
    if not folder.exists():
        convert_base(base, folder, backbone="chunk-mean" if chunks else "longformer", max_length=length)
    logger.info("Base: %s, made to read %s tokens%s.", base.name, f"{length:,}", " in chunks" if chunks else "")
    return make_mlm_head(base.model, seed=seed) if chunks and preset.mlm_weight > 0 else None


def set_dropout(model: nn.Module, probability: float) -> None:
    """Set the probability of every dropout in a model, attention's included."""
    for module in model.modules():
        _set_dropout(module, probability)


def set_attention_dropout(model: nn.Module, probability: float) -> None:
    """Set the probability of dropping an attention weight in all layers of a model."""
    for module in model.modules():
        kind = type(module).__name__
        if kind.endswith("Attention"):
            _set_dropout(module, probability)
        if kind.endswith("SelfAttention"):  # what is around it drops from hidden states
            for part in module.modules():
                _set_dropout(part, probability)


def _set_dropout(module: nn.Module, probability: float) -> None:
    if isinstance(module, nn.Dropout):
        module.p = probability
    # Fused attention does not use the modules but a number that the attention layer keeps, under one of a few names.
    for attribute in ("dropout_prob", "attention_dropout", "dropout"):
        if isinstance(getattr(module, attribute, None), float):
            setattr(module, attribute, probability)


def _distil(base: LoadedModel, folder: Path, device: str | None, progress: bool) -> LoadedModel:
    """Return a base distilled to a static model, in the run's folder, once."""
    if not folder.exists():
        logger.info("Base: %s, distilled to a vector for each token.", base.name)
        model = distilled(base, progress=progress)
        with atomic_path(folder) as path:
            model.save_pretrained(str(path), create_model_card=False)
    return replace(models.load_model(folder, dtype=torch.float32, device=device), name=base.name)


def _scale_table(model: SentenceTransformer) -> None:
    table = cast(Any, model[0]).embedding.weight
    with torch.no_grad():
        table.mul_(TABLE_SIZE / table.square().mean().sqrt().clamp(min=1e-12))


def _truncate_embeddings(model: nn.Module, inputs: Any, features: dict[str, Any]) -> None:
    if (size := model.truncate_dim) is not None:
        features["sentence_embedding"] = features["sentence_embedding"][:, :size]


def _make_loss(model: SentenceTransformer, preset: Preset, head: MLMHead | None, seed: int) -> nn.Module:
    names = ("scale", "mlm_weight", "mlm_probability", "mlm_input")
    options: dict[str, Any] = {name: getattr(preset, name) for name in names}
    options |= {"mlm_head": head or "auto", "seed": seed, "gather_across_devices": world() > 1}
    if preset.symmetric:
        options |= {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    if preset.mini_batch_num_tokens is None:
        return MultipleNegativesRankingMLMLoss(model, **options)
    return CachedMultipleNegativesRankingMLMLoss(model, mini_batch_num_tokens=preset.mini_batch_num_tokens, **options)
