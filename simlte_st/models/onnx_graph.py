"""Folders of models that hold the encoder as an ONNX graph and no weights: onnxruntime in the place of the encoder.

sentence-transformers reads them with ``backend="onnx"``, for which it needs optimum, and that an older transformers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from simlte_st.errors import MissingExtraError, ModelError
from simlte_st.files import EXPORT_FILE, digest_of
from simlte_st.models.onnx_encoder import open_session

_STATES = ("last_hidden_state", "token_embeddings")
"""What optimum and earlier versions of sentence-transformers call the states of the tokens."""


def graph_file(folder: Path) -> Path | None:
    """Return the graph of a folder that has an encoder's configuration and no weights; None for other folders."""
    if (folder / EXPORT_FILE).is_file():
        raise ModelError(f"{folder} is an export, which simlte_st.load_onnx() reads: name the model it was made of.")
    weights = [*folder.glob("*.safetensors"), *folder.glob("*.bin"), *folder.glob("*.index.json")]
    files = sorted([*folder.glob("onnx/*.onnx"), *folder.glob("*.onnx")])
    if weights or not files or not (folder / "config.json").is_file():
        return None
    usual = [file for file in (folder / "onnx" / "model.onnx", folder / "model.onnx") if file in files]
    if len(files) > 1 and not usual:
        names = ", ".join(str(file.relative_to(folder)) for file in files)
        raise ModelError(f"{folder} has no weights, and several graphs ({names}): rename one of them to model.onnx.")
    return (usual or files)[0]


class OnnxGraph(nn.Module):
    """An encoder that onnxruntime computes, called as transformers' are; it does not learn.

    Attributes:
        config: The configuration of the encoder that was exported.
        digest: Digest of the file, by which an index knows it: uint8, shape ``[16]``.
    """

    digest: Tensor

    def __init__(self, file: Path, config: Any) -> None:
        super().__init__()
        self.config, self.file = config, file
        bytes_of = (np.memmap(each, mode="r") for each in sorted(file.parent.glob(f"{file.name}*")))  # and weights
        self.register_buffer("digest", torch.frombuffer(bytearray.fromhex(digest_of(bytes_of)), dtype=torch.uint8))
        self._open()

    def _open(self) -> None:
        try:
            self._session = open_session(self.file)
        except MissingExtraError:
            raise
        except Exception as error:  # onnxruntime's have no class in common
            raise ModelError(f"{self.file} is damaged, or no graph that onnxruntime reads: {error}") from None
        names = [each.name for each in self._session.get_outputs()]
        self._output = next((name for name in _STATES if name in names), None)
        known = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
        self._inputs = {each.name: each.type for each in self._session.get_inputs()}
        if self._output is None or not self._inputs.keys() <= known:
            raise ModelError(
                f"{self.file} is no graph of an encoder: it takes {', '.join(self._inputs)} and returns "
                f"{', '.join(names)}, none of which is {' or '.join(_STATES)}."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}  # opened where it is copied to

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._open()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None, **options: Any
    ) -> BaseModelOutput:
        """Return the states of the tokens."""
        given = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids,
            "position_ids": (attention_mask.cumsum(1) - 1).clamp(min=0),
        }
        inputs = {
            name: given[name].cpu().numpy().astype(np.int32 if kind == "tensor(int32)" else np.int64)
            for name, kind in self._inputs.items()
        }
        try:
            states = self._session.run([self._output], inputs)[0]
        except Exception as error:
            raise ModelError(f"{self.file} cannot compute texts of {input_ids.shape[1]} tokens: {error}") from None
        return BaseModelOutput(last_hidden_state=torch.from_numpy(states).float().to(input_ids.device))
