"""Uses of private APIs of sentence-transformers, transformers and torch; ``tests/test_compat.py`` fails if one changes.

Only the Longformer uses others: its kernels call torch operators, and its model class overrides transformers hooks.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from logging import WARNING, LogRecord, getLogger
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, PreTrainedModel
from transformers.utils import logging

from simlte_st.errors import ModelError
from simlte_st.prompts import document_prompt

if TYPE_CHECKING:  # this module may be imported while sentence_transformers is being imported
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
    from transformers import TrainerCallback

logger = getLogger(__name__)

Features: TypeAlias = dict[str, Any]
"""Module inputs and outputs by name, mostly tensors. Token features are either padded to ``(rows, length)`` with an
``attention_mask``, or flattened to ``(1, tokens)`` with ``cu_seq_lens_q`` (shape ``(rows + 1,)``)."""

_LM_HEAD = ("lm_head.dense", "gelu", "lm_head.layer_norm", "lm_head.decoder")
MLM_HEADS: dict[str, tuple[str, str, str, str]] = {
    "bert": (
        "cls.predictions.transform.dense", "cls.predictions.transform.transform_act_fn",
        "cls.predictions.transform.LayerNorm", "cls.predictions.decoder",
    ),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert", "longformer", "simlte_longformer", "mpnet"), _LM_HEAD),
    "distilbert": ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    "electra": (
        "generator_predictions.dense", "generator_predictions.activation", "generator_predictions.LayerNorm",
        "generator_lm_head",
    ),
    "modernbert": ("head.dense", "head.act", "head.norm", "decoder"),
}  # fmt: skip
"""Parts of the MLM head by model type: dense, activation (a module or function name), layer norm, decoder."""

NO_LIMIT = 10**9  # lengths of at least this mean "no limit"; transformers uses VERY_LARGE_INTEGER (1e30)
_STATIC_PLACES = ("models", "models.StaticEmbedding", "sentence_transformer.modules.static_embedding")
_STATIC_NAMES = tuple(f"sentence_transformers.{place}.StaticEmbedding" for place in _STATIC_PLACES)
"""Names of sentence-transformers' static embedding in ``modules.json``."""

_RANDOM = re.compile(r"^(?!(?:.+\.)?pooler\.)([^|\n]+?) +\| \S*(?:MISSING|MISMATCH|CONVERSION)", re.MULTILINE)
"""Matches rows of transformers' load report that list random weights, but not the pooler's, which embeddings ignore."""


def unwrap_compiled(model: torch.nn.Module) -> torch.nn.Module:
    """Strip a model's ``torch.compile`` wrapper, if it has one."""
    return cast("torch.nn.Module", getattr(model, "_orig_mod", model))


def get_encoder(model: torch.nn.Module) -> PreTrainedModel:
    """Return a SentenceTransformer's Hugging Face encoder, unwrapping DDP and ``torch.compile``."""
    model = unwrap_compiled(getattr(model, "module", model))
    first = next(iter(model.children()), None)
    encoder = getattr(first, "auto_model", None)
    if not isinstance(encoder, PreTrainedModel) or not isinstance(encoder.get_input_embeddings(), torch.nn.Embedding):
        raise ModelError(
            "This needs a SentenceTransformer whose first module is a Transformer with word embeddings; "
            f"this model begins with {type(first).__name__}. A loss with mlm_weight=0 takes any model."
        )
    return encoder


def readable_tokens(model: SentenceTransformer) -> int | None:
    """Return the number of token positions, including special tokens; None for no limit.

    RoBERTa-like models (RoBERTa, XLM-R, MPNet, Longformer) number their positions from ``padding_idx + 1``.
    """
    transformer = model.transformers_model
    if transformer is None or hasattr(model[0], "chunk_length"):  # a ChunkMean
        return None
    config = transformer.config
    usable = getattr(config, "usable_length", None)  # this package's Longformer
    if isinstance(usable, int):
        return usable
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    positions = getattr(text_config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions <= 0:  # DeBERTa-like configurations use -1 for "no limit"
        return None
    for module in transformer.modules():
        padding = getattr(module, "padding_idx", None)
        # Only models with shifted positions have both a padding index and a learned position table.
        if isinstance(padding, int) and isinstance(getattr(module, "position_embeddings", None), torch.nn.Embedding):
            return positions - padding - 1
    return positions


def readable_length(model: SentenceTransformer, max_seq_length: int | None = None) -> int | None:
    """Return the maximum number of tokens the model reads, including special tokens; None for no limit."""
    if getattr(model[0], "max_seq_length", None) == float("inf"):  # a StaticEmbedding
        return None
    lengths = (max_seq_length or model.max_seq_length, readable_tokens(model))
    return min((length for length in lengths if length is not None and length < NO_LIMIT), default=None)


def untruncated_lengths(model: SentenceTransformer, features: Features) -> list[int] | None:
    """Count the tokens of each text before truncation, without special tokens; None for slow tokenizers."""
    encodings = getattr(features, "encodings", None)
    if not encodings:
        return None
    special = reserved_tokens(model, "")
    # Truncated tokens are in overflowing encodings, each with its own special tokens and padding.
    texts = ((encoding, *encoding.overflowing) for encoding in encodings)
    return [sum(sum(piece.attention_mask) - special for piece in pieces) for pieces in texts]


def calls_forward(model: SentenceTransformer) -> bool:
    """Return whether ``encode`` calls the model's own ``forward`` rather than a compiled or distributed version."""
    return model._compiled_call_impl is None and model._distributed_inference is None


def has_hooks(model: torch.nn.Module) -> bool:
    """Return whether any module has a forward hook, which could see or change its output."""
    return any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def reserved_tokens(model: SentenceTransformer, prompt: str) -> int:
    """Count the special tokens and prompt tokens that are added to a text."""
    if model.transformers_model is None:  # word vectors have no special tokens
        return 0
    tokenizer = model.tokenizer
    special = int(tokenizer.num_special_tokens_to_add(pair=False))
    return special + (len(tokenizer(prompt, add_special_tokens=False)["input_ids"]) if prompt else 0)


def view_budget(model: SentenceTransformer, prompt: str | None = None) -> int | None:
    """Return the number of tokens left for text after special tokens and the prompt; None for no limit.

    ``prompt`` defaults to the document prompt.
    """
    length = readable_length(model)
    if length is None:
        return None
    return max(1, length - reserved_tokens(model, document_prompt(model) if prompt is None else prompt))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hide transformers' progress bars and all messages except errors inside the block."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def short_load_report() -> Iterator[None]:
    """Replace transformers' load report with one warning about random weights that affect embeddings.

    An unused head in the checkpoint or a missing pooler does not affect them.
    """
    library = getLogger("transformers.modeling_utils")
    level = library.level
    library.setLevel(min(WARNING - 1, logging.get_verbosity()))  # at WARNING, it would also check parallelism plans
    library.addFilter(_replace_report)
    try:
        yield
    finally:
        library.removeFilter(_replace_report)
        library.setLevel(level)


def _replace_report(record: LogRecord) -> bool:
    """Replace a load report with a warning; return whether to log the record itself."""
    title, _, rows = record.getMessage().partition("\n")
    if " LOAD REPORT" not in title:
        return record.levelno >= logging.get_verbosity()
    if names := sorted(_RANDOM.findall(rows)):
        name = title.rpartition(" from: ")[2]
        message = "%d weights of %s could not be loaded from the checkpoint and are random: %s ..."
        logger.warning(message, len(names), name, names[0])
    return False


def load_masked_lm(path: str | os.PathLike[str]) -> tuple[Any, list[str]]:
    """Load a checkpoint with its MLM head, and return it with the names of missing weights."""
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        model, info = AutoModelForMaskedLM.from_pretrained(path, output_loading_info=True)
    return model, sorted(info["missing_keys"])


def checkpoint_name(encoder: PreTrainedModel) -> str:
    """Return the folder or Hub repository of an encoder's checkpoint, or an empty string."""
    return str(getattr(encoder.config, "_name_or_path", ""))


def use_one_gpu(arguments: SentenceTransformerTrainingArguments, device: str) -> None:
    """Make the Trainer use a single GPU instead of all of them through ``DataParallel``."""
    gpu = torch.device(device) if ":" in device else torch.device(device, 0)
    arguments._setup_devices  # noqa: B018  # cache it now: computed later, it would overwrite the settings below
    torch.cuda.set_device(gpu)
    arguments._setup_devices = gpu
    arguments._n_gpu = 1


def resumed_checkpoint() -> str | None:
    """Return the checkpoint that the calling ``Trainer.train`` resumes from, or None; callbacks do not receive it."""
    from transformers import Trainer

    code, frame = inspect.unwrap(Trainer.train).__code__, inspect.currentframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return None if frame is None else cast("str | None", frame.f_locals["resume_from_checkpoint"])


class FirstCallbacks(list["TrainerCallback"]):
    """Callbacks that the Trainer runs before its default callbacks.

    The Trainer computes ``defaults + callbacks``, so reporters such as TensorBoard would write a log entry before these
    callbacks could extend it.
    """

    def __radd__(self, defaults: list[TrainerCallback]) -> list[TrainerCallback]:
        return [*self, *defaults]


def register_modules(model_class: type[SentenceTransformer], classes: Sequence[type[torch.nn.Module]]) -> None:
    """Let a model class load custom modules without ``trust_remote_code``."""
    model_class._module_classes = _by_reference(classes)


def load_stock(source: str | None, classes: Sequence[type[torch.nn.Module]], **options: Any) -> SentenceTransformer:
    """Load a model with custom modules as an instance of the stock class."""
    from sentence_transformers import SentenceTransformer as Stock

    references = _by_reference(classes)
    with short_load_report():
        # sentence-transformers treats an empty name like None.
        return Stock._load_with_module_classes(source or "", references, **options)


def extend_stock(find: Callable[[str], str | None], classes: Mapping[str, type[torch.nn.Module]]) -> None:
    """Let the stock classes load models by name, and custom modules without ``trust_remote_code``.

    Args:
        find: Function that returns the folder of a known model name, and None for other names.
        classes: Module classes by their names in ``modules.json``.
    """
    from sentence_transformers.base.model import BaseModel  # of SentenceTransformer, SparseEncoder, CrossEncoder, ...

    load = BaseModel.__init__

    @wraps(load)
    def initialise(self: Any, model_name_or_path: str | None = None, *args: Any, **options: Any) -> None:
        if isinstance(model_name_or_path, str) and (folder := find(model_name_or_path)) is not None:
            model_name_or_path, options["local_files_only"] = folder, True
        load(self, model_name_or_path, *args, **options)

    BaseModel.__init__ = initialise  # type: ignore[method-assign]
    BaseModel._module_classes = classes


def _by_reference(classes: Sequence[type[torch.nn.Module]]) -> dict[str, type[torch.nn.Module]]:
    """Map names in ``modules.json`` to classes; a subclass of the stock static embedding replaces it."""
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    modules = {f"{module.__module__}.{module.__qualname__}": module for module in classes}
    loaders = (module for module in classes if issubclass(module, StaticEmbedding))
    return modules | {name: loader for loader in loaders for name in _STATIC_NAMES}


def onednn_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute a linear layer with oneDNN (CPU, float32, no gradients)."""
    return cast("Tensor", torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], ""))


def softmax_gradient(grad: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient of a softmax over the last dimension; ``grad`` is the gradient of its output ``weights``."""
    return torch._softmax_backward_data(grad, weights, -1, weights.dtype)


def mask_without_prompt(mask: Tensor, prompt_length: int | Tensor) -> Tensor:
    """Mask the prompt tokens, as ``Pooling`` does with ``include_prompt=False``."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    return cast("Tensor", Pooling._exclude_prompt_from_mask(mask, int(torch.as_tensor(prompt_length).flatten()[0])))


def mini_batch_ranges(features: Features, size: int, tokens: int | None) -> list[tuple[int, int]]:
    """Divide a batch into mini-batches as the cached losses do."""
    from sentence_transformers.base.losses import gradcache

    return gradcache._minibatch_ranges(features, size, tokens)


class LossWrapper(NamedTuple):
    """``MatryoshkaLoss`` or ``AdaptiveLayerLoss`` while it calls the loss inside it, with a replaced ``forward``."""

    name: str
    first_pass: bool  # whether this is its first call of the loss for a batch
    decorators: list[tuple[torch.nn.Module, Any]]

    @contextmanager
    def without_wrapper(self) -> Iterator[None]:
        """Restore the model's own forward inside the block."""
        for module, decorator in self.decorators:
            while hasattr(decorator, "fn"):
                decorator = decorator.fn
            module.forward = decorator
        try:
            yield
        finally:
            for module, decorator in self.decorators:
                module.forward = decorator


def find_loss_wrapper(model: torch.nn.Module) -> LossWrapper | None:
    """Return the stock wrapper that is now calling the loss inside it, or None."""
    from sentence_transformers.sentence_transformer.losses import adaptive_layer, matryoshka

    names = {adaptive_layer.ForwardDecorator: "AdaptiveLayerLoss", matryoshka.ForwardDecorator: "MatryoshkaLoss"}
    modules = dict.fromkeys([model, unwrap_compiled(model), unwrap_compiled(getattr(model, "module", model))])
    outer = [(module, decorator) for module in modules if type(decorator := vars(module).get("forward")) in names]
    chain: list[Any] = [decorator for _, decorator in outer]
    for decorator in chain:  # grows: a wrapper may be inside another
        chain += [decorator.fn] if type(decorator.fn) in names else []
    if not chain:
        return None
    transformer = vars(next(iter([*modules][-1].children()))).get("forward")
    is_cached = any(getattr(decorator, "cache", None) for decorator in chain)
    first_pass = getattr(transformer, "layer_idx", None) is None and not is_cached
    return LossWrapper(" and ".join(names[type(decorator)] for decorator in chain), first_pass, outer)


def slice_rows(features: Features, begin: int, end: int) -> Features:
    """Return rows ``begin`` to ``end`` of a padded or flattened batch, without the padding that all of them share."""
    from sentence_transformers.base.losses import gradcache

    return gradcache._create_minibatch(features, begin, end)


def merge_feature_batches(columns: list[Features]) -> Features | None:
    """Concatenate the rows of several columns; return None if their features differ."""
    from sentence_transformers.base.losses import merged_forward

    return merged_forward.merge_feature_batches(columns)


@contextmanager
def masks_without_vmap() -> Iterator[None]:
    """Make transformers broadcast attention masks inside the block, because ``vmap`` cannot be traced."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as FUNCTIONS

    originals = {name: FUNCTIONS[name] for name in ("sdpa", "eager")}
    for name, mask in originals.items():
        FUNCTIONS[name] = lambda *args, mask=mask, **options: mask(*args, **{**options, "use_vmap": False})
    try:
        yield
    finally:
        FUNCTIONS.update(originals)


def is_fused(encoder: PreTrainedModel) -> bool:
    """Return whether an encoder uses PyTorch's fused attention."""
    return bool(encoder.config._attn_implementation == "sdpa")


@contextmanager
def eager_attention(encoder: PreTrainedModel) -> Iterator[None]:
    """Switch an encoder to eager attention, which can return attention weights, inside the block."""
    original = encoder.config._attn_implementation
    encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        encoder.set_attn_implementation(original)
