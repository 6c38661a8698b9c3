"""From the name of a model to the loaded model."""

from __future__ import annotations

import os
from typing import Literal

import torch

from simlte_st.models.device import check_device
from simlte_st.models.loading import LoadedModel, load_from
from simlte_st.models.names import find_model


def load_model(
    name: str | os.PathLike[str],
    pooling: str = "keep",
    max_seq_length: int | None = None,
    dtype: torch.dtype | Literal["auto"] | None = None,
    device: str | None = None,
    graphs: bool = False,
) -> LoadedModel:
    """Load a model by name or folder; see :func:`~simlte_st.models.names.find_model`.

    Words of special tokens in texts, such as ``[MASK]``, are read as ordinary text, unless the model's own prompts use
    them. The setting is saved with the model. A folder that has an ONNX graph and no weights is an error, unless it is
    asked for (``graphs``): such a model encodes, and is not trained, changed or saved.

    ``dtype`` is what the model computes in: None for float32 on a CPU and the checkpoint's own on a GPU, ``"auto"`` for
    the checkpoint's own.
    """
    check_device(device)
    return load_from(find_model(name), os.fspath(name), pooling, max_seq_length, dtype, device, graphs)
