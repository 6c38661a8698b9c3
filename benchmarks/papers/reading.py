"""A text as a model's ``encode`` reads it: its tokens, and the encoder's output for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.compat import eager_attention, get_encoder, readable_length
from simlte_st.errors import ModelError
from simlte_st.models.limits import prompt_as_read, texts_as_read


@dataclass(frozen=True)
class ReadText:
    """A text as a model reads it, after the default prompt.

    Attributes:
        text: The text as the tokenizer sees it, with contractions expanded if the model does so.
        spans: Start and stop offsets of each token in the text.
        positions: Positions of these tokens among all, which include special tokens and the prompt's.
        features: The encoder's input, as a batch of one.
    """

    text: str
    spans: list[tuple[int, int]]
    positions: list[int]
    features: dict[str, Tensor]

    @property
    def tokens(self) -> list[str]:
        """The characters of each token."""
        return [self.text[start:stop] for start, stop in self.spans]


def read_text(model: SentenceTransformer, text: str, max_seq_length: int | None = None) -> ReadText:
    """Tokenize a text as ``encode`` does, and find the text's own tokens."""
    [expanded] = texts_as_read(model, [text])
    prompt, length = prompt_as_read(model), readable_length(model, max_seq_length)
    encoded = model.tokenizer(
        prompt + expanded,
        truncation=length is not None,
        max_length=length,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_tensors="pt",
        verbose=False,
    )
    offsets, special = encoded.pop("offset_mapping")[0].tolist(), encoded.pop("special_tokens_mask")[0].tolist()
    # A token that spans prompt and text belongs to the text and starts at 0.
    spans = {
        position: (max(0, start - len(prompt)), stop - len(prompt))
        for position, (start, stop) in enumerate(offsets)
        if not special[position] and stop > len(prompt)
    }
    features = {name: tensor.to(model.device) for name, tensor in encoded.items()}
    return ReadText(expanded, list(spans.values()), list(spans), features)


@torch.inference_mode()
def hidden_states(model: SentenceTransformer, text: ReadText) -> list[Tensor]:
    """Return the encoder's hidden states, ``[tokens, dim]`` each: the embeddings, then every layer."""
    states = get_encoder(model)(**text.features, output_hidden_states=True).hidden_states
    return [layer[0].double() for layer in states]


@torch.inference_mode()
def cls_attention(model: SentenceTransformer, text: ReadText, layer: int = -1) -> list[float]:
    """Return the attention of ``[CLS]`` to each token in a layer, averaged over heads; it sums to 1."""
    encoder: Any = get_encoder(model)
    if text.features["input_ids"][0, 0] != model.tokenizer.cls_token_id:
        raise ModelError(f"{type(encoder).__name__} does not start with a [CLS] token.")
    with eager_attention(encoder):
        attentions = getattr(encoder(**text.features, output_attentions=True), "attentions", None)
    if not attentions or attentions[layer].shape[-1] != len(text.features["input_ids"][0]):
        raise ModelError(f"{type(encoder).__name__} returns no attention weights between its tokens.")
    return list(attentions[layer][0, :, 0].float().mean(0).tolist())
