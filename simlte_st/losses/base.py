"""Shared code of the losses: batching of input columns, checkpointing of parameters, and metrics for the log."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.compat import Features as Features
from simlte_st.compat import merge_feature_batches, slice_rows
from simlte_st.distributed import is_connected, world
from simlte_st.errors import ConfigurationError

LABELS = "mlm_labels"
"""Key of a masked column's labels (int64, same shape as ``input_ids``). The model never sees the labels."""

IGNORE = -100
"""Label of tokens to leave out of the loss, the default ``ignore_index`` of ``cross_entropy``."""

_MAX_PADDING = 1.125
"""Merge columns only if padding makes the batch at most this many times larger, because padding costs time too."""

_MAX_ROWS = 1024  # maximum number of rows of a batch used for the metrics


def merge_columns(columns: list[Features], max_padding: float = float("inf")) -> Features | None:
    """Concatenate the rows of all columns into one batch; return None if the columns cannot be merged."""
    masks = [features.get("attention_mask") for features in columns]
    if len(columns) < 2 or any(mask is None for mask in masks):
        return None
    widths = [mask.shape[1] for mask in masks if mask is not None]
    if len(widths) * max(widths) > max_padding * sum(widths):
        return None
    merged = merge_feature_batches(columns)
    if merged is not None and LABELS in merged:
        # Merging pads labels with 0, which would be a token to predict.
        merged[LABELS] = merged[LABELS].masked_fill(merged["attention_mask"] == 0, IGNORE)
    return merged


def encode(model: nn.Module, features: Features) -> tuple[Features, Tensor | None]:
    """Run the model on a batch; return its outputs and the batch's MLM labels, if any."""
    inputs = dict(features)  # the model adds its outputs to this copy
    labels = inputs.pop(LABELS, None)
    return model(inputs), labels


def encode_columns(model: nn.Module, columns: list[Features]) -> list[tuple[Features, Tensor | None]]:
    """Encode columns in one pass if that adds little padding, otherwise one by one."""
    merged = merge_columns(columns, _MAX_PADDING)
    return [encode(model, features) for features in (columns if merged is None else [merged])]


def split_embeddings(outputs: list[tuple[Features, Tensor | None]], columns: int) -> list[Tensor]:
    """Split the result of :func:`encode_columns` into the embeddings of each column, ``(rows, dim)``."""
    embeddings = [out["sentence_embedding"] for out, _ in outputs]
    return list(embeddings[0].chunk(columns)) if len(embeddings) == 1 else embeddings


def row_count(features: Features) -> int:
    """Return the number of rows of a column."""
    starts = features.get("cu_seq_lens_q")
    return len(features["input_ids"]) if starts is None else len(starts) - 1


def take_rows(features: Features, rows: Tensor) -> Features:
    """Select rows of a padded column, in any order."""
    count = len(features["input_ids"])
    selection = {
        name: feature[rows] if isinstance(feature, Tensor) and feature.ndim and len(feature) == count else feature
        for name, feature in features.items()
    }
    return slice_rows(selection, 0, len(rows))


class LossTerms(dict[str, Tensor]):
    """Terms of a loss inside a wrapper such as ``MatryoshkaLoss``, which scales and adds only the contrastive term."""

    def __mul__(self, factor: float) -> LossTerms:
        return LossTerms({**self, "contrastive": self["contrastive"] * factor})

    def __truediv__(self, divisor: float) -> LossTerms:
        return self * (1 / divisor)

    def __add__(self, other: LossTerms | Tensor | float) -> LossTerms:
        added = other if isinstance(other, LossTerms) else {"contrastive": other}
        return LossTerms({name: term + added.get(name, 0.0) for name, term in self.items()})

    __rmul__, __radd__ = __mul__, __add__


class HeadPrecision:
    """Mixin for modules that compute logits over the vocabulary in the Trainer's precision."""

    # The Trainer's autocast covers only the model. Softmax and sums always use float32.
    bf16 = False

    def precision(self, device: torch.device) -> AbstractContextManager[object]:
        """Return the autocast context for the logits."""
        return torch.autocast(device.type, torch.bfloat16) if self.bf16 else nullcontext()


class LossStateMixin(nn.Module):
    """Mixin for losses with trainable parameters; list it before the stock loss in the base classes.

    :class:`~simlte_st.training.LossStateCallback` calls these three methods, which include the state of wrapped losses.
    """

    model: SentenceTransformer

    def extra_state(self) -> dict[str, Tensor]:
        """Return the loss's own parameters and buffers by name, excluding the model's."""
        model_tensors = {id(tensor) for tensor in self.model.state_dict(keep_vars=True).values()}
        tensors = self.state_dict(keep_vars=True)
        return {name: tensor.detach() for name, tensor in tensors.items() if id(tensor) not in model_tensors}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restore the state returned by :meth:`extra_state` in place."""
        names = sorted(self.extra_state())
        if names != sorted(state):
            problem = f"The checkpoint's loss has the parameters {sorted(state)}, but this loss has {names}"
            raise ConfigurationError(f"{problem}: resume with the same loss and settings as the original run.")
        self.load_state_dict(state, strict=False)  # not strict: the model's own parameters are absent

    def set_head_precision(self, bf16: bool) -> None:
        """Choose bfloat16 or float32 for all heads, which the Trainer's autocast does not cover."""
        for module in self.modules():
            if isinstance(module, HeadPrecision):
                module.bf16 = bf16


def average_gradient(parameter: nn.Parameter) -> None:
    """Average the gradient of a head over processes, because DDP wraps only the model."""
    if is_connected() and world() > 1 and parameter.grad is not None:
        torch.distributed.all_reduce(parameter.grad)
        parameter.grad.div_(world())


class BatchMetrics:
    """Means of batch metrics since the last :meth:`take`.

    - ``mean_cosine``: mean cosine between different documents of a batch. A rise means that the embeddings are
      collapsing into a cone, as an MLM term can cause.
    - ``alignment``: mean squared distance between the two views of a document (Wang & Isola, 2020).
    - ``uniformity``: log of the mean of ``exp(-2 d^2)`` over pairs of different documents (ibid.); lower is more
      uniform.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._batches: dict[str, int] = {}  # counted per metric: a batch of one document only has an alignment

    @torch.no_grad()
    def update(self, embeddings: list[Tensor]) -> None:
        """Add one batch."""
        anchor, positive = (functional.normalize(view[:_MAX_ROWS].detach().float(), dim=1) for view in embeddings[:2])
        metrics = {"alignment": (anchor - positive).square().sum(dim=1).mean()}
        if len(anchor) > 1:
            different = ~torch.eye(len(anchor), dtype=torch.bool, device=anchor.device)
            metrics["mean_cosine"] = (anchor @ positive.T)[different].mean()
            # On the unit sphere d^2 = 2 - 2 cos.
            distances = torch.cat([(2 - 2 * (view @ view.T))[different] for view in (anchor, positive)])
            metrics["uniformity"] = distances.mul(-2).exp().mean().log()
        for name, metric in metrics.items():
            self._sums[name] = self._sums[name] + metric if name in self._sums else metric
            self._batches[name] = self._batches.get(name, 0) + 1

    def take(self) -> dict[str, float]:
        """Return the means and reset them; the dictionary is empty if no batch was added since the last call."""
        means = {name: round((total / self._batches[name]).item(), 4) for name, total in self._sums.items()}
        self._sums, self._batches = {}, {}
        return means
