"""From the name of a model to the loaded model."""

from __future__ import annotations

import os
import re
from typing import Literal

import torch

from simlte_st.models.device import check_device
from simlte_st.models.loading import LoadedModel, load_from
from simlte_st.models.names import OWN_MODELS, cached_folder, hub_problem, hub_repositories, local_folder, not_loaded
from simlte_st.models.shipped import put_together

_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def load_model(
    name: str | os.PathLike[str],
    pooling: str = "keep",
    max_seq_length: int | None = None,
    dtype: torch.dtype | Literal["auto"] | None = None,
    device: str | None = None,
    graphs: bool = False,
) -> LoadedModel:
    """Load a model by name or folder; see :func:`find_model`.

    Words of special tokens in texts, such as ``[MASK]``, are read as ordinary text, unless the model's own prompts use
    them. The setting is saved with the model. A folder that has an ONNX graph and no weights is an error, unless it is
    asked for (``graphs``): such a model encodes, and is not trained, changed or saved.

    ``dtype`` is what the model computes in: None for float32 on a CPU and the checkpoint's own on a GPU, ``"auto"`` for
    the checkpoint's own.
    """
    check_device(device)
    return load_from(find_model(name), os.fspath(name), pooling, max_seq_length, dtype, device, graphs)


def find_model(name: str | os.PathLike[str]) -> str:
    """Return the folder of a model on this machine or its name on the Hub.

    A folder comes first, then a name in the user's model folder, the packaged base model, and the Hub. The models of
    this package are made when they are first asked for. Endpoint, token and offline mode are those of
    ``huggingface_hub`` (``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``); if the Hub does not answer within five
    seconds, its cache is used.
    """
    text = os.fspath(name)
    if text in OWN_MODELS and not os.path.isdir(text):
        return str(put_together(text))
    if (folder := local_folder(text)) is not None:
        return folder
    if os.path.lexists(text):
        raise not_loaded(text, "it is a file, and a model is a folder.")
    if not _HUB_NAME.fullmatch(text):
        raise not_loaded(text, "there is no such folder, and it is not a name on the Hub.")
    # Asked once: without a network, sentence-transformers would ask for each of several files for over a minute.
    if (problem := hub_problem(hub_repositories(text)[0])) is None:
        return text
    if (folder := cached_folder(text)) is not None:
        return folder
    raise not_loaded(
        text,
        f"there is no such folder, the Hub cannot be reached ({problem}), and its cache does not have it. With a "
        f"network, fetch the model by: hf download {hub_repositories(text)[0]}.",
    )
