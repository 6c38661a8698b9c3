"""First stage of a run: load the base, then build the model, views and loss from the preset."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import set_seed

from simlte_st.compat import get_encoder, readable_tokens
from simlte_st.distributed import from_main, main_first, world
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.splits import sample_rows
from simlte_st.files import atomic_path
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.losses.base import Features
from simlte_st.losses.masked_language_model import MLMHead, make_mlm_head
from simlte_st.models.conversion import convert_base
from simlte_st.models.distillation import distil_base
from simlte_st.models.loading import LoadedModel, lengthen, load_model
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE
from simlte_st.models.static import is_static, token_embedding
from simlte_st.models.teaching import TABLE_SIZE, teach
from simlte_st.modules import TokenTable
from simlte_st.reading.document import LONG, median_words
from simlte_st.reading.documents import DocumentReader, Shards
from simlte_st.training.presets import ONLY_ENCODERS, STATIC_PRESET, Preset, get_preset
from simlte_st.training.run import Run
from simlte_st.views.corpus import shard_order
from simlte_st.views.transform import DocSplitTransform
from simlte_st.words.sentences import Segmenter
from simlte_st.words.tokens import unknown_id

logger = logging.getLogger(__name__)

PASSAGES = 5_000
"""Passages from which a distilled base learns; the encoder reads them in a few minutes on a CPU."""


@dataclass(frozen=True)
class TrainingSetup:
    """Model, loss and views of a run.

    Attributes:
        base: The base before training, distilled for a static model or converted if it has to read more tokens.
        preset: The preset, with fields replaced by the run's arguments.
        model: The model to train.
        loss: The loss.
        views: The transform that draws the views.
        static: Whether the model is static.
        reads: Maximum number of tokens that the trained model reads, or None for no limit. Views may be shorter, and a
            finished model reads more than this in chunks.
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
    """Return the name of the base: the user's choice, or the default for the documents.

    Args:
        run: The run.
        documents: The documents.
        base: The user's choice, or None.
        static: Whether to train a static model (default: depends on the length of the documents).
    """
    if base is not None:
        return os.fspath(base)
    if static is None:
        reader = documents
        if isinstance(reader, Shards):
            reader = reader.first(200, shard_order(len(reader.names), run.seed, epoch=0))
        words = median_words(document.text for document in reader.peek())
        static = words >= LONG
        kinds = ("a static model", False, "an encoder") if static else ("an encoder", True, "a static model")
        logger.info("The first documents have a median of %.0f words: training %s (static=%s for %s).", words, *kinds)
    name = OWN_STATIC if static else PACKAGED_BASE
    logger.info("Base: %s.", name)
    return name


@main_first
def prepare_model(
    run: Run, base: str, preset: Preset | None, changes: Mapping[str, Any], *, static: bool | None = None,
    lsa: int | None = None, segmenter: str | Segmenter = "punkt",
) -> TrainingSetup:  # fmt: skip
    """Load the base, then build the model, its views and its loss from the preset.

    Args:
        run: The run.
        base: Name of the base.
        preset: The preset (default: depends on the base).
        changes: Preset fields to replace, with their new values.
        static: Whether to train a static model (default: if the base is static).
        lsa: 0 removes the base's latent semantic analysis, if any.
        segmenter: How to split documents into sentences.
    """
    set_seed(run.seed)
    folder, base_model = run.folder.base, load_model(base, dtype=torch.float32, device=run.device)
    if lsa == 0 and isinstance(base_model.model[-1], TokenTable):
        del base_model.model[-1]
    if is_static(base_model.model) and static is False:
        raise ConfigurationError(f"static=False, but {base} is a static model. Choose an encoder as base=.")
    if static and not is_static(base_model.model):
        base_model = _distil(base_model, folder, run.device, run.progress)
    static = is_static(base_model.model)
    preset = replace(preset or preset_for(base_model), **changes)
    for name in ONLY_ENCODERS if static else ():
        if (setting := getattr(preset, name)) not in (getattr(get_preset(STATIC_PRESET), name), "base"):
            problem = (
                f"does not apply to a static model (preset {STATIC_PRESET!r}). Train an encoder with static=False."
            )
            raise ConfigurationError(f"{name}={setting!r} {problem}")
    if preset.batch_size % world():
        raise ConfigurationError(f"batch_size={preset.batch_size} must be divisible by the {world()} processes.")
    head = reads = None
    if not static:
        head, reads = convert(base_model, preset, folder, run.seed), base_model.model.max_seq_length
        if folder.exists():
            converted = load_model(folder, dtype=torch.float32, device=run.device).model
            base_model = replace(base_model, model=converted)
            reads = readable_tokens(converted) or cast(int, preset.max_length)
    model = base_model.copy(preset.pooling, preset.max_view_length).model
    if static:
        _prepare_table(model)
    # encode truncates embeddings after the forward pass; the loss must see truncated embeddings too.
    model.register_forward_hook(_truncate_embeddings)
    loss = _make_loss(model, preset, head, run.seed)
    if preset.dropout is not None:
        set_dropout(model, preset.dropout)
    if preset.attention_dropout is not None:
        set_attention_dropout(model, preset.attention_dropout)
    # A static model does not limit the view length, and counting tokens would take as long as training.
    views = DocSplitTransform(preset.view, model=None if static else model, seed=run.seed, segmenter=segmenter)
    return TrainingSetup(
        base=base_model, preset=preset, model=model, loss=loss, views=views, static=static, reads=reads
    )


def preset_for(base: LoadedModel) -> Preset:
    """Return the default preset for a base."""
    if is_static(base.model):
        return get_preset(STATIC_PRESET)
    if base.tuned:
        return get_preset("docsplit-tuned")
    kind = get_encoder(base.model).config.model_type
    return get_preset("docsplit-longformer" if kind in ("longformer", "simlte_longformer") else "docsplit-bert")


def convert(base: LoadedModel, preset: Preset, folder: Path, seed: int) -> MLMHead | None:
    """Convert a stock Longformer, or a base with too few positions for the preset, and save it in a folder.

    If only the tokenizer's limit is too low, raise that limit in place.

    Returns:
        The base's MLM head, if it is needed but not saved in the folder.
    """
    is_stock = get_encoder(base.model).config.model_type == "longformer"
    length = None if preset.max_length == "base" else preset.max_length
    if not is_stock and (length is None or lengthen(base, length)):
        return None
    length = readable_tokens(base.model) if is_stock else length
    assert length is not None
    in_chunks = preset.backbone == "chunk-mean" and not is_stock
    if not folder.exists():
        convert_base(base, folder, backbone="chunk-mean" if in_chunks else "longformer", max_length=length)
    logger.info("Base: %s, converted to read %s tokens%s.", base.name, f"{length:,}", " in chunks" if in_chunks else "")
    return make_mlm_head(base.model, seed=seed) if in_chunks and preset.mlm_weight > 0 else None


def set_dropout(model: nn.Module, probability: float) -> None:
    """Set all dropout probabilities of a model, including attention dropout."""
    for module in model.modules():
        _set_dropout(module, probability)


def set_attention_dropout(model: nn.Module, probability: float) -> None:
    """Set the attention dropout probability in all layers."""
    for module in model.modules():
        name = type(module).__name__
        if name.endswith("Attention"):
            _set_dropout(module, probability)
        if name.endswith("SelfAttention"):  # its parent modules apply dropout to hidden states instead
            for part in module.modules():
                _set_dropout(part, probability)


def _set_dropout(module: nn.Module, probability: float) -> None:
    if isinstance(module, nn.Dropout):
        module.p = probability
    # Fused attention reads the probability from an attribute of the attention layer.
    for attribute in ("dropout_prob", "attention_dropout", "dropout"):
        if isinstance(getattr(module, attribute, None), float):
            setattr(module, attribute, probability)


def _distil(base: LoadedModel, folder: Path, device: str | None, progress: bool) -> LoadedModel:
    """Distil a base to a static model in the run's folder, unless that exists; return the static model."""
    if not folder.exists():
        logger.info("Base: %s, distilled to a static model.", base.name)
        with atomic_path(folder) as path:
            distil_base(base, progress=progress).save_pretrained(str(path), create_model_card=False)
    return replace(load_model(folder, dtype=torch.float32, device=device), name=base.name)


@main_first
def teach_base(run: Run, setup: TrainingSetup, sentences: Dataset) -> None:
    """Teach a base that was distilled in this run its encoder's embeddings of passages of the training documents.

    In five languages, this raises macro-F1 with five labels per class (``benchmarks/results/languages.md``).
    """
    if not setup.static or not run.folder.base.exists():
        return
    folder = run.folder.taught
    if not folder.exists():
        logger.info("Teaching the static model embeddings of %s by %s.", f"{PASSAGES:,} passages", setup.base.name)
        rows = sentences.select(sample_rows(len(sentences), PASSAGES, run.seed))
        texts = [" ".join(row["sentences"]) for row in rows]
        model = load_model(run.folder.base, dtype=torch.float32, device="cpu").model
        dtype = torch.bfloat16 if run.bf16 else torch.float32
        encoder = load_model(setup.base.name, dtype=dtype, device=run.device).model
        teach(model, encoder, texts, PASSAGES, seed=run.seed, progress=run.progress)
        with atomic_path(folder) as path:
            model.save_pretrained(str(path), create_model_card=False)
    table = token_embedding(load_model(folder, dtype=torch.float32, device=run.device).model).weight
    for model in (setup.base.model, setup.model):
        token_embedding(model).weight.data.copy_(table)
    _scale_table(setup.model)


def _prepare_table(model: SentenceTransformer) -> None:
    """Scale the token vectors, and fix the unknown token's vector at zero, because model2vec skips unknown tokens."""
    table, rows = token_embedding(model).weight, _scale_table(model)
    table.register_hook(lambda gradient: gradient.index_fill(0, rows, 0))


def _scale_table(model: SentenceTransformer) -> torch.Tensor:
    """Scale the token vectors, set the unknown token's vector to zero, and return its row, if any."""
    table, unknown = token_embedding(model).weight, unknown_id(model.tokenizer)
    rows = torch.tensor([] if unknown is None else [unknown], dtype=torch.int64, device=table.device)
    with torch.no_grad():
        table.mul_(TABLE_SIZE / table.square().mean().sqrt().clamp(min=1e-12)).index_fill_(0, rows, 0)
    return rows


def _truncate_embeddings(model: nn.Module, inputs: object, features: Features) -> None:
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
