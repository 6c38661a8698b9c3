"""Encode texts in passes of similar length.

sentence-transformers sorts texts by characters and pads each batch to its longest text. Here, several batches are
tokenized together, sorted by tokens, and divided into passes with almost no padding. A pass has a limited number of
tokens, because a CPU is fastest while its data stay in the caches.

On AMD processors with AVX-512, oneDNN computes float32 matrix products 2.2 times as fast (see
``benchmarks/results/speed.md``): PyTorch's MKL uses AVX-512 on Intel processors only.

Static embeddings need no padding; :mod:`simlte_st.models.static` has their passes.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from simlte_st.arguments import Count, check_value
from simlte_st.compat import encodes_here, mini_batch_ranges, onednn_linear, slice_rows, taken_tokens, tokens_read
from simlte_st.models.device import cpu_capabilities
from simlte_st.models.static import TEXTS, is_static, static_passes
from simlte_st.models.truncation import Truncation, prompt_as_read, text_lengths
from simlte_st.words.tokens import CPU_PASS, TOKENIZED_CHARACTERS, count_tokens, split_by_length

BATCHES = 4
"""Number of batches to tokenize together, to find texts of similar length."""

GPU_PADDING = 8
"""On a GPU, one token in this number may be padding: fewer passes are faster there."""

FEWEST_PRODUCTS, FEWEST_ROWS = 2**21, 16
"""Minimum multiplications and tokens for oneDNN; for fewer tokens, preparing the matrix takes most of the time."""

_TOKENIZING = threading.RLock()
"""Tokenizing and counting set the truncation and padding of the shared tokenizer differently."""


class TextReader:
    """A model for one call of ``encode``, which divides texts into passes and counts their tokens.

    Attributes:
        model: A copy with the same modules; call its ``encode`` with ``batch_size``.
        batch_size: Number of texts to tokenize at once.
        truncation: Counts of truncated texts so far; None before the first text.
    """

    def __init__(self, model: SentenceTransformer, batch_size: int, texts: Sequence[Any], embeds: bool = True) -> None:
        check_value("batch_size", batch_size, Count)
        self.model = copy.copy(model)
        vars(self.model).update(vars(model))  # copy leaves out the result of torch.compile
        self.batch_size, self._rows = batch_size, batch_size
        self._counts: dict[str, int] = {}
        self.truncation: Truncation | None = None
        self._model = model
        self.model.preprocess = self._preprocess  # type: ignore[method-assign]
        embeds = embeds and encodes_here(model) and all(isinstance(text, str) for text in texts)
        if is_static(model):
            self.batch_size = TEXTS
            if embeds:
                self.model.preprocess = self._hand_over  # type: ignore[method-assign]
                self.model.forward = self._forward_static  # type: ignore[method-assign,assignment]
        elif embeds and model.transformers_model is not None:
            longest = sum(sorted(map(len, texts), reverse=True)[:batch_size])
            # Fewer batches of long texts, because tokenizing takes much memory.
            self.batch_size *= min(BATCHES, max(1, TOKENIZED_CHARACTERS // max(1, longest)))
            self.model.forward = self._forward  # type: ignore[method-assign,assignment]

    def token_counts(self, texts: Sequence[str], prompt: str) -> list[int]:
        """Return the numbers of tokens of encoded texts, without special tokens and prompt."""
        if any(text not in self._counts for text in texts):
            with _TOKENIZING:
                return text_lengths(self._model, texts, prompt)
        return [self._counts[text] for text in texts]

    def _hand_over(self, inputs: Any, prompt: str | None = None, **options: Any) -> dict[str, Any]:
        """Leave tokenizing to the passes."""
        return {"texts": inputs, "prompt": prompt or ""}

    def _forward_static(self, features: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Compute the embeddings of a batch in passes of a bounded number of tokens."""
        found = []
        for batch, own, lengths in static_passes(self._model, features["texts"], features["prompt"], **options):
            self._count(batch, features["prompt"], lengths)
            found.append(own)
        return {"sentence_embedding": torch.cat(found)}

    def _preprocess(self, inputs: Any, prompt: str | None = None, **options: Any) -> dict[str, Any]:
        """Tokenize as the model does, and count."""
        with _TOKENIZING:
            features: dict[str, Any] = self._model.preprocess(inputs, prompt=prompt, **options)
            if self._model.transformers_model is not None and "input_ids" in features:
                lengths = tokens_read(features, taken_tokens(self._model, ""))
                if lengths is not None and len(lengths) == len(inputs):  # Python tokenizers keep no record
                    self._count(inputs, prompt or "", lengths)
        return dict(features)  # without the tokenizer's record of each token, which is large

    def _count(self, texts: Sequence[Any], prompt: str, lengths: Any) -> None:
        """Count texts; ``lengths`` include the prompt but not special tokens."""
        if self.truncation is None:
            self.truncation = Truncation.of(self._model, prompt=prompt)
            before = prompt_as_read(self._model, prompt)
            self._of_prompt = count_tokens(self._model.tokenizer, [before])[0] if before else 0
        own = np.asarray(lengths, dtype=np.int64) - self._of_prompt
        self.truncation.add(own)
        self._counts.update((text, each) for text, each in zip(texts, own.tolist(), strict=True) if type(text) is str)

    def _forward(self, features: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Compute the embeddings of a batch in passes."""
        features = right_padded(features)
        mask = features.get("attention_mask")
        if isinstance(mask, Tensor) and mask.dim() == 2:
            width = torch.arange(1, mask.shape[1] + 1, device=mask.device)
            # A text may have no tokens.
            sizes = ((mask > 0) * width).amax(1).clamp(min=1).cpu()
            slots, padding = pass_bounds(mask.device.type, self._rows, int(sizes.max()))
            order = sizes.argsort(descending=True, stable=True)
            pieces = split_by_length(order, sizes[order].tolist(), slots, padding)
            passes = [take(features, piece.to(mask.device), int(sizes[piece[0]])) for piece in pieces]
            back = order.argsort()
        else:  # flattened, without padding
            ranges = mini_batch_ranges(features, self._rows, None)
            passes, back = [slice_rows(features, *bounds) for bounds in ranges], torch.arange(ranges[-1][1])
        with fast_products(self._model.device):
            found = torch.cat([self._model.forward(each, **options)["sentence_embedding"] for each in passes])
        return {**features, "sentence_embedding": found[back.to(found.device)]}


def pass_bounds(device: str, batch_size: int, longest: int) -> tuple[int, int]:
    """Return the maximum tokens and padding of a pass: at most those of a stock batch of the longest texts."""
    slots = batch_size * longest
    return (min(slots, CPU_PASS[0]), CPU_PASS[1]) if device == "cpu" else (slots, slots // GPU_PADDING)


def is_read(model: SentenceTransformer) -> bool:
    """Return whether a model belongs to a TextReader."""
    return "preprocess" in vars(model)


def fast_products(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context manager that computes large float32 linear layers with oneDNN, if that is faster."""
    found = cpu_capabilities() if device.type == "cpu" else {}
    amd = str(found.get("cpu_name", "")).startswith("AMD") and bool(found.get("avx512_f"))
    return _OneDnnProducts() if amd and torch.backends.mkldnn.is_available() else nullcontext()


class _OneDnnProducts(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear and not kwargs and not torch.is_grad_enabled() and _is_faster(*args[:2]):
            return onednn_linear(*args)
        return func(*args, **(kwargs or {}))


def _is_faster(inputs: Tensor, weight: Tensor) -> bool:
    """Return whether oneDNN is faster: for large products of plain float32 tensors."""
    if type(inputs) is not Tensor or type(weight) not in (Tensor, nn.Parameter) or inputs.device.type != "cpu":
        return False
    if inputs.dtype is not torch.float32 or weight.dtype is not torch.float32 or torch.is_autocast_enabled("cpu"):
        return False
    rows, strided = inputs.shape[:-1].numel(), inputs.layout == weight.layout == torch.strided
    return strided and rows >= FEWEST_ROWS and rows * weight.numel() >= FEWEST_PRODUCTS


def right_padded(features: dict[str, Any]) -> dict[str, Any]:
    """Move left padding, which most decoders' tokenizers use, to the right.

    Only right padding can be left out. Results do not change: rotary positions are relative, and others count from the
    first column.
    """
    mask = features.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.dim() != 2 or not (first := (mask > 0).int().argmax(1)).any():
        return features
    rows, width = torch.arange(len(mask), device=mask.device)[:, None], mask.shape[1]
    columns = (torch.arange(width, device=mask.device) + first[:, None]) % width
    return {
        name: value[rows, columns] if isinstance(value, Tensor) and value.shape[:2] == mask.shape else value
        for name, value in features.items()
    }


def take(features: dict[str, Any], rows: Tensor, width: int) -> dict[str, Any]:
    """Return rows of a padded batch, cut to ``width`` columns."""
    shape = features["attention_mask"].shape
    taken = dict(features)
    for name, value in features.items():
        if isinstance(value, Tensor) and value.shape[:1] == shape[:1]:
            taken[name] = value[rows, :width] if value.shape[:2] == shape else value[rows]
    return taken
