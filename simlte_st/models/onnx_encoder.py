"""Exported models: texts to vectors with onnxruntime."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from simlte_st.chunk_mean.chunks import ChunkBatch, plan_chunks
from simlte_st.errors import ConfigurationError, ModelError, did_you_mean
from simlte_st.extras import require
from simlte_st.files import EXPORT_FILE, read_json, valid_unicode
from simlte_st.models.names import local_folder
from simlte_st.progress import progress_bar

logger = logging.getLogger(__name__)

GRAPH_FILE, HEAD_FILE = "model.onnx", "head.onnx"
"""The graph from tokens to embeddings; and, for a chunk mean, from the mean over chunks to the embedding."""

_PASS = (2048, 64)  # tokens of a pass, and how many of them may be padding
_WHOLE = 1 << 40  # a chunk length that no document reaches


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
        what = f"it has no {EXPORT_FILE}" if folder.is_dir() else "there is no such folder"
        raise ModelError(
            f"{name!r} is not an exported model: {what}. Make one with: simlte export MODEL --output {name}-onnx"
        )
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
        settings: The contents of ``export.json``: ``graphs``, files; ``dimension`` of a vector; ``max_length``, tokens
            that are read of a text, or null; ``prompts`` and ``default_prompt_name``, as in sentence-transformers;
            ``length_multiple``, of which the length of a batch must be a multiple; ``pad_id``;
            ``split_special_tokens``, whether words of special tokens are read as text; ``chunks``: ``length``,
            ``overlap`` and ``equal_weights`` of a chunk mean, else null.
        tokenizer: A tokenizer of the library ``tokenizers``.
    """

    def __init__(self, folder: Path) -> None:
        require("onnxruntime", "onnx", "exported models")
        try:
            self.settings: dict[str, Any] = read_json(folder / EXPORT_FILE)
            self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._graph, self._head = (
                open_session(folder / file) if file in self.settings["graphs"] else None
                for file in (GRAPH_FILE, HEAD_FILE)
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
            raise ConfigurationError(
                f"prompt_name={name!r}: use one of {sorted(prompts)}.{did_you_mean(name, prompts)}"
            )
        return prompts.get(name or self.settings["default_prompt_name"] or "", "")

    def _embed(self, tokens: list[np.ndarray], of_prompt: int, shown: bool) -> np.ndarray:
        lengths, ids = torch.tensor([len(each) for each in tokens]), np.concatenate(tokens)
        starts = lengths.cumsum(0) - lengths
        chunks = self.settings["chunks"] or {"length": _WHOLE, "overlap": 0, "equal_weights": False}
        prefix = max(1, of_prompt)
        plan = plan_chunks(
            starts, lengths, chunks["length"], chunks["overlap"], prefix, chunks["equal_weights"], *_PASS
        )
        sizes = sum(len(batch.document) for batch in plan)
        parts = []
        with progress_bar("Encoding", sizes, unit="part", shown=shown) as bar:
            for batch in plan:
                parts.append(self._run(self._graph, self._features(batch, ids, of_prompt)))
                bar.update(len(parts[-1]))
        found = np.concatenate(parts)
        weights = torch.cat([batch.weight for batch in plan]).numpy()
        vectors = np.zeros((len(tokens), found.shape[1]), dtype=np.float32)
        np.add.at(vectors, torch.cat([batch.document for batch in plan]).numpy(), found * weights[:, None])
        if self._head is None:
            return vectors
        finished = np.zeros((len(tokens), self.settings["dimension"]), dtype=np.float32)
        for batch in plan_chunks(starts, lengths, _WHOLE, 0, prefix, False, *_PASS):
            documents = batch.document.numpy()
            features = {**self._features(batch, ids, of_prompt), "embedding": vectors[documents]}
            finished[documents] = self._run(self._head, features)
        return finished

    def _features(self, batch: ChunkBatch, ids: np.ndarray, of_prompt: int) -> dict[str, np.ndarray]:
        """Return the inputs of a graph, padded on the right to a length that it takes."""
        inside = batch.inside.numpy()
        more = -inside.shape[1] % self.settings["length_multiple"]
        mask = np.pad(inside, ((0, 0), (0, more))).astype(np.int64)
        read = np.where(inside, ids[batch.source.numpy()], self.settings["pad_id"])
        return {
            "input_ids": np.pad(read, ((0, 0), (0, more)), constant_values=self.settings["pad_id"]),
            "attention_mask": mask,
            "content_mask": mask * (np.arange(mask.shape[1]) >= of_prompt),
        }

    def _run(self, session: Any, features: dict[str, np.ndarray]) -> np.ndarray:
        wanted = {each.name: features[each.name] for each in session.get_inputs()}
        vectors: np.ndarray = session.run(None, wanted)[0]
        return vectors
