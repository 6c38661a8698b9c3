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

from simlte_st.chunk_mean.backbone import WHOLE_DOCUMENTS, ChunkMean, ChunkWeights
from simlte_st.chunk_mean.configuration import SimlteChunkMeanConfig
from simlte_st.chunk_mean.modeling import SimlteChunkMeanModel
from simlte_st.compat import encoder_of, readable_length, readable_tokens, with_encoder
from simlte_st.errors import ConfigurationError, ModelError


def convert(settings: ChunkMean, model: SentenceTransformer, path: Path, max_length: int | None, tuned: bool) -> None:
    """Write a model as one that reads through its encoder in chunks; one that does so already may read more."""
    length = max_length or WHOLE_DOCUMENTS
    if not isinstance(model.transformers_model, SimlteChunkMeanModel):
        made = to_chunk_mean(model, length, settings.chunk_length, settings.overlap, settings.chunk_weights)
    elif settings == ChunkMean():
        made = read_longer(model, length)
    else:
        raise ConfigurationError(
            "The base reads in chunks already, and keeps how it does: leave out chunk_length=, overlap= and "
            "chunk_weights=, or convert the model that it was made of."
        )
    made.save_pretrained(str(path), create_model_card=False)


def to_chunk_mean(
    model: SentenceTransformer,
    max_length: int = 4096,
    chunk_length: int | None = None,
    overlap: int = 0,
    weights: ChunkWeights = "tokens",
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
        overlap: Tokens that a chunk shares with the one before.
        weights: ``"tokens"`` weighs a chunk by the number of its tokens, ``"equal"`` all chunks alike.

    Returns:
        The new model, on the same device, in the same dtype and mode. Weights are copies.

    Raises:
        ModelError: The model is not of this kind; the message says why.
        ConfigurationError: A ``chunk_length`` beyond the encoder's positions or ``max_length``, an overlap that leaves
            no room in a chunk, or unknown ``weights``.
    """
    transformer, pooling, normalizes = _parts(model)
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
        chunk_overlap=overlap,
        chunk_weights=weights,
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
    try:
        return chunk_length(model) is not None or bool(_parts(model))
    except ModelError:
        return False


def _check_length(max_length: int, chunk_length: int) -> None:
    if max_length < chunk_length:
        raise ConfigurationError(f"max_length={max_length}: must be at least the chunk length, {chunk_length} tokens.")


def _parts(model: SentenceTransformer) -> tuple[Transformer, Pooling, bool]:
    """Return the modules of a model and whether it normalizes."""
    name = "This model cannot read in chunks:"
    names = [type(module).__name__ for module in model]
    if not 2 <= len(names) <= 3 or not isinstance(model[0], Transformer) or not isinstance(model[1], Pooling):
        raise ModelError(
            f"{name} it consists of {', '.join(names)}, not of Transformer, Pooling and at most Normalize."
        )
    if len(names) == 3 and not isinstance(model[2], Normalize):
        raise ModelError(f"{name} {names[2]} follows its pooling, where only Normalize may.")
    transformer, pooling = model[0], model[1]
    if not isinstance(pooling.pooling_mode, str):
        modes = " and ".join(pooling.pooling_mode)
        raise ModelError(f"{name} it pools {modes} together, which does not fit the size of a token's state.")
    encoder = transformer.auto_model
    if not isinstance(encoder, PreTrainedModel):
        raise ModelError(f"{name} its encoder is a {type(encoder).__name__}, not a torch model of transformers.")
    kind = encoder.config.model_type
    if isinstance(encoder, SimlteChunkMeanModel):
        raise ModelError(f"{name} it does so already.")
    if encoder.config.is_encoder_decoder:
        raise ModelError(f"{name} its architecture, {kind!r}, has a decoder.")
    made: Any = MODEL_MAPPING.get(type(encoder.config), type(encoder))
    known = made if isinstance(made, tuple) else (made,)
    if type(encoder) not in known:  # such as the encoder of a T5
        raise ModelError(
            f"{name} its encoder, {type(encoder).__name__}, is not the {known[0].__name__} that AutoModel makes of its "
            "configuration."
        )
    if transformer.module_output_name != "token_embeddings" or "text" not in transformer.modality_config:
        raise ModelError(f"{name} its architecture, {kind!r}, returns no states of the tokens of a text.")
    tokenizer = transformer.tokenizer
    marks = tokenizer("a a a", return_special_tokens_mask=True)["special_tokens_mask"]
    if sum(marks) != 2 or len(marks) < 3 or not (marks[0] and marks[-1]):
        raise ModelError(
            f"{name} {type(tokenizer).__name__} of its {kind!r} does not put one special token before and one behind a "
            "text."
        )
    return transformer, pooling, len(names) == 3


def _around(encoder: PreTrainedModel, config: SimlteChunkMeanConfig) -> SimlteChunkMeanModel:
    """Return the model around an encoder that exists already."""
    kind = encoder.config.model_type
    try:
        with torch.device("meta"):  # no memory, no random numbers
            reader = SimlteChunkMeanModel(config)
    except (ValueError, ImportError) as error:
        raise ModelError(f"This model cannot read in chunks: AutoModel cannot make its {kind!r} ({error}).") from error
    expected, actual = _shapes(reader.encoder), _shapes(encoder)
    if expected != actual:
        differing = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
        raise ModelError(
            f"This model cannot read in chunks: its encoder, {type(encoder).__name__}, is not the "
            f"{type(reader.encoder).__name__} that AutoModel makes of its configuration; they differ in {differing[0]}."
        )
    reader.encoder = encoder
    reader.train(encoder.training)
    return reader


def _shapes(encoder: PreTrainedModel) -> dict[str, Any]:
    return {name: weight.shape for name, weight in encoder.state_dict().items()}
