"""The masked-language-model head: the checkpoint's own where it has one, else a new one tied to the word embeddings.

sentence-transformers drops the head of a checkpoint, so it is read again here. All BERT-like heads are one computation
under several names: dense, activation, layer norm, then a product with the word embeddings plus a bias.
"""

from __future__ import annotations

import logging
from typing import Literal

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.activations import ACT2FN

from simlte_st.compat import MLM_HEADS, checkpoint_name, encoder_of, load_masked_lm
from simlte_st.errors import ModelError
from simlte_st.losses.chunked_cross_entropy import HeadPrecision, chunked_cross_entropy

logger = logging.getLogger(__name__)

HeadSource = Literal["auto", "pretrained", "fresh"]


class MLMHead(HeadPrecision, nn.Module):
    """From hidden states to logits over the vocabulary."""

    def __init__(
        self,
        dense: nn.Module,
        activation: nn.Module,
        norm: nn.Module,
        bias: Tensor | None,
        decoder: Tensor | None = None,
        pretrained: bool = False,
    ) -> None:
        super().__init__()
        self.dense = dense
        self.activation = activation
        self.norm = norm
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        self.decoder = None if decoder is None else nn.Parameter(decoder.detach().clone())
        self.pretrained = pretrained

    def forward(self, hidden: Tensor, word_embeddings: Tensor) -> Tensor:
        """Return logits, ``(tokens, vocabulary)``."""
        return functional.linear(self._transform(hidden), self._output_weight(word_embeddings), self.bias)

    def summed_loss(self, hidden: Tensor, word_embeddings: Tensor, targets: Tensor, chunk_size: int) -> Tensor:
        """Return the cross-entropy, summed over tokens, with the logits of one chunk of them held at a time."""
        weight = self._output_weight(word_embeddings)
        with self.precision(hidden.device):
            return chunked_cross_entropy(self._transform(hidden), weight, self.bias, targets, chunk_size)

    def _transform(self, hidden: Tensor) -> Tensor:
        # The encoder may be in half precision, as its checkpoint; the head never is.
        transformed: Tensor = self.norm(self.activation(self.dense(hidden.to(self._dtype))))
        return transformed

    def _output_weight(self, word_embeddings: Tensor) -> Tensor:
        return (word_embeddings if self.decoder is None else self.decoder).to(self._dtype)

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.dense.parameters()).dtype


def make_mlm_head(model: SentenceTransformer, source: HeadSource = "auto", seed: int = 0) -> MLMHead:
    """Return the head for a model: ``"pretrained"``, ``"fresh"``, or ``"auto"`` for the former if there is one."""
    encoder = encoder_of(model)
    head: MLMHead | None = None
    reason = "mlm_head='fresh'"
    if source != "fresh":
        head, reason = _pretrained_head(encoder)
        if head is None and source == "pretrained":
            raise ModelError(f"No pretrained MLM head: {reason}. Use mlm_head='auto' or 'fresh' to train a new one.")
    if head is None:
        logger.info("MLM head: new, tied to the word embeddings (%s).", reason)
        head = _fresh_head(encoder, seed)
    else:
        logger.info("MLM head: the checkpoint's (%s).", reason)
    return head.to(device=model.device, dtype=torch.float32)


def _pretrained_head(encoder: PreTrainedModel) -> tuple[MLMHead | None, str]:
    """Return the head of the checkpoint that the encoder was loaded from, or None, and the reason."""
    name, paths = checkpoint_name(encoder), MLM_HEADS.get(encoder.config.model_type)
    if paths is None:
        return None, f"no head is known for model type {encoder.config.model_type!r}"
    if not name:
        return None, "the model was not loaded from a checkpoint"
    try:
        masked_lm, missing_keys = load_masked_lm(name)
    except (OSError, ValueError) as error:
        return None, f"{name!r} could not be read again: {error}"
    needed = (*(f"{path}." for path in paths[:3]), f"{paths[3]}.weight")  # a tied weight is not missing
    missing = sorted(key for key in missing_keys if key.startswith(needed))
    if missing:
        return None, f"{name!r} has no {missing[0]!r}"
    dense, activation, norm, decoder = (
        masked_lm.get_submodule(path) if "." in path or hasattr(masked_lm, path) else ACT2FN[path] for path in paths
    )
    # Output weights of their own: a checkpoint that does not tie them.
    words = masked_lm.get_input_embeddings().weight
    if words.shape != encoder.get_input_embeddings().weight.shape:
        return None, f"{name!r} has {len(words)} word embeddings, the model another number"
    tied = decoder.weight is words or torch.equal(decoder.weight, words)
    head = MLMHead(dense, activation, norm, decoder.bias, None if tied else decoder.weight, pretrained=True)
    return head, repr(name)


def _fresh_head(encoder: PreTrainedModel, seed: int) -> MLMHead:
    config = encoder.config
    embeddings = encoder.get_input_embeddings()
    assert isinstance(embeddings, nn.Embedding)  # encoder_of has checked it
    vocabulary, size = embeddings.weight.shape
    generator = torch.Generator().manual_seed(seed)
    # Without its own initialisation, which would change the run's random numbers.
    dense = nn.utils.skip_init(nn.Linear, config.hidden_size, size)
    with torch.no_grad():
        dense.weight.normal_(0.0, getattr(config, "initializer_range", 0.02), generator=generator)
        dense.bias.zero_()
    activation = getattr(config, "hidden_act", None)
    norm = nn.LayerNorm(size, eps=getattr(config, "layer_norm_eps", 1e-12))
    return MLMHead(dense, ACT2FN[activation if isinstance(activation, str) else "gelu"], norm, torch.zeros(vocabulary))
