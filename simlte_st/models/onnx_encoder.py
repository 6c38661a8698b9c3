"""ONNX graphs with onnxruntime: exported models, and folders that hold an encoder as a graph and no weights."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from simlte_st.data.tokens import split_by_length
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import require
from simlte_st.files import EXPORT_FILE, digest_of, read_json, valid_unicode
from simlte_st.models.names import local_folder
from simlte_st.progress import progress_bar

logger = logging.getLogger(__name__)

GRAPH_FILE = "model.onnx"
"""The graph from tokens to embeddings."""

_PASS = (2048, 64)  # tokens of a pass, and how many of them may be padding


def load_onnx(model: str | os.PathLike[str]) -> OnnxEncoder:
    """Load an exported model.

    Args:
        model: The folder, or its name in the user's model folder.

    Returns:
        The encoder, which uses as many threads as torch (``torch.set_num_threads``), and a GPU if the installed
        onnxruntime does.

    Raises:
        ModelError: There is no exported model of that name, or it is damaged.
        MissingExtraError: onnxruntime is not installed (extra ``onnx``).

    Example:
        ::

            import simlte_st

            vectors = simlte_st.load_onnx("exported").encode(["A long document ...", "Another one ..."])
    """
    name = os.fspath(model)
    folder = Path(local_folder(name) or name)
    if not (folder / EXPORT_FILE).is_file():
        raise ModelError(f"{name!r} is not an exported model: {folder / EXPORT_FILE} does not exist.")
    return OnnxEncoder(folder)


def prompt_tokens(tokenizer: Tokenizer, prompt: str) -> int:
    """Count the tokens of a prompt and the special tokens before it; 0 for no prompt."""
    read = tokenizer.encode(prompt)
    return sum(read.attention_mask) - read.special_tokens_mask[sum(read.attention_mask) - 1] if prompt else 0


def open_session(file: Path) -> Any:
    """Open a graph for as many threads as torch uses, and for a GPU if the installed onnxruntime uses one."""
    runtime: Any = require("onnxruntime", "onnx", "ONNX graphs")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return runtime.InferenceSession(str(file), options, providers=runtime.get_available_providers())


class OnnxEncoder:
    """An exported model; made by :func:`load_onnx`.

    Attributes:
        settings: The contents of ``export.json``: ``dimension`` of a vector; ``max_length``, tokens that are read of a
            text, or null; ``prompts`` and ``default_prompt_name``, as in sentence-transformers; ``pad_id``;
            ``split_special_tokens``, whether words of special tokens are read as text.
        tokenizer: A tokenizer of the library ``tokenizers``.
    """

    def __init__(self, folder: Path) -> None:
        require("onnxruntime", "onnx", "exported models")
        try:
            self.settings: dict[str, Any] = read_json(folder / EXPORT_FILE)
            self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._graph = open_session(folder / GRAPH_FILE)
        except Exception as error:  # each library has its own errors for damaged files
            raise ModelError(f"The exported model {folder} is incomplete or damaged: {error}") from error
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = self.settings["split_special_tokens"]

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        normalize_embeddings: bool = False,
        show_progress_bar: bool = False,
    ) -> np.ndarray:
        """Encode texts as the exported model did, sorted by length, with almost no padding."""
        inputs = [texts] if isinstance(texts, str) else texts
        prompt = self._prompt(prompt_name) if prompt is None else prompt
        read = self.tokenizer.encode_batch([valid_unicode(prompt + text) for text in inputs])
        if not read:
            return np.zeros((0, self.settings["dimension"]), dtype=np.float32)
        if cut := sum(1 for each in read if each.overflowing):
            logger.warning("%d of %d texts were truncated to %d tokens.", cut, len(read), self.settings["max_length"])
        tokens = [np.asarray(each.ids, dtype=np.int64) for each in read]
        of_prompt = prompt_tokens(self.tokenizer, prompt)
        vectors = self._embed(tokens, of_prompt, show_progress_bar)
        if normalize_embeddings:
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
        return vectors[0] if isinstance(texts, str) else vectors

    def _prompt(self, name: str | None) -> str:
        prompts: dict[str, str] = self.settings["prompts"]
        if name is not None and name not in prompts:
            raise ConfigurationError(f"prompt_name={name!r}: use one of {sorted(prompts)}.")
        return prompts.get(name or self.settings["default_prompt_name"] or "", "")

    def _embed(self, tokens: list[np.ndarray], of_prompt: int, shown: bool) -> np.ndarray:
        lengths = torch.tensor([len(each) for each in tokens])
        order = lengths.argsort(descending=True, stable=True)
        vectors = np.zeros((len(tokens), self.settings["dimension"]), dtype=np.float32)
        with progress_bar("Encoding", len(tokens), unit="text", shown=shown) as bar:
            for rows in split_by_length(order, lengths[order].tolist(), *_PASS):
                ids = np.full((len(rows), int(lengths[rows[0]])), self.settings["pad_id"], dtype=np.int64)
                mask = np.zeros_like(ids)
                for place, row in enumerate(rows.tolist()):
                    ids[place, : len(tokens[row])], mask[place, : len(tokens[row])] = tokens[row], 1
                content = mask * (np.arange(mask.shape[1]) >= of_prompt)
                features = {"input_ids": ids, "attention_mask": mask, "content_mask": content}
                wanted = {each.name: features[each.name] for each in self._graph.get_inputs()}
                vectors[rows.numpy()] = self._graph.run(None, wanted)[0]
                bar.update(len(rows))
        return vectors


def graph_file(folder: Path) -> Path | None:
    """Return the graph of a folder that has an encoder's configuration and no weights; None for other folders."""
    if (folder / EXPORT_FILE).is_file():
        raise ModelError(f"{folder} is an export, which simlte_st.load_onnx() reads: name the model it was made of.")
    if [*folder.glob("*.safetensors"), *folder.glob("*.bin")] or not (folder / "config.json").is_file():
        return None
    places = (folder / "onnx" / GRAPH_FILE, folder / GRAPH_FILE)
    return next((file for file in places if file.is_file()), None)


class OnnxGraph(nn.Module):
    """An encoder that onnxruntime computes, called as transformers' are; it does not learn.

    sentence-transformers needs optimum for ``backend="onnx"``, and that an older transformers.

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
        self._session = open_session(file)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._session = open_session(self.file)  # where it was copied to

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
            each.name: given[each.name].cpu().numpy().astype(np.int32 if each.type == "tensor(int32)" else np.int64)
            for each in self._session.get_inputs()
        }
        states = self._session.run(None, inputs)[0]
        return BaseModelOutput(last_hidden_state=torch.from_numpy(states).float().to(input_ids.device))
