"""Encode texts with an encoder exported to ONNX."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import require
from simlte_st.files import EXPORT_FILE, read_json, valid_unicode
from simlte_st.progress import progress_bar
from simlte_st.words.tokens import CPU_PASS, split_by_length

logger = logging.getLogger(__name__)

GRAPH_FILE = "model.onnx"
"""The graph that computes embeddings from tokens."""


@check_arguments
def load_onnx(model: str | os.PathLike[str]) -> OnnxEncoder:
    """Load an exported model.

    Args:
        model: Folder of the exported model.

    Returns:
        The encoder. It uses as many threads as torch (``torch.set_num_threads``), and a GPU if the installed
        onnxruntime supports it.

    Raises:
        ModelError: The folder is not an exported model.
        MissingExtraError: onnxruntime is not installed (the ``onnx`` extra).

    Example:
        ::

            import simlte_st

            vectors = simlte_st.load_onnx("exported").encode(["A long document ...", "Another one ..."])
    """
    folder = Path(model)
    if not (folder / EXPORT_FILE).is_file():
        raise ModelError(f"{folder} is not an exported model: {folder / EXPORT_FILE} does not exist.")
    return OnnxEncoder(folder)


def prompt_tokens(tokenizer: Tokenizer, prompt: str) -> int:
    """Count the tokens of a prompt and the special tokens before it; 0 for no prompt."""
    encoding = tokenizer.encode(prompt)
    length = sum(encoding.attention_mask)
    return length - encoding.special_tokens_mask[length - 1] if prompt else 0


class OnnxEncoder:
    """An exported model, loaded by :func:`load_onnx`.

    Attributes:
        settings: The contents of ``export.json``: ``dimension`` (of the vectors), ``max_length`` (in tokens, or null
            for no limit), ``prompts`` and ``default_prompt_name`` (as in sentence-transformers), ``pad_id``, and
            ``split_special_tokens`` (whether special tokens in texts are read as plain text).
        tokenizer: A ``tokenizers.Tokenizer``.
    """

    def __init__(self, folder: Path) -> None:
        import torch

        runtime = require("onnxruntime", "onnx", "exported models")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.settings: dict[str, Any] = read_json(folder / EXPORT_FILE)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        providers = runtime.get_available_providers()
        self._graph = runtime.InferenceSession(str(folder / GRAPH_FILE), options, providers=providers)
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = self.settings["split_special_tokens"]

    @check_arguments
    def encode(
        self,
        texts: str | Sequence[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: Count = 32,
        normalize_embeddings: bool = False,
        show_progress_bar: bool = False,
    ) -> NDArray[np.float32]:
        """Encode texts as the original model does, sorted by length to reduce padding.

        Args:
            texts: One text or several.
            prompt_name: Name of the prompt to use, one of ``settings["prompts"]``.
            prompt: Text of the prompt; takes precedence over ``prompt_name``.
            batch_size: Batch size for the longest texts; shorter ones get larger batches.
            normalize_embeddings: Whether to scale vectors to length 1.
            show_progress_bar: Whether to show a progress bar.

        Returns:
            Vectors ``(texts, dimension)``, or ``(dimension,)`` for one text; float32.

        Raises:
            ConfigurationError: The model has no prompt of that name, or an argument has the wrong type.
        """
        inputs, prompts = [texts] if isinstance(texts, str) else texts, self.settings["prompts"]
        if prompt is None:
            if prompt_name is not None and prompt_name not in prompts:
                raise ConfigurationError(f"prompt_name={prompt_name!r}: the model's prompts are {list(prompts)}.")
            prompt = str(prompts.get(prompt_name or self.settings["default_prompt_name"], ""))
        encodings = self.tokenizer.encode_batch([valid_unicode(prompt + text) for text in inputs])
        if not encodings:
            return np.zeros((0, self.settings["dimension"]), dtype=np.float32)
        if truncated := sum(1 for encoding in encodings if encoding.overflowing):
            limit = self.settings["max_length"]
            logger.warning("%d of %d texts were truncated to %d tokens.", truncated, len(encodings), limit)
        tokens = [np.asarray(encoding.ids, dtype=np.int64) for encoding in encodings]
        vectors = self._embed(tokens, prompt_tokens(self.tokenizer, prompt), batch_size, show_progress_bar)
        if normalize_embeddings:
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
        return vectors[0] if isinstance(texts, str) else vectors

    def _embed(
        self, tokens: list[NDArray[np.int64]], prompt_length: int, batch_size: int, show_progress_bar: bool
    ) -> NDArray[np.float32]:
        lengths = np.array([len(ids) for ids in tokens])
        order = np.argsort(-lengths, kind="stable")
        vectors = np.zeros((len(tokens), self.settings["dimension"]), dtype=np.float32)
        max_slots = min(batch_size * int(lengths.max()), CPU_PASS[0])
        inputs = [node.name for node in self._graph.get_inputs()]
        with progress_bar("Encoding", len(tokens), unit="text", show=show_progress_bar) as bar:
            for rows in split_by_length(order, lengths[order].tolist(), max_slots, CPU_PASS[1]):
                ids = np.full((len(rows), int(lengths[rows[0]])), self.settings["pad_id"], dtype=np.int64)
                mask = np.zeros_like(ids)
                for place, row in enumerate(rows.tolist()):
                    ids[place, : lengths[row]], mask[place, : lengths[row]] = tokens[row], 1
                content = mask * (np.arange(mask.shape[1]) >= prompt_length)
                features = {"input_ids": ids, "attention_mask": mask, "content_mask": content}
                vectors[rows] = self._graph.run(None, {name: features[name] for name in inputs})[0]
                bar.update(len(rows))
        return vectors
