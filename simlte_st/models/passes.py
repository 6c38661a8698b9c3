"""Encode texts in passes of similar length.

sentence-transformers sorts texts by characters and pads each batch to its longest text. Here, several batches are
tokenized together, sorted by tokens, and divided into passes with almost no padding. The number of tokens in a pass is
limited, because a CPU is fastest while the data fit in its caches.

On AMD processors with AVX-512, oneDNN computes float32 matrix products 2.2 times as fast (see
``benchmarks/results/speed.md``), because PyTorch's MKL uses AVX-512 only on Intel processors.

Static models need no padding; their passes are in :mod:`simlte_st.models.static`.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from simlte_st.arguments import Count, check_value
from simlte_st.compat import Features, calls_forward, mini_batch_ranges, onednn_linear, slice_rows, untruncated_lengths
from simlte_st.models.device import cpu_capabilities
from simlte_st.models.limits import Truncation, prompt_as_read, text_lengths
from simlte_st.models.static import TEXTS, is_static, static_passes
from simlte_st.words.tokens import CPU_PASS, TOKENIZED_CHARACTERS, count_tokens, split_by_length

BATCHES = 4
"""Number of batches to tokenize together, to find texts of similar length."""

GPU_PADDING = 8
"""On a GPU, up to one token in this many may be padding, because fewer passes are faster there."""

FEWEST_PRODUCTS, FEWEST_ROWS = 2**21, 16
"""Minimum numbers of multiplications and tokens for oneDNN; with fewer tokens, preparing the matrix takes most of the
time."""

_TOKENIZING = threading.RLock()
"""Lock for the shared tokenizer, whose truncation and padding differ between tokenizing and counting."""


class TextReader:
    """Wraps a model for a single ``encode`` call, to divide texts into passes and count their tokens.

    Attributes:
        model: A copy of the model with the same modules; pass ``batch_size`` to its ``encode``.
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
        self._original = model
        self.model.preprocess = self._preprocess  # type: ignore[method-assign]
        embeds = embeds and calls_forward(model) and all(isinstance(text, str) for text in texts)
        if is_static(model):
            self.batch_size = TEXTS
            if embeds:
                self.model.preprocess = self._hand_over  # type: ignore[method-assign]
                self.model.forward = self._forward_static  # type: ignore[method-assign,assignment]
        elif embeds and model.transformers_model is not None:
            characters = sum(sorted(map(len, texts), reverse=True)[:batch_size])
            # Tokenize fewer batches together if texts are long, because tokenizing needs much memory.
            self.batch_size *= min(BATCHES, max(1, TOKENIZED_CHARACTERS // max(1, characters)))
            self.model.forward = self._forward  # type: ignore[method-assign,assignment]

    def token_counts(self, texts: Sequence[str], prompt: str) -> list[int]:
        """Return the token counts of encoded texts, without special tokens and prompt."""
        if any(text not in self._counts for text in texts):
            with _TOKENIZING:
                return text_lengths(self._original, texts, prompt)
        return [self._counts[text] for text in texts]

    def _hand_over(self, inputs: Sequence[object], prompt: str | None = None, **_: object) -> Features:
        """Return the texts as they are: each pass tokenizes its own."""
        return {"texts": inputs, "prompt": prompt or ""}

    def _forward_static(self, features: Features, **options: object) -> Features:
        """Compute the embeddings of a batch in passes with a limited number of tokens."""
        vectors = []
        for batch, part, lengths in static_passes(self._original, features["texts"], features["prompt"], **options):
            self._count(batch, features["prompt"], lengths)
            vectors.append(part)
        return {"sentence_embedding": torch.cat(vectors)}

    def _preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **options: Any) -> Features:
        """Tokenize as the model does, and count the tokens."""
        with _TOKENIZING:
            features: Features = self._original.preprocess(inputs, prompt=prompt, **options)
            if self._original.transformers_model is not None and "input_ids" in features:
                lengths = untruncated_lengths(self._original, features)
                if lengths is not None and len(lengths) == len(inputs):  # slow tokenizers keep no record
                    self._count(inputs, prompt or "", lengths)
        return dict(features)  # without the tokenizer's record of each token, which is large

    def _count(self, texts: Sequence[object], prompt: str, lengths: ArrayLike) -> None:
        """Add texts to the counts; ``lengths`` include the prompt but not special tokens."""
        if self.truncation is None:
            self.truncation = Truncation.of(self._original, prompt=prompt)
            prefix = prompt_as_read(self._original, prompt)
            self._prompt_length = count_tokens(self._original.tokenizer, [prefix])[0] if prefix else 0
        counts = np.asarray(lengths, dtype=np.int64) - self._prompt_length
        self.truncation.add(counts)
        pairs = zip(texts, counts.tolist(), strict=True)
        self._counts.update((text, count) for text, count in pairs if type(text) is str)

    def _forward(self, features: Features, **options: object) -> Features:
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
            passes = [crop_rows(features, piece.to(mask.device), int(sizes[piece[0]])) for piece in pieces]
            places = order.argsort()
        else:  # flattened, without padding
            ranges = mini_batch_ranges(features, self._rows, None)
            passes, places = [slice_rows(features, *bounds) for bounds in ranges], torch.arange(ranges[-1][1])
        with fast_products(self._original.device):
            vectors = torch.cat([self._original.forward(part, **options)["sentence_embedding"] for part in passes])
        return {**features, "sentence_embedding": vectors[places.to(vectors.device)]}


def pass_bounds(device: str, batch_size: int, longest: int) -> tuple[int, int]:
    """Return a pass's maximum tokens and padding, at most those of a stock batch of the longest texts."""
    slots = batch_size * longest
    return (min(slots, CPU_PASS[0]), CPU_PASS[1]) if device == "cpu" else (slots, slots // GPU_PADDING)


def fast_products(device: torch.device) -> AbstractContextManager[object]:
    """Return a context manager that computes large float32 linear layers with oneDNN, if that is faster."""
    capabilities = cpu_capabilities() if device.type == "cpu" else {}
    amd = str(capabilities.get("cpu_name", "")).startswith("AMD") and bool(capabilities.get("avx512_f"))
    return _OneDnnProducts() if amd and torch.backends.mkldnn.is_available() else nullcontext()


class _OneDnnProducts(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., object], types: object, args: Any = (), kwargs: Any = None
    ) -> object:
        if func is F.linear and not kwargs and not torch.is_grad_enabled() and _is_faster(*args[:2]):
            return onednn_linear(*args)
        return func(*args, **(kwargs or {}))


def _is_faster(inputs: Tensor, weight: Tensor) -> bool:
    """Return whether oneDNN is faster, as it is for large products of plain float32 tensors."""
    if type(inputs) is not Tensor or type(weight) not in (Tensor, nn.Parameter) or inputs.device.type != "cpu":
        return False
    if inputs.dtype is not torch.float32 or weight.dtype is not torch.float32 or torch.is_autocast_enabled("cpu"):
        return False
    rows, strided = inputs.shape[:-1].numel(), inputs.layout == weight.layout == torch.strided
    return strided and rows >= FEWEST_ROWS and rows * weight.numel() >= FEWEST_PRODUCTS


def right_padded(features: Features) -> Features:
    """Move left padding, which most decoders' tokenizers use, to the right.

    Only padding on the right can be cropped. Results do not change: rotary positions are relative, and other positions
    count from the first column.
    """
    mask = features.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.dim() != 2 or not (first := (mask > 0).int().argmax(1)).any():
        return features
    rows, width = torch.arange(len(mask), device=mask.device)[:, None], mask.shape[1]
    columns = (torch.arange(width, device=mask.device) + first[:, None]) % width
    return {
        name: feature[rows, columns] if isinstance(feature, Tensor) and feature.shape[:2] == mask.shape else feature
        for name, feature in features.items()
    }


def crop_rows(features: Features, rows: Tensor, width: int) -> Features:
    """Return rows of a padded batch, cut to ``width`` columns."""
    shape, part = features["attention_mask"].shape, dict(features)
    for name, feature in features.items():
        if isinstance(feature, Tensor) and feature.shape[:1] == shape[:1]:
            part[name] = feature[rows, :width] if feature.shape[:2] == shape else feature[rows]
    return part
