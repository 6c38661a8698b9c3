"""What depends on the insides of sentence-transformers and transformers: encoders, lengths that can be read, silence.

Every touch of a private name stands here; ``tests/test_compat.py`` notices when one of them moves.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
from torch import Tensor
from transformers import AutoModelForMaskedLM, PreTrainedModel
from transformers.utils import logging

from simlte_st.errors import ModelError

if TYPE_CHECKING:  # at run time this module must not import what may be half imported
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
    from sentence_transformers.base.modules import Transformer

_LM_HEAD = ("lm_head.dense", "gelu", "lm_head.layer_norm", "lm_head.decoder")
MLM_HEADS: dict[str, tuple[str, str, str, str]] = {
    "bert": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.transform_act_fn",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder",
    ),
    "roberta": _LM_HEAD,
    "xlm-roberta": _LM_HEAD,
    "camembert": _LM_HEAD,
    "longformer": _LM_HEAD,
    "mpnet": _LM_HEAD,
    "distilbert": ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    "electra": (
        "generator_predictions.dense",
        "generator_predictions.activation",
        "generator_predictions.LayerNorm",
        "generator_lm_head",
    ),
    "modernbert": ("head.dense", "head.act", "head.norm", "decoder"),
}
"""Model type to where its ForMaskedLM class keeps the head: dense, activation, layer norm, decoder. A string that names
an activation function instead of a module stands for that function."""


NO_LIMIT = 10**9
"""Tokenizers that state no length give a number far beyond this one: transformers' ``VERY_LARGE_INTEGER``, 1e30."""


DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""What sentence-transformers calls a prompt for documents."""


def encoder_of(model: torch.nn.Module) -> PreTrainedModel:
    """Find the Hugging Face encoder of a SentenceTransformer, through DDP and ``torch.compile`` wrappers."""
    for wrapper in ("module", "_orig_mod"):
        model = getattr(model, wrapper, model)
    first = next(iter(model.children()), None)
    encoder = getattr(first, "auto_model", None)
    if not isinstance(encoder, PreTrainedModel) or not isinstance(encoder.get_input_embeddings(), torch.nn.Embedding):
        raise ModelError(
            "This needs a SentenceTransformer whose first module is a Transformer with word embeddings; "
            f"this model begins with {type(first).__name__}. A loss with mlm_weight=0 takes any model."
        )
    return encoder


def readable_tokens(model: SentenceTransformer) -> int | None:
    """Most tokens, special tokens included, that the architecture can read, whatever its tokenizer is set to.

    This is ``max_position_embeddings`` of the configuration; RoBERTa-like models (RoBERTa, XLM-R, MPNet, Longformer)
    number positions from ``padding_idx + 1``, so that many of their position embeddings are never used for a token.
    """
    transformer = model.transformers_model
    if transformer is None:
        return None
    config = transformer.config
    usable = getattr(config, "usable_length", None)
    if isinstance(usable, int):  # our own architectures say it themselves
        return usable
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    positions = getattr(text_config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions <= 0:  # DeBERTa-like configurations write -1 for "no limit"
        return None
    for module in transformer.modules():
        padding = getattr(module, "padding_idx", None)
        # Only these models keep a padding index beside a learned table of positions: it is what shifts the positions.
        if isinstance(padding, int) and isinstance(getattr(module, "position_embeddings", None), torch.nn.Embedding):
            return positions - padding - 1
    return positions


def readable_length(model: SentenceTransformer, wanted: int | None = None) -> int | None:
    """Tokens that the model reads of an input, special tokens included."""
    lengths = (wanted or model.max_seq_length, readable_tokens(model))
    return min((length for length in lengths if length is not None and length < NO_LIMIT), default=None)


def tokens_read(features: Any, special: int) -> list[int] | None:
    """Count the tokens of texts that were just tokenized, those included that were cut, special tokens not included."""
    encodings = getattr(features, "encodings", None)
    if not encodings:
        return None
    # What was cut stands in further pieces, each with special tokens of its own, and padded as the text is.
    return [
        sum(sum(piece.attention_mask) - special for piece in (encoding, *encoding.overflowing))
        for encoding in encodings
    ]


def encodes_here(model: SentenceTransformer) -> bool:
    """Return whether ``encode`` runs a transformer by the model's own ``forward``, not by a compiled or shared one."""
    alone = model._compiled_call_impl is None and model._distributed_inference is None
    return alone and model.transformers_model is not None


def default_prompt(model: SentenceTransformer) -> str:
    """Return what ``encode`` puts before each text unasked; empty where the model has no default prompt."""
    return model.prompts.get(model.default_prompt_name or "") or ""


def document_prompt(model: SentenceTransformer) -> str:
    """Return what stands before documents: the model's prompt for them, or else its default prompt; empty for nothing.

    ``encode_document`` takes the prompt called "document" even where that is empty, as it is in every model that was
    saved without one, and the prompt for documents is called "passage".
    """
    named = (model.prompts.get(name) for name in DOCUMENT_PROMPTS)
    return next((prompt for prompt in named if prompt), default_prompt(model))


def query_prompt(model: SentenceTransformer) -> str:
    """Return what stands before questions: the model's prompt for them, or else a default that is not for documents."""
    if model.default_prompt_name in DOCUMENT_PROMPTS:
        return model.prompts.get("query") or ""
    return model.prompts.get("query") or default_prompt(model)


def taken_tokens(model: SentenceTransformer, prompt: str) -> int:
    """Count the tokens of an input that are not the text's own: special tokens, and those of the prompt before it.

    Models of word vectors have none: their tokenizers cut words, and count nothing.
    """
    if model.transformers_model is None:
        return 0
    tokenizer = model.tokenizer
    special = int(tokenizer.num_special_tokens_to_add(pair=False))
    return special + (len(tokenizer(prompt, add_special_tokens=False)["input_ids"]) if prompt else 0)


def view_budget(model: SentenceTransformer, prompt: str | None = None) -> int | None:
    """Tokens of a document that fit one pass: the readable length without special tokens and prompt."""
    length = readable_length(model)
    if length is None:
        return None
    return max(1, length - taken_tokens(model, default_prompt(model) if prompt is None else prompt))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers' progress bars and everything below an error out of the output, while the block runs."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def load_masked_lm(path: str | os.PathLike[str]) -> tuple[Any, list[str]]:
    """Load a checkpoint with its MLM head."""
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        model, info = AutoModelForMaskedLM.from_pretrained(path, output_loading_info=True)
    return model, sorted(info["missing_keys"])


def checkpoint_name(encoder: PreTrainedModel) -> str:
    """Name the folder or repository that an encoder was loaded from; empty if it was not loaded."""
    return str(getattr(encoder.config, "_name_or_path", ""))


def use_one_gpu(arguments: SentenceTransformerTrainingArguments, device: str) -> None:
    """Let the Trainer use one GPU of several: it takes all, through ``DataParallel``, and begins with the first."""
    chosen = torch.device(device) if ":" in device else torch.device(device, 0)
    arguments._setup_devices  # noqa: B018  # would otherwise overwrite both when it is first asked for
    torch.cuda.set_device(chosen)
    arguments.__dict__["_setup_devices"] = chosen
    arguments._n_gpu = 1


def store_of_processes() -> Any:
    """Return what the processes of a run keep in common: a few values by name."""
    return torch.distributed.distributed_c10d._get_default_store()


def load_modules_of(model_class: type[SentenceTransformer], classes: Sequence[type[torch.nn.Module]]) -> None:
    """Let a class of models load modules that are not sentence-transformers' own without ``trust_remote_code``."""
    model_class._module_classes = _by_reference(classes)


def load_stock(source: str, classes: Sequence[type[torch.nn.Module]], **options: Any) -> SentenceTransformer:
    """Load a model as the stock class, with modules that are not sentence-transformers' own.

    Of a folder the Hub is not asked, neither now nor when the model is saved: the stock class asks it for what the
    folder is called.
    """
    from sentence_transformers import SentenceTransformer

    options.setdefault("local_files_only", os.path.isdir(source))
    model: SentenceTransformer = SentenceTransformer._load_with_module_classes(
        source, _by_reference(classes), **options
    )
    return model


def _by_reference(classes: Sequence[type[torch.nn.Module]]) -> dict[str, type[torch.nn.Module]]:
    """Name classes as ``modules.json`` does."""
    return {f"{module.__module__}.{module.__qualname__}": module for module in classes}


def onednn_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute a linear layer by oneDNN, without gradients: float32 on a CPU, of any shape that such a layer takes."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return found


def mask_without_prompt(mask: Tensor, prompt_length: Any) -> Tensor:
    """Leave a prompt's tokens out of an attention mask, as ``Pooling`` does without ``include_prompt``."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    length = int(prompt_length.flatten()[0]) if isinstance(prompt_length, Tensor) else int(prompt_length)
    without: Tensor = Pooling._exclude_prompt_from_mask(mask, length)
    return without


def mini_batch_ranges(features: dict[str, Any], size: int, tokens: int | None) -> list[tuple[int, int]]:
    """Cut a batch into mini-batches as the cached losses do."""
    from sentence_transformers.base.losses import gradcache

    ranges: list[tuple[int, int]] = gradcache._minibatch_ranges(features, size, tokens)
    return ranges


def slice_rows(features: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
    """Take rows ``begin`` to ``end`` of a batch, padded or flattened.

    The padding at the end that all of them have is cut off.
    """
    from sentence_transformers.base.losses import gradcache

    rows: dict[str, Any] = gradcache._create_minibatch(features, begin, end)
    return rows


def merge_feature_batches(columns: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Put the rows of several columns under each other, or give None where they do not fit."""
    from sentence_transformers.base.losses import merged_forward

    merged: dict[str, Any] | None = merged_forward.merge_feature_batches(columns)
    return merged


def with_encoder(transformer: Transformer, encoder: PreTrainedModel) -> Transformer:
    """Copy a Transformer module, tokenizer included, around another encoder, which is not copied.

    The module remembers which features its encoder takes: for the one to come that has to be found out again.
    """
    kept = {id(transformer.auto_model): encoder}  # deepcopy takes this for the copy of the old encoder
    made = copy.deepcopy(transformer, kept)
    parameters = inspect.signature(encoder.forward).parameters
    made._declared_forward_params = set(parameters)
    made.model_forward_params = None  # all features but sentence-transformers' own: forward must take **kwargs
    assert any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    made.unpad_inputs = transformer.unpad_inputs  # assigning asks the new encoder whether it can go without padding
    return made


def forget_model_card_text(model: SentenceTransformer) -> None:
    """Make a model write a new card instead of the text of the one it was loaded with."""
    model._model_card_text = None


def is_fused(encoder: PreTrainedModel) -> bool:
    """Return whether an encoder computes attention by PyTorch's fused function."""
    return bool(encoder.config._attn_implementation == "sdpa")


@contextmanager
def eager_attention(encoder: PreTrainedModel) -> Iterator[None]:
    """Let an encoder compute attention so that it can give the weights, while the block runs."""
    before = encoder.config._attn_implementation
    if before == "eager":
        yield
        return
    encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        encoder.set_attn_implementation(before)
