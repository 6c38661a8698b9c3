"""Convert BERT- and RoBERTa-like encoders to Longformers: same weights, more positions, windowed attention."""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path
from typing import Any, TypeAlias

import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel

from simlte_st import compat
from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer import SimlteLongformerConfig, SimlteLongformerForMaskedLM, SimlteLongformerModel
from simlte_st.longformer.modeling import GlobalTokens

Longformer: TypeAlias = SimlteLongformerModel | SimlteLongformerForMaskedLM

MAX_LENGTH = 4096
"""Default maximum length of a converted model in tokens, as in the papers."""

# By model type: the weight prefix in its ForMaskedLM class, and whether positions begin at pad_token_id + 1, not 0.
_FAMILIES = {"bert": ("bert.", False), "electra": ("electra.", False)}
_FAMILIES |= dict.fromkeys(("roberta", "camembert", "xlm-roberta"), ("roberta.", True))

_LOCAL = re.compile(r"(\.attention\.self\.(?:query|key|value))\.")

# Configuration fields to copy from the encoder.
_FIELDS = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act",
    "hidden_dropout_prob", "attention_probs_dropout_prob", "type_vocab_size", "initializer_range", "layer_norm_eps",
    "pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "tie_word_embeddings",
)  # fmt: skip


def save_as_longformer(
    model: SentenceTransformer, path: Path, max_length: int | None = None, *, tuned: bool,
    attention_window: int | list[int] | None = None, global_tokens: GlobalTokens | None = None,
) -> None:  # fmt: skip
    """Save a copy of a model with a Longformer as its encoder, including the checkpoint's MLM head, if any.

    Args:
        model: The model, which is not modified.
        path: The output folder.
        max_length: Maximum length in tokens (default: 4,096, or the fixed length of a stock Longformer).
        tuned: Whether the model is a trained sentence encoder rather than a language model.
        attention_window: See :func:`convert_to_longformer`; ignored for a stock Longformer.
        global_tokens: See :func:`convert_to_longformer` (default: ``"none"`` for a tuned stock Longformer, otherwise
            ``"cls"``).
    """
    encoder, readable = compat.get_encoder(model), compat.readable_tokens(model)
    converted: Longformer
    if encoder.config.model_type == "longformer":
        if max_length not in (None, readable):
            raise ConfigurationError(f"max_length={max_length}: the base is a Longformer, fixed at {readable} tokens.")
        converted = adopt_longformer(compat.checkpoint_name(encoder), global_tokens or ("none" if tuned else "cls"))
    else:
        settings = attention_window or 512, global_tokens or "cls"
        converted = convert_to_longformer(compat.checkpoint_name(encoder), max_length or MAX_LENGTH, *settings)
    longformer = copy.deepcopy(model)
    longformer[0].model = converted
    longformer.max_seq_length = converted.config.usable_length  # saved in the tokenizer, so that any loader truncates
    longformer.save_pretrained(str(path), create_model_card=False)


@check_arguments
def convert_to_longformer(
    model_or_path: PreTrainedModel | str | os.PathLike[str],
    max_length: Count = MAX_LENGTH,
    attention_window: int | list[int] = 512,
    global_tokens: GlobalTokens = "cls",
) -> Longformer:
    """Turn an encoder with absolute positions (BERT, MiniLM, RoBERTa, XLM-R, ELECTRA) into a Longformer.

    For documents that fit in half a window, hidden states do not change. The global projections start as copies of the
    local ones, and the position embeddings are repeated up to the new length.

    Args:
        model_or_path: The encoder, with or without an MLM head, or the name or path of its checkpoint.
        max_length: Maximum length in tokens, special tokens included.
        attention_window: Total window size in tokens (both sides), an even number; or a list with one size per layer.
        global_tokens: See :class:`SimlteLongformerConfig`.

    Returns:
        The Longformer, with an MLM head if the original has one. Its weights are copies in the original dtype.

    Raises:
        ModelError: The model cannot be converted; the message gives the reason.
        ConfigurationError: ``max_length`` is below 1, or a window is not even.

    Example:
        ::

            from transformers import BertConfig, BertModel
            from simlte_st.longformer import convert_to_longformer

            bert = BertModel(BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4))
            model = convert_to_longformer(bert, max_length=1024, attention_window=128)
            print(model.config.usable_length)  # 1024

    References:
        Longformer, section 5, "Attention pattern" and "Position Embeddings".
    """
    source = model_or_path if isinstance(model_or_path, PreTrainedModel) else _load(model_or_path)
    _check(source.config)
    family = source.config.model_type
    prefix, shifted = _FAMILIES[family]
    head = dict(zip(("dense", "activation", "layer_norm", "decoder"), compat.MLM_HEADS[family], strict=True))
    state = source.state_dict()
    # A Longformer's head always uses gelu; only a BERT head may use another activation.
    with_head = f"{head['dense']}.weight" in state and (family != "bert" or source.config.hidden_act == "gelu")
    weights = {name.removeprefix(prefix): weight for name, weight in state.items() if not name.endswith("_ids")}
    encoder = {name: weights[name] for name in weights if name.startswith(("embeddings.", "encoder.", "pooler."))}

    pad = source.config.pad_token_id
    fields = {name: getattr(source.config, name) for name in _FIELDS if hasattr(source.config, name)}
    fields |= {"attention_window": attention_window, "max_position_embeddings": max_length + pad + 1}
    config = SimlteLongformerConfig(global_tokens, **fields)
    table = encoder["embeddings.position_embeddings.weight"]
    learned = table[pad + 1 :] if shifted else table
    # Tokens never use positions up to and including the padding position.
    unused = table[: pad + 1] if shifted else table.new_zeros(pad + 1, table.shape[1])
    tiled = learned.repeat(-(-max_length // len(learned)), 1)[:max_length]
    encoder["embeddings.position_embeddings.weight"] = torch.cat([unused, tiled])
    encoder |= {_LOCAL.sub(r"\1_global.", name): weight for name, weight in encoder.items() if _LOCAL.search(name)}

    converted: Longformer
    if with_head:
        converted = SimlteLongformerForMaskedLM(config)
        weights = {f"longformer.{name}": weight for name, weight in encoder.items() if not name.startswith("pooler.")}
        for part in ("dense", "layer_norm", "decoder"):
            for kind in ("weight", "bias"):
                weights[f"lm_head.{part}.{kind}"] = state[f"{head[part]}.{kind}"]
        # These heads have a second bias, which is either equal to the decoder's or unused.
        weights["lm_head.bias"] = weights["lm_head.decoder.bias"]
    else:
        converted = SimlteLongformerModel(config, add_pooling_layer="pooler.dense.weight" in encoder)
        weights = encoder
    converted.load_state_dict(weights)
    converted.tie_weights()
    torch.nn.Module.to(converted, device=table.device, dtype=table.dtype)
    converted.train(source.training)
    return converted


def adopt_longformer(name: str, global_tokens: GlobalTokens) -> Longformer:
    """Load a stock Longformer into this package's class, with its MLM head, if any."""
    load: Any = SimlteLongformerForMaskedLM.from_pretrained
    with compat.quiet_transformers():
        with_head, info = load(name, output_loading_info=True, global_tokens=global_tokens)
        complete = not info["missing_keys"]
        return with_head if complete else SimlteLongformerModel.from_pretrained(name, global_tokens=global_tokens)


def _load(path: str | os.PathLike[str]) -> PreTrainedModel:
    """Load a checkpoint with its MLM head, if any."""
    _check(AutoConfig.from_pretrained(path))
    with_head, missing_keys = compat.load_masked_lm(path)
    if not missing_keys:
        return with_head  # type: ignore[no-any-return]
    with compat.quiet_transformers(), torch.random.fork_rng(devices=[]):
        return AutoModel.from_pretrained(path)  # type: ignore[no-any-return]


def _check(config: PreTrainedConfig) -> None:
    """Reject unsupported encoders."""
    if config.model_type not in _FAMILIES:
        families = f"Supported types, all with absolute positions: {', '.join(_FAMILIES)}."
        raise ModelError(f"A model of type {config.model_type!r} cannot be converted to a Longformer. {families}")
    width = getattr(config, "embedding_size", config.hidden_size)
    if width != config.hidden_size:
        raise ModelError(f"Cannot convert: embedding_size={width} differs from hidden_size={config.hidden_size}.")
