"""Which tokens of a text make up its embedding, in a model with token attention (TA-SBERT, tables 1 and 2)."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device

from simlte_st.analysis.figures import Span
from simlte_st.errors import ModelError
from simlte_st.modules import BaseForm, TokenAttention, expand_contractions


def token_weights(model: SentenceTransformer, text: str) -> tuple[str, list[Span]]:
    """Give the weight of each token of a text, in percent of the whole embedding.

    Args:
        model: A model whose pooling is :class:`~simlte_st.modules.TokenAttention`.
        text: The text.

    Returns:
        The text as the tokenizer sees it, with contractions written out where the model does that; and its tokens,
        those that the model reads, with their weights. What is missing to 100 is special tokens'.

    Raises:
        ModelError: The model pools otherwise, or its tokenizer does not tell where its tokens stand in the text.
    """
    if not any(isinstance(module, TokenAttention) for module in model):
        kinds = ", ".join(type(module).__name__ for module in model)
        raise ModelError(f"The model does not weigh tokens: it has no TokenAttention, but {kinds}.")
    if not getattr(model.tokenizer, "is_fast", False):
        raise ModelError(f"{type(model.tokenizer).__name__} does not tell where its tokens stand in the text.")
    shown = next(expand_contractions([text])) if isinstance(model[0], BaseForm) else text
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            features = batch_to_device(model.preprocess([text]), model.device)
            weights = model(features)["token_attention"][0].float().cpu().tolist()
    finally:
        model.train(training)
    read = model.tokenizer(
        shown,
        truncation=True,
        max_length=model.max_seq_length,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    parts = zip(read["offset_mapping"], read["special_tokens_mask"], weights, strict=True)
    return shown, [Span(start, stop, 100 * weight) for (start, stop), special, weight in parts if not special]
