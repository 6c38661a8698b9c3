"""From the name of a model to the model: finding it on this machine or on the Hub, and loading it."""

from __future__ import annotations

import os
import re

import torch

from simlte_st.models.device import check_device
from simlte_st.models.loading import LoadedModel, load_from
from simlte_st.models.names import (
    HUB_SECONDS,
    OWN_MODELS,
    cached_folder,
    hub_repositories,
    local_folder,
    not_loaded,
)
from simlte_st.models.shipped import put_together

_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def load_model(
    name: str | os.PathLike[str],
    pooling: str = "keep",
    max_seq_length: int | None = None,
    dtype: torch.dtype | None = None,
    device: str | None = None,
) -> LoadedModel:
    """Load a model.

    Texts that hold the words of special tokens, such as ``[MASK]`` or ``</s>``, are read as they stand, as any other
    text; this is saved with the model. Only where its own prompts are written with such words, the model reads them.
    """
    check_device(device)
    return load_from(find_model(name), os.fspath(name), pooling, max_seq_length, dtype, device)


def find_model(name: str | os.PathLike[str]) -> str:
    """Find a model on this machine, as :func:`~simlte_st.models.names.local_folder` does, or on the Hub.

    A model that comes with this package as a difference is put together first, where it is not there yet.

    The Hub is asked once and for five seconds. Without a network, sentence-transformers would ask for each of several
    files, again and again, for over a minute. Endpoint, token and offline mode are those of ``huggingface_hub``
    (``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``).
    """
    text = os.fspath(name)
    if text in OWN_MODELS and not os.path.isdir(text):
        return str(put_together(text))
    folder = local_folder(text)
    if folder is not None:
        return folder
    if os.path.lexists(text):
        raise not_loaded(text, "it is a file, and a model is a folder.")
    if not _HUB_NAME.fullmatch(text):
        raise not_loaded(text, "there is no such folder, and no name on the Hub is so.")
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(hub_repositories(text)[0], timeout=HUB_SECONDS)
        return text
    except Exception as error:  # each version of the library has its own classes
        response, kind = getattr(error, "response", None), type(error).__name__
    if response is not None and response.status_code < 500:  # it has answered, be it that there is no such model
        return text
    folder = cached_folder(text)
    if folder is not None:
        return folder
    raise not_loaded(
        text,
        f"there is no such folder, the Hub cannot be reached ({kind}), and its cache does not have it. Where it can be "
        f"reached, fetch the model with: hf download {hub_repositories(text)[0]}.",
    )
