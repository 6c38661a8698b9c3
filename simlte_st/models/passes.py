"""How texts go through a model that encodes them: tokenized once, and in passes of texts of like lengths.

sentence-transformers sorts texts by characters and pads each ``batch_size`` of them to the longest. Here several such
batches are tokenized together, sorted by tokens, and cut into passes with next to no padding. What a pass holds is
bound in tokens: a CPU is fastest while what it works on stays in its caches. Matrix products are those of the faster
library.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.checks import check_count
from simlte_st.chunk_mean.chunks import split_by_length
from simlte_st.compat import encodes_here, mini_batch_ranges, slice_rows, taken_tokens, tokens_read
from simlte_st.data.sentences import TOKENIZED_CHARACTERS
from simlte_st.models.matrix_products import fast_products
from simlte_st.models.truncation import Truncation, prompt_as_read, text_lengths

BATCHES = 4
"""How many times ``batch_size`` texts are tokenized together, to find those of like lengths among them."""

CPU_PASS = (2048, 64)
"""Tokens that go through a model at once on a CPU, and how many of them may be padding."""

GPU_PADDING = 8
"""On a GPU one token of so many may be padding: it starts slowly, and a few padded passes are faster than many."""


_TOKENIZING = threading.RLock()
"""Held while texts are tokenized or counted: the second sets a tokenizer's truncation and padding to what the first
does not want, and threads that encode by one model, as in a server, share its tokenizer."""


class TextReader:
    """A model as it reads the texts of one call of ``encode``: it counts their tokens, and makes the passes.

    Attributes:
        model: The same modules; its ``encode`` reads as described, if called with ``batch_size``.
        batch_size: Texts to tokenize at once.
        truncation: How much of the texts so far was read; None before the first.
    """

    def __init__(self, model: SentenceTransformer, batch_size: int, texts: Sequence[Any], embeds: bool = True) -> None:
        check_count("batch_size", batch_size)
        self.model = copy.copy(model)
        vars(self.model).update(vars(model))  # a copy leaves out what torch.compile made
        self.batch_size, self._rows = batch_size, batch_size
        self._lengths: dict[str, int] = {}
        self.truncation: Truncation | None = None
        self._model = model
        self.model.preprocess = self._preprocess  # type: ignore[method-assign]
        if embeds and encodes_here(model) and all(isinstance(text, str) for text in texts):
            self.batch_size *= _batches(texts, batch_size)
            self.model.forward = self._forward  # type: ignore[method-assign,assignment]

    def lengths_of(self, texts: Sequence[str], prompt: str) -> list[int]:
        """Return the tokens of texts that were encoded behind a prompt, special tokens and prompt not counted."""
        if all(text in self._lengths for text in texts):
            return [self._lengths[text] for text in texts]
        with _TOKENIZING:
            return text_lengths(self._model, texts, prompt)

    def _preprocess(self, inputs: Any, prompt: str | None = None, **options: Any) -> dict[str, Any]:
        """Tokenize as the model does, and count."""
        with _TOKENIZING:
            features: dict[str, Any] = self._model.preprocess(inputs, prompt=prompt, **options)
            self._count(inputs, prompt or "", features)
        return dict(features)  # without the tokenizer's own account of each token, which is large

    def _count(self, inputs: Any, prompt: str, features: dict[str, Any]) -> None:
        read = _lengths(features)
        if read is None or len(read) != len(inputs) or self._model.transformers_model is None:
            return  # no texts, or words: the tokenizers of models of word vectors count nothing
        if self.truncation is None:
            self.truncation = Truncation.of(self._model, prompt=prompt)
            self._special = taken_tokens(self._model, "")
            self._taken = taken_tokens(self._model, prompt_as_read(self._model, prompt))
        lengths = tokens_read(features, self._special)
        if lengths is not None:
            lengths = [length + self._special - self._taken for length in lengths]
        else:
            lengths = [length - self._taken for length in read]
            # Only a text that fills the model can have been cut: the others are not tokenized again.
            limit = self.truncation.max_seq_length or sum(read) + 1
            full = [row for row, length in enumerate(read) if length >= limit and isinstance(inputs[row], str)]
            again = text_lengths(self._model, [inputs[row] for row in full], prompt)
            for row, length in zip(full, again, strict=True):
                lengths[row] = length
        self.truncation.add(lengths)
        self._lengths.update((text, length) for text, length in zip(inputs, lengths, strict=True) if type(text) is str)

    def _forward(self, features: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Compute the embeddings of a batch in passes."""
        mask = features.get("attention_mask")
        if isinstance(mask, Tensor) and mask.dim() == 2:
            width = torch.arange(1, mask.shape[1] + 1, device=mask.device)
            # Padding on the left counts: positions stay what they are. A text may have no token at all.
            sizes = ((mask > 0) * width).amax(1).clamp(min=1).cpu()
            slots, padding = pass_bounds(mask.device.type, self._rows, int(sizes.max()))
            order = sizes.argsort(descending=True, stable=True)
            pieces = split_by_length(order, sizes[order].tolist(), slots, padding)
            passes = [_take(features, piece.to(mask.device), int(sizes[piece[0]])) for piece in pieces]
            back = order.argsort()
        else:  # flattened, without padding
            ranges = mini_batch_ranges(features, self._rows, None)
            passes, back = [slice_rows(features, *bounds) for bounds in ranges], torch.arange(ranges[-1][1])
        with fast_products(self._model.device):
            found = torch.cat([self._model.forward(each, **options)["sentence_embedding"] for each in passes])
        return {**features, "sentence_embedding": found[back.to(found.device)]}


def pass_bounds(device: str, batch_size: int, longest: int) -> tuple[int, int]:
    """Bound a pass: never more than a stock batch of the longest texts."""
    slots = batch_size * longest
    return (min(slots, CPU_PASS[0]), CPU_PASS[1]) if device == "cpu" else (slots, slots // GPU_PADDING)


def is_read(model: SentenceTransformer) -> bool:
    """Return whether a model is that of a reader."""
    return "preprocess" in vars(model)


def _batches(texts: Sequence[str], batch_size: int) -> int:
    """Choose how many batches to tokenize at once: fewer of long texts, since a tokenizer takes much memory."""
    longest = sum(sorted(map(len, texts), reverse=True)[:batch_size])
    return min(BATCHES, max(1, TOKENIZED_CHARACTERS // max(1, longest)))


def _take(features: dict[str, Any], rows: Tensor, width: int) -> dict[str, Any]:
    """Take rows of a padded batch and their first columns."""
    shape = features["attention_mask"].shape
    taken = dict(features)
    for name, value in features.items():
        if isinstance(value, Tensor) and value.shape[:1] == shape[:1]:
            taken[name] = value[rows, :width] if value.shape[:2] == shape else value[rows]
    return taken


def _lengths(features: dict[str, Any]) -> list[int] | None:
    """Count the tokens of each text, of a padded or a flattened batch; None for what is not text."""
    bounds, mask = features.get("cu_seq_lens_q"), features.get("attention_mask")
    if isinstance(bounds, Tensor):
        return [int(length) for length in bounds.diff().tolist()]
    if isinstance(mask, Tensor) and mask.dim() == 2:
        return [int(length) for length in mask.sum(1).tolist()]
    return None
