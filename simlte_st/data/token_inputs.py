"""Token ids to model inputs: what a model's ``preprocess`` does with texts, for views that are token ids already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.data.tokenized_document import TokenView, tokenize_document
from simlte_st.data.tokens import Ints, SentenceTokenizer
from simlte_st.data.views import whole
from simlte_st.errors import ConfigurationError, ModelError

_UNBOUNDED = 10**6  # tokenizers write numbers like 10^30 for "no limit"


class TokenPreprocessor:
    """Makes model inputs of token ids.

    Special tokens, truncation, padding and prompts are those of ``model.preprocess``: the constructor compares the two.
    The model's ``max_seq_length`` is looked up at each call.

    Args:
        model: The model to train.
        pad_to_multiple_of: Pad batches to a multiple of so many tokens; None pads to the longest view.

    Raises:
        ModelError: The tokenizer is not a fast one, or the model makes its inputs in another way (with a chat
            template, say).
    """

    def __init__(self, model: SentenceTransformer, pad_to_multiple_of: int | None = None) -> None:
        self.pad_to_multiple_of = pad_to_multiple_of
        self._tokenizer = model.tokenizer
        self._encode = SentenceTokenizer(self._tokenizer)
        self._prompts: dict[str, tuple[Ints, int]] = {}
        probe = self._tokenizer("a", return_special_tokens_mask=True)
        inner = [place for place, special in enumerate(probe["special_tokens_mask"]) if not special]
        ids = np.asarray(probe["input_ids"], dtype=np.int32)
        self._prefix, self._suffix = (ids[: inner[0]], ids[inner[-1] + 1 :]) if inner else (ids, ids[:0])
        sample = model.preprocess(["a", "a a"])
        self._keys = list(sample)
        # Flash attention takes all views as one row, which the model's own collator lays out.
        self._flatten: Any = model[0].data_collator if "cu_seq_lens_q" in sample else None
        self._first_position = int(sample["position_ids"].min()) if self._flatten else 0
        self._verify(model)

    def __call__(
        self,
        inputs: Sequence[TokenView],
        prompt: str | None = None,
        task: str | None = None,
        max_length: int | None = None,
    ) -> dict[str, Any]:
        """Make the inputs of one column of a batch.

        Args:
            inputs: The views.
            prompt: Stands before each view. Must end in one space, so that its tokens do not grow into the view's.
            task: Not supported; None.
            max_length: Tokens of an input, special tokens included; None for the model's ``max_seq_length``.

        Returns:
            What ``model.preprocess`` gives for the texts: int64 tensors of shape ``(views, longest)``, and so on.

        Raises:
            ConfigurationError: The prompt does not end in one space, or there is a task.
        """
        if task is not None:
            raise ConfigurationError(f"task={task!r}: token-level views know no tasks; use views of text.")
        before, prompt_length = self._prompt(prompt) if prompt else (self._prefix[:0], None)
        rows = [self._row(view.ids(opening=not prompt), before, max_length) for view in inputs]
        features = self._pad(rows) if self._flatten is None else self._lay_out(rows)
        features["modality"] = "text"
        made = {name: features[name] for name in self._keys if name in features}
        if prompt_length is not None:
            made["prompt_length"] = prompt_length
        return made

    def _row(self, ids: Ints, before: Ints, max_length: int | None) -> Ints:
        limit = self._tokenizer.model_max_length if max_length is None else max_length
        content = np.concatenate([before, ids]) if len(before) else ids
        if limit is not None and limit < _UNBOUNDED:
            room = max(0, limit - len(self._prefix) - len(self._suffix))
            left = self._tokenizer.truncation_side == "left"
            content = content[max(0, len(content) - room) :] if left else content[:room]
        return np.concatenate([self._prefix, content, self._suffix])

    def _pad(self, rows: Sequence[Ints]) -> dict[str, Any]:
        lengths = np.array([len(row) for row in rows])
        width = int(lengths.max())
        if self.pad_to_multiple_of:
            width = -(-width // self.pad_to_multiple_of) * self.pad_to_multiple_of
        place = np.arange(width)
        right = self._tokenizer.padding_side == "right"
        mask = place < lengths[:, None] if right else place >= width - lengths[:, None]
        ids: NDArray[np.int64] = np.full(mask.shape, self._tokenizer.pad_token_id, dtype=np.int64)
        ids[mask] = np.concatenate(rows)
        types = np.where(mask, 0, self._tokenizer.pad_token_type_id)
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)),
            "token_type_ids": torch.from_numpy(types),
        }

    def _lay_out(self, rows: Sequence[Ints]) -> dict[str, Any]:
        features = dict(self._flatten([{"input_ids": row.tolist()} for row in rows]))
        features["position_ids"] = features["position_ids"] + self._first_position
        return features

    def _prompt(self, prompt: str) -> tuple[Ints, int]:
        """Tokenize a prompt: its ids, and the number of tokens that pooling leaves out, as the model counts them."""
        if prompt not in self._prompts:
            text = prompt.rstrip()
            if not text or prompt != f"{text} ":
                raise ConfigurationError(
                    f"The prompt {prompt!r} must end in one space: otherwise its tokens and those of the text behind "
                    "it may grow together, which token-level views cannot know. Use such a prompt with views of text."
                )
            content = self._encode.encode(prompt)
            ids = [*self._prefix.tolist(), *content, *self._suffix.tolist()]
            length = len(ids) - (ids[-1] in self._tokenizer.all_special_ids)
            self._prompts[prompt] = np.asarray(self._encode.encode(text), dtype=np.int32), length
        return self._prompts[prompt]

    def _verify(self, model: SentenceTransformer) -> None:
        limit = model.max_seq_length
        long = 2 * limit if limit is not None and limit < _UNBOUNDED else 16
        texts = ["a b", "b " * long + "a", "a"]
        views = [TokenView(tokenize_document("", [text], [0], self._encode), whole([0])) for text in texts]
        multiple, self.pad_to_multiple_of = self.pad_to_multiple_of, None
        for prompt in (None, "a: "):
            made, wanted = self(views, prompt=prompt), model.preprocess(texts, prompt=prompt)
            different = [
                name for name in {**wanted, **made} if name not in wanted or not _same(made.get(name), wanted[name])
            ]
            if different:
                raise ModelError(
                    f"This model makes {different} in a way that token-level views do not reproduce: use views of text "
                    "(DocSplitCollator)."
                )
        self.pad_to_multiple_of = multiple
        self._prompts.clear()


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and bool(one == other)
