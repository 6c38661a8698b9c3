"""Mask tokens, and predict them with a masked-language-model head.

sentence-transformers drops a checkpoint's MLM head, so this module loads it from the checkpoint. If the checkpoint has
none, it creates a head tied to the word embeddings. All BERT-like heads share one architecture under different names:
dense layer, activation, layer norm, then a product with the word embeddings plus a bias.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.activations import ACT2FN

from simlte_st.compat import MLM_HEADS, checkpoint_name, get_encoder, load_masked_lm, mask_without_prompt
from simlte_st.errors import ModelError
from simlte_st.losses.base import IGNORE, Features, HeadPrecision

logger = logging.getLogger(__name__)

HeadSource = Literal["auto", "pretrained", "fresh"]


class TokenMasker:
    """Mask tokens as BERT does (Devlin et al., 2019, section 3.1).

    Each ordinary token is selected with probability ``probability``. Of the selected tokens, 80% become the mask token,
    10% become a random token, and 10% stay unchanged. Special tokens, padding and prompts are never selected.

    The mask of a row depends only on the seed, the draw and the row's tokens, not on other rows, padding or the number
    of processes that share a batch.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, probability: float = 0.15, seed: int = 0) -> None:
        if getattr(tokenizer, "mask_token_id", None) is None:
            raise ModelError(f"{type(tokenizer).__name__} has no mask token, which MLM needs: use mlm_weight=0.")
        self.probability, self.seed, self.mask_id = probability, seed, int(tokenizer.mask_token_id)
        self.special_ids, self.vocabulary = sorted(set(tokenizer.all_special_ids)), len(tokenizer)

    def __call__(self, features: Features, draw: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Return the masked ids and the labels of a batch, both of the shape of ``input_ids``."""
        ids, real = features["input_ids"], self._real(features)
        draws = zip(*(self._draw_row(row, draw) for row in self._rows(features)), strict=True)
        chance, random_ids = torch.ones(ids.shape, device=ids.device), torch.zeros_like(ids)
        chance[real], random_ids[real] = (torch.cat(rows).to(ids.device) for rows in draws)
        selected = (chance < self.probability) & self.maskable(features)
        labels = torch.where(selected, ids, IGNORE)
        # The uniform number, rescaled from [0, probability) to [0, 1), also picks the replacement.
        share = chance / self.probability
        masked = torch.where(selected & (share < 0.8), self.mask_id, ids)
        masked = torch.where(selected & (share >= 0.9), random_ids, masked)
        return masked, labels

    def _draw_row(self, row: NDArray[np.int64], draw: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Draw a uniform number in [0, 1) and a random token id for each token of a row, both ``(tokens,)``."""
        key = hashlib.blake2b(repr((self.seed, *draw)).encode() + b"\x00" + row.tobytes(), digest_size=16).digest()
        generator, count = torch.Generator().manual_seed(int.from_bytes(key[8:], "little")), len(row)
        return torch.rand(count, generator=generator), torch.randint(self.vocabulary, (count,), generator=generator)

    def _rows(self, features: Features) -> list[NDArray[np.int64]]:
        """Return the token ids of each row, without padding."""
        ids, mask = features["input_ids"], features.get("attention_mask")
        lengths = features["cu_seq_lens_q"].diff() if mask is None else mask.sum(dim=1)
        return np.split(ids[self._real(features)].to("cpu", torch.int64).numpy(), np.cumsum(lengths.cpu().numpy())[:-1])

    @staticmethod
    def _real(features: Features) -> Tensor:
        """Return a bool mask of the non-padding tokens, in the shape of ``input_ids``."""
        mask = features.get("attention_mask")
        return torch.ones_like(features["input_ids"], dtype=torch.bool) if mask is None else mask.bool()

    def maskable(self, features: Features) -> Tensor:
        """Return a bool mask of the tokens that may be masked, in the shape of ``input_ids``."""
        ids, mask = features["input_ids"], features.get("attention_mask")
        special = torch.tensor(self.special_ids, device=ids.device, dtype=ids.dtype)
        allowed: Tensor = ~torch.isin(ids, special) & self._real(features)
        prompt = features.get("prompt_length")
        if prompt is None:
            return allowed
        if mask is not None:
            return allowed & mask_without_prompt(mask, prompt).bool()
        starts = features["cu_seq_lens_q"].long()
        flat = torch.arange(ids.shape[1], device=ids.device)
        position: Tensor = flat - starts[torch.searchsorted(starts, flat, right=True) - 1]
        return allowed & (position >= int(torch.as_tensor(prompt).flatten()[0]))


def chunked_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, chunk_size: int
) -> Tensor:
    """Compute ``cross_entropy(hidden @ weight.T + bias, targets, reduction="sum")`` in chunks of tokens.

    The forward pass computes each chunk's logits and gradients together. Nothing is computed twice, and at most
    ``chunk_size * vocabulary`` logits are in memory, as in Liger Kernel's fused linear cross-entropy
    (https://arxiv.org/abs/2410.10989, section 3.2). Gradients as large as the inputs are kept for the backward pass.

    Under autocast, matrix products use the autocast dtype; the softmax and the sums use at least float32.
    """
    with_grad = torch.is_grad_enabled()  # inside an autograd.Function it is always False
    total: Tensor = _ChunkedCrossEntropy.apply(hidden, weight, bias, targets, chunk_size, with_grad)  # type: ignore[no-untyped-call]
    return total


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, chunk_size: int, with_grad: bool
    ) -> Tensor:
        needs = [with_grad and needed for needed in ctx.needs_input_grad[:3]]
        hidden, weight = hidden.detach().requires_grad_(needs[0]), weight.detach().requires_grad_(needs[1])
        bias = None if bias is None else bias.detach().requires_grad_(needs[2])
        wide = torch.promote_types(hidden.dtype, torch.float32)
        total = hidden.new_zeros((), dtype=wide)
        with torch.set_grad_enabled(any(needs)):
            for begin in range(0, max(1, len(targets)), chunk_size):  # gradients of no tokens are zeros, not None
                rows = slice(begin, begin + chunk_size)
                logits = functional.linear(hidden[rows], weight, bias).to(wide)
                loss = functional.cross_entropy(logits, targets[rows], reduction="sum")
                del logits  # to free the memory before the gradients are computed
                if any(needs):
                    loss.backward()
                total += loss.detach()
        ctx.save_for_backward(hidden.grad, weight.grad, None if bias is None else bias.grad)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if grad is None else grad * slope for grad in ctx.saved_tensors), None, None, None


class MLMHead(HeadPrecision, nn.Module):
    """Masked-language-model head: logits over the vocabulary from hidden states."""

    def __init__(
        self, dense: nn.Module, activation: nn.Module, norm: nn.Module, bias: Tensor | None,
        decoder: Tensor | None = None, pretrained: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.dense, self.activation, self.norm = dense, activation, norm
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        self.decoder = None if decoder is None else nn.Parameter(decoder.detach().clone())
        self.pretrained = pretrained

    def forward(self, hidden: Tensor, word_embeddings: Tensor) -> Tensor:
        """Return logits, ``(tokens, vocabulary)``."""
        return functional.linear(self._transform(hidden), self._output_weight(word_embeddings), self.bias)

    def summed_loss(self, hidden: Tensor, word_embeddings: Tensor, targets: Tensor, chunk_size: int) -> Tensor:
        """Return the cross-entropy summed over tokens, holding the logits of one chunk at a time."""
        weight = self._output_weight(word_embeddings)
        with self.precision(hidden.device):
            return chunked_cross_entropy(self._transform(hidden), weight, self.bias, targets, chunk_size)

    def _transform(self, hidden: Tensor) -> Tensor:
        # The encoder may be in half precision; the head never is.
        transformed: Tensor = self.norm(self.activation(self.dense(hidden.to(self._dtype))))
        return transformed

    def _output_weight(self, word_embeddings: Tensor) -> Tensor:
        return (word_embeddings if self.decoder is None else self.decoder).to(self._dtype)

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.dense.parameters()).dtype


def make_mlm_head(model: SentenceTransformer, source: HeadSource = "auto", seed: int = 0) -> MLMHead:
    """Return the checkpoint's MLM head (``"pretrained"``), a new one (``"fresh"``), or either (``"auto"``)."""
    encoder = get_encoder(model)
    head = "mlm_head='fresh'" if source == "fresh" else _pretrained_head(encoder)
    if isinstance(head, str):
        if source == "pretrained":
            raise ModelError(f"No pretrained MLM head: {head}. Use mlm_head='auto' or 'fresh' to train a new head.")
        logger.info("Using a new MLM head, because %s.", head)
        head = _fresh_head(encoder, seed)
    else:
        logger.info("Using the checkpoint's MLM head.")
    return head.to(device=model.device, dtype=torch.float32)


def _pretrained_head(encoder: PreTrainedModel) -> MLMHead | str:
    """Return the MLM head of the encoder's checkpoint, or the reason why it has none."""
    name, paths = checkpoint_name(encoder), MLM_HEADS.get(encoder.config.model_type)
    if paths is None:
        return f"no MLM head is known for model type {encoder.config.model_type!r}"
    if not name:
        return "the model was not loaded from a checkpoint"
    try:
        masked_lm, missing_keys = load_masked_lm(name)
    except (OSError, ValueError) as error:
        return f"{name!r} could not be reloaded: {error}"
    required = (*(f"{path}." for path in paths[:3]), f"{paths[3]}.weight")  # tied weights are never missing
    if missing := sorted(key for key in missing_keys if key.startswith(required)):
        return f"{name!r} has no {missing[0]!r}"
    words = masked_lm.get_input_embeddings().weight
    if words.shape != encoder.get_input_embeddings().weight.shape:
        return f"{name!r} and the model have word embeddings of different shapes"
    dense, activation, norm, decoder = (
        masked_lm.get_submodule(path) if "." in path or hasattr(masked_lm, path) else ACT2FN[path] for path in paths
    )
    untied = None if torch.equal(decoder.weight, words) else decoder.weight  # few checkpoints have untied weights
    return MLMHead(dense, activation, norm, decoder.bias, untied, pretrained=True)


def _fresh_head(encoder: PreTrainedModel, seed: int) -> MLMHead:
    config, embeddings = encoder.config, encoder.get_input_embeddings()
    assert isinstance(embeddings, nn.Embedding)  # checked by get_encoder
    vocabulary, size = embeddings.weight.shape
    generator = torch.Generator().manual_seed(seed)
    # The default initialisation would advance the global random state.
    dense = nn.utils.skip_init(nn.Linear, config.hidden_size, size)
    with torch.no_grad():
        dense.weight.normal_(0.0, getattr(config, "initializer_range", 0.02), generator=generator)
        dense.bias.zero_()
    activation = getattr(config, "hidden_act", None)
    norm = nn.LayerNorm(size, eps=getattr(config, "layer_norm_eps", 1e-12))
    return MLMHead(dense, ACT2FN[activation if isinstance(activation, str) else "gelu"], norm, torch.zeros(vocabulary))
