"""From a SentenceTransformer to one that reads long documents through it, in chunks."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from transformers import MODEL_MAPPING, PreTrainedModel

from simlte_st.chunk_mean.backbone import WHOLE_DOCUMENTS, ChunkMean
from simlte_st.chunk_mean.configuration import SimlteChunkMeanConfig
from simlte_st.chunk_mean.modeling import SimlteChunkMeanModel
from simlte_st.compat import encoder_of, readable_length, readable_tokens, with_encoder
from simlte_st.errors import ConfigurationError, ModelError


def convert(settings: ChunkMean, model: SentenceTransformer, path: Path, max_length: int | None, tuned: bool) -> None:
    """Write a model as one that reads through its encoder in chunks; one that does so already may read more."""
    length = max_length or WHOLE_DOCUMENTS
    if not isinstance(model.transformers_model, SimlteChunkMeanModel):
        made = to_chunk_mean(model, length, settings.chunk_length)
    elif settings == ChunkMean():
        made = read_longer(model, length)
    else:
        raise ConfigurationError(
            "The base reads in chunks already: leave out chunk_length=, or convert the model that it was made of."
        )
    made.save_pretrained(str(path), create_model_card=False)


def to_chunk_mean(
    model: SentenceTransformer, max_length: int = 4096, chunk_length: int | None = None
) -> SentenceTransformer:
    """Return a model that reads long documents: the mean of the embeddings of their chunks.

    A document that fits one chunk keeps its embedding. A longer one is split into chunks, each with the special tokens
    around it and, where there is a prompt, with the prompt before it: as if every chunk were encoded by itself. Where
    the model ends with ``Normalize``, chunk embeddings are scaled to length 1 before their mean, and so is the mean.
    All of it is trained end to end.

    The result consists of stock modules and is saved, loaded (after ``import simlte_st``) and trained as any model. Its
    ``max_seq_length`` may be changed. Whether prompts are pooled (``include_prompt``) is taken from the model's
    pooling: the ``Pooling`` module of the result must keep ``include_prompt=True``.

    Args:
        model: A ``Transformer`` that ``AutoModel`` knows, ``Pooling`` with a single mode, and at most a ``Normalize``.
            Its tokenizer puts one special token before and one behind a text. It is not changed.
        max_length: Tokens to read of a document, special tokens included.
        chunk_length: Tokens in a chunk, special tokens included; None: what the model reads now.

    Returns:
        The new model, on the same device, in the same dtype and mode. Weights are copies.

    Raises:
        ModelError: The model is not of this kind; the message says why.
        ConfigurationError: A ``chunk_length`` beyond the encoder's positions or ``max_length``.
    """
    if obstacle := _obstacle(model):
        raise ModelError(f"This model cannot read in chunks: {obstacle}.")
    transformer, pooling, normalizes = cast(Transformer, model[0]), cast(Pooling, model[1]), len(list(model)) == 3
    readable = readable_tokens(model)
    length = readable_length(model) if chunk_length is None else chunk_length
    if length is None:
        raise ConfigurationError("The model has no limit to its length: set chunk_length=.")
    if readable is not None and length > readable:
        raise ConfigurationError(f"chunk_length={length}: the encoder has positions for {readable} tokens.")
    _check_length(max_length, length)
    encoder = copy.deepcopy(transformer.auto_model)
    config = SimlteChunkMeanConfig(
        encoder_config=encoder.config,
        pooling_mode=str(pooling.pooling_mode),
        include_prompt=pooling.include_prompt,
        normalize_chunks=normalizes,
        chunk_length=length,
        max_position_embeddings=max_length,
        dtype=encoder.dtype,
        # The encoder keeps its own name too: there its MLM head is found.
        name_or_path=encoder.config.name_or_path,
    )
    reader = _around(encoder, config)
    made = with_encoder(transformer, reader)
    made.max_seq_length = max_length
    modules: list[torch.nn.Module] = [made, Pooling(config.hidden_size, "cls")]
    if normalizes:
        modules.append(Normalize())
    result = SentenceTransformer(
        modules=modules,
        device=str(model.device),
        prompts={name: prompt for name, prompt in model.prompts.items() if prompt is not None},
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name=model.similarity_fn_name,
        truncate_dim=model.truncate_dim,
    )
    return result.train(model.training)


def read_longer(model: SentenceTransformer, max_length: int) -> SentenceTransformer:
    """Return a copy of a model that reads in chunks, which reads another number of tokens of a document."""
    made = copy.deepcopy(model)
    config = cast(SimlteChunkMeanConfig, encoder_of(made).config)
    _check_length(max_length, config.chunk_length)
    config.max_position_embeddings = max_length
    made.max_seq_length = max_length
    return made


def read_in_chunks(model: SentenceTransformer, max_length: int) -> SentenceTransformer:
    """Return a model that reads long documents in chunks, made of one that may do so already."""
    if isinstance(model.transformers_model, SimlteChunkMeanModel):
        return read_longer(model, max_length)
    return to_chunk_mean(model, max_length)


def chunk_length(model: SentenceTransformer) -> int | None:
    """Return the number of tokens of the chunks that a model reads documents in; None where it does not."""
    encoder = model.transformers_model
    return encoder.config.chunk_length if isinstance(encoder, SimlteChunkMeanModel) else None


def can_read_in_chunks(model: SentenceTransformer) -> bool:
    """Return whether :func:`read_in_chunks` takes a model."""
    return chunk_length(model) is not None or not _obstacle(model)


def _check_length(max_length: int, chunk_length: int) -> None:
    if max_length < chunk_length:
        raise ConfigurationError(f"max_length={max_length}: must be at least the chunk length, {chunk_length} tokens.")


def _obstacle(model: SentenceTransformer) -> str:
    """Return why a model cannot read in chunks; empty for one that can."""
    names = [type(module).__name__ for module in model]
    if not (isinstance(model[0], Transformer) and len(names) > 1 and isinstance(model[1], Pooling)) or (
        names[2:] and not (isinstance(model[2], Normalize) and len(names) == 3)
    ):
        return f"it consists of {', '.join(names)}, not of Transformer, Pooling and at most Normalize"
    if not isinstance(model[1].pooling_mode, str):
        return f"it pools {' and '.join(model[1].pooling_mode)} together"
    encoder, tokenizer = model[0].auto_model, model[0].tokenizer
    if not isinstance(encoder, PreTrainedModel) or isinstance(encoder, SimlteChunkMeanModel):
        return f"its encoder is a {type(encoder).__name__}"
    made: Any = MODEL_MAPPING.get(type(encoder.config), type(encoder))
    if type(encoder) not in (made if isinstance(made, tuple) else (made,)):  # such as the encoder of a T5
        return f"AutoModel does not make its encoder, {type(encoder).__name__}, of its configuration"
    if encoder.config.is_encoder_decoder or model[0].module_output_name != "token_embeddings":
        return f"its architecture, {encoder.config.model_type!r}, returns no states of the tokens of a text"
    marks = tokenizer("a a a", return_special_tokens_mask=True)["special_tokens_mask"]
    if sum(marks) != 2 or len(marks) < 3 or not (marks[0] and marks[-1]):
        return f"{type(tokenizer).__name__} does not put one special token before and one behind a text"
    return ""


def _around(encoder: PreTrainedModel, config: SimlteChunkMeanConfig) -> SimlteChunkMeanModel:
    """Return the model around an encoder that exists already."""
    with torch.device("meta"):  # no memory, no random numbers
        reader = SimlteChunkMeanModel(config)
    reader.encoder = encoder
    reader.train(encoder.training)
    return reader
