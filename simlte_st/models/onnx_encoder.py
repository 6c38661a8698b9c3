"""Exported models: ONNX graphs that onnxruntime computes."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import require
from simlte_st.files import EXPORT_FILE, read_json, valid_unicode
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


class OnnxEncoder:
    """An exported model; made by :func:`load_onnx`.

    Attributes:
        settings: The contents of ``export.json``: ``dimension`` of a vector; ``max_length``, tokens that are read of a
            text, or null; ``prompts`` and ``default_prompt_name``, as in sentence-transformers; ``pad_id``;
            ``split_special_tokens``, whether words of special tokens are read as text.
        tokenizer: A tokenizer of the library ``tokenizers``.
    """

    def __init__(self, folder: Path) -> None:
        import torch

        runtime: Any = require("onnxruntime", "onnx", "exported models")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            self.settings: dict[str, Any] = read_json(folder / EXPORT_FILE)
            self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._graph = runtime.InferenceSession(
                str(folder / GRAPH_FILE), options, providers=runtime.get_available_providers()
            )
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
        import torch

        from simlte_st.data.tokens import split_by_length

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
