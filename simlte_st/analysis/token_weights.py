"""Which tokens of a text make up its embedding, in a model with token attention (TA-SBERT, tables 1 and 2)."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device

from simlte_st.analysis.figures import Span
from simlte_st.analysis.reading import TokenizedText, read_text
from simlte_st.errors import ModelError
from simlte_st.modules import TokenAttention


def token_weights(model: SentenceTransformer, text: str) -> tuple[TokenizedText, list[Span]]:
    """Return the weight of each token of a text, in percent of the whole embedding.

    Args:
        model: A model whose pooling is :class:`~simlte_st.modules.TokenAttention`. It reads the text as its ``encode``
            does, behind its default prompt.
        text: The text.

    Returns:
        The text as the model reads it; and its tokens, those that are read, with their weights: the spans are those of
        the first's ``text``. What is missing to 100 is special tokens' and a prompt's.

    Raises:
        ModelError: The model pools otherwise, or its tokenizer does not tell where its tokens stand in the text.
        DataError: The model reads none of the text.
    """
    if not any(isinstance(module, TokenAttention) for module in model):
        kinds = ", ".join(type(module).__name__ for module in model)
        raise ModelError(f"The model does not weigh tokens: it has no TokenAttention, but {kinds}.")
    read = read_text(model, text)
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            features = batch_to_device(model.preprocess([text], prompt=read.prompt), model.device)
            weights = model(features)["token_attention"][0].float().cpu().tolist()
    finally:
        model.train(training)
    return read, [
        Span(start, stop, 100 * weights[place]) for (start, stop), place in zip(read.spans, read.places, strict=True)
    ]
