"""How a model reads texts: the tokens it sees, and how much its ``[CLS]`` attends to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from transformers import PreTrainedModel

from simlte_st.analysis.attention_rows import cls_attention
from simlte_st.compat import readable_length
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.errors import ConfigurationError, ModelError


@dataclass(frozen=True, slots=True)
class Reading:
    """One text as a model read it.

    Attributes:
        spans: Character offsets of each token in the text, start and stop, ``(tokens, 2)``, int64; meaningless for
            special tokens.
        special: Which tokens are no part of the text: ``[CLS]``, ``[SEP]``, a prompt's, ``(tokens,)``, bool.
        weights: Attention from ``[CLS]`` to each token, mean over the heads, ``(tokens,)``, float64; the sum is 1.
        length: Tokens of the whole text, special tokens not counted, whether or not the model read them.
    """

    spans: NDArray[np.int64]
    special: NDArray[np.bool_]
    weights: NDArray[np.float64]
    length: int

    @property
    def cut(self) -> int:
        """Tokens of the text that the model did not read."""
        return max(0, self.length - int((~self.special).sum()))

    @property
    def extent(self) -> tuple[int, int]:
        """Index of the first character of the text that the model read, and the index after the last."""
        own = self.spans[~self.special]
        return (int(own[:, 0].min()), int(own[:, 1].max())) if len(own) else (0, 0)


def read_texts(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    layer: int = -1,
    max_seq_length: int | None = None,
    batch_size: int = 8,
) -> list[Reading]:
    """Let a model read texts as its ``encode`` does, and keep what ``[CLS]`` attends to.

    Args:
        model: A model that begins with a BERT-like Transformer.
        texts: The texts. The model's default prompt, if it has one, stands before each.
        layer: Index of the layer; -1 is the last.
        max_seq_length: Tokens to read, special tokens included; None: as many as the model is set to.
        batch_size: Texts read at once; those of similar length together.

    Returns:
        A reading for each text.

    Raises:
        ModelError: No BERT-like Transformer, a tokenizer that does not tell offsets, or one that puts no ``[CLS]``
            first.
        ConfigurationError: No such layer, or ``max_seq_length`` leaves no room for a token of the text.
    """
    encoder, tokenizer = _parts(model)
    length = readable_length(model, max_seq_length)
    prompt = model.prompts.get(model.default_prompt_name or "") or ""
    taken = int(tokenizer.num_special_tokens_to_add(pair=False))
    if length is not None and length <= taken:
        raise ConfigurationError(f"max_seq_length={length} leaves no room beside {taken} special tokens.")
    lengths = tokenizer_counter(tokenizer)(texts)
    order = sorted(range(len(texts)), key=lambda number: lengths[number])
    readings: dict[int, Reading] = {}
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        encoded = tokenizer(
            [prompt + texts[number] for number in numbers],
            padding=True,
            truncation=length is not None,
            max_length=length,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_tensors="pt",
            verbose=False,
        )
        spans = encoded.pop("offset_mapping").numpy()
        special = encoded.pop("special_tokens_mask").numpy() > 0
        real = encoded["attention_mask"].numpy() > 0
        _check_cls(encoded["input_ids"].numpy(), real, tokenizer)
        features = {name: tensor.to(model.device) for name, tensor in encoded.items()}
        weights = cls_attention(encoder, features, layer).mean(1).double().cpu().numpy()
        for row, number in enumerate(numbers):
            own = spans[row][real[row]].astype(np.int64) - len(prompt)
            # A token that reaches from the prompt into the text is the text's, from where that begins.
            outside = special[row][real[row]] | (own[:, 1] <= 0)
            readings[number] = Reading(np.maximum(own, 0), outside, weights[row][real[row]], lengths[number])
    return [readings[number] for number in range(len(texts))]


def _parts(model: SentenceTransformer) -> tuple[PreTrainedModel, Any]:
    encoder = getattr(model[0], "auto_model", None)
    if not isinstance(encoder, PreTrainedModel):
        raise ModelError(
            f"Attention is analysed in models that begin with a Transformer; this one begins with "
            f"{type(model[0]).__name__}."
        )
    tokenizer = model.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"{type(tokenizer).__name__} does not tell where its tokens stand in the text.")
    if tokenizer.cls_token_id is None:
        raise ModelError(f"{type(tokenizer).__name__} has no [CLS] token: there is no attention from it.")
    return encoder, tokenizer


def _check_cls(ids: NDArray[np.int64], real: NDArray[np.bool_], tokenizer: Any) -> None:
    first = ids[np.arange(len(ids)), real.argmax(1)]
    if (first != tokenizer.cls_token_id).any():
        raise ModelError(
            f"{type(tokenizer).__name__} puts {tokenizer.convert_ids_to_tokens(int(first[0]))!r} first, not "
            f"{tokenizer.cls_token!r}."
        )
