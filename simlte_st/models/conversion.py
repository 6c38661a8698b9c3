"""A base model to one that reads long documents: ``simlte convert``, and the first step of training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Interval

from simlte_st.arguments import Count, checked
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import atomic_path, check_free

WHOLE_DOCUMENTS = 32_768
"""Number of tokens that a model reads in chunks by default."""


@checked
def convert_base(
    base: Any,
    output: str | os.PathLike[str],
    *,
    backbone: Literal["chunk-mean", "longformer"] | None = None,
    max_length: Count | None = None,
    pooling: Literal["keep", "cls", "mean"] = "keep",
    chunk_length: Annotated[int, Interval(ge=3)] | None = None,
    attention_window: Annotated[int, Interval(ge=2)] | list[int] | None = None,
    global_tokens: Literal["cls", "none"] | None = None,
    overwrite: bool = False,
) -> Any:
    """Write a base model as one that reads long documents.

    With ``backbone="chunk-mean"`` the encoder stays as it is and reads a document in chunks, whose embeddings are
    averaged: it needs no training. With ``"longformer"`` an encoder with absolute positions (BERT, MiniLM, RoBERTa,
    XLM-R, ELECTRA) becomes a Longformer with the same weights, which should be trained. A stock Longformer becomes this
    package's, which computes the same and is faster.

    Args:
        base: Model to convert: a folder, a name, or a loaded model.
        output: Folder to write the new model to.
        backbone: How the new model reads long documents: ``chunk-mean`` averages the embeddings of chunks,
            ``longformer`` reads each document in one pass (default: chunk-mean, or longformer if the base is one, or if
            ``max_length=`` or a Longformer setting is given).
        max_length: Maximum document length in tokens, special tokens included (default: 32,768 in chunks, 4,096 as a
            Longformer; a stock Longformer keeps its length).
        pooling: Pooling of the new model, or of each chunk; ``keep`` keeps the base's.
        chunk_length: Tokens in a chunk, special tokens included; chunk-mean only (default: the base's limit).
        attention_window: Tokens that a token attends to, on both sides together: an even number, or a list with one for
            each layer; longformer only (default: 512).
        global_tokens: Tokens with global attention: ``cls``, the first one, or ``none``; longformer only (default: cls,
            but none for a sentence encoder that is a stock Longformer, which was tuned without).
        overwrite: Overwrite an existing model.

    Returns:
        The base, a :class:`~simlte_st.models.loading.LoadedModel`.

    Raises:
        ModelError: The base cannot be loaded or converted; the message says why.
        ConfigurationError: An argument is out of range or belongs to the other backbone, or something else is at the
            output.
    """
    if backbone is None and chunk_length is not None:
        backbone = "chunk-mean"
    longformer: dict[str, Any] = {"attention_window": attention_window, "global_tokens": global_tokens}
    foreign: dict[str, Any] = {"chunk_length": chunk_length} if backbone == "longformer" else longformer
    for name, value in foreign.items() if backbone else ():
        if value is not None:
            raise ConfigurationError(f"{name}={value!r} does not go with backbone={backbone!r}: leave it out.")
    target = Path(output)
    check_free(target, overwrite)
    from simlte_st.compat import encoder_of
    from simlte_st.longformer.convert import save_as_longformer
    from simlte_st.models.loading import LoadedModel, load_model
    from simlte_st.models.static import is_static
    from simlte_st.modules.chunk_mean import ChunkMean, to_chunk_mean

    # The new model is stored in the dtype of the base.
    loaded = base.copy(pooling) if isinstance(base, LoadedModel) else load_model(base, pooling, dtype="auto")
    if is_static(loaded.model):
        raise ModelError(f"{loaded.name!r} is a static embedding, which reads texts to their end as it is.")
    in_chunks = isinstance(loaded.model[0], ChunkMean)
    if backbone is None:
        given = any(value is not None for value in (max_length, *longformer.values())) and not in_chunks
        is_longformer = encoder_of(loaded.model).config.model_type == "longformer"
        backbone = "longformer" if given or is_longformer else "chunk-mean"
    if backbone == "longformer" and in_chunks:
        raise ModelError(f"{loaded.name!r} reads in chunks: convert the model that it was made from.")
    with atomic_path(target) as path:
        if backbone == "longformer":
            save_as_longformer(loaded.model, path, max_length, tuned=loaded.tuned, **longformer)
        else:
            made = to_chunk_mean(loaded.model, max_length or WHOLE_DOCUMENTS, chunk_length)
            made.save_pretrained(str(path), create_model_card=False)
    return loaded
