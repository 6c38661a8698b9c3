"""Loss parameters for checkpoints, and batch metrics for the log."""

from __future__ import annotations

from typing import Annotated

import torch
import torch.distributed
from annotated_types import Interval
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.distributed import is_connected, world
from simlte_st.errors import ConfigurationError
from simlte_st.losses.masked_language_model import HeadPrecision

Weight = Annotated[float, Interval(ge=0)]
"""Weight of a term of a loss."""

_MAX_ROWS = 1024  # rows of a batch to compare


class LossStateMixin(nn.Module):
    """Mixin for losses with trainable parameters; list it before the stock loss in the base classes.

    :class:`~simlte_st.training.LossStateCallback` uses these three methods. They cover wrapped losses too.
    """

    model: SentenceTransformer

    def extra_state(self) -> dict[str, Tensor]:
        """Return the parameters and buffers of the loss by name, without those of the model."""
        model_tensors = {id(tensor) for tensor in self.model.state_dict(keep_vars=True).values()}
        tensors = self.state_dict(keep_vars=True)
        return {name: tensor.detach() for name, tensor in tensors.items() if id(tensor) not in model_tensors}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restore the result of :meth:`extra_state` in place."""
        names = sorted(self.extra_state())
        if names != sorted(state):
            raise ConfigurationError(
                f"The checkpoint's loss has the parameters {sorted(state)}, this loss has {names}: resume with the "
                "loss and settings that the run started with."
            )
        self.load_state_dict(state, strict=False)  # without the model's parameters

    def set_head_precision(self, bf16: bool) -> None:
        """Set whether all heads compute in bfloat16; the Trainer's autocast does not cover them."""
        for module in self.modules():
            if isinstance(module, HeadPrecision):
                module.bf16 = bf16


def average_gradient(parameter: nn.Parameter) -> None:
    """Average the gradient of a head over processes; DDP does not, because the head is outside its wrapper."""
    if is_connected() and world() > 1 and parameter.grad is not None:
        torch.distributed.all_reduce(parameter.grad)
        parameter.grad.div_(world())


class BatchMetrics:
    """Means of batch metrics since the last :meth:`take`.

    - ``mean_cosine``: mean cosine between different documents of a batch. It rises if the embeddings collapse into a
      cone, which an MLM term can cause.
    - ``alignment``: mean squared distance between the two views of a document (Wang & Isola, 2020).
    - ``uniformity``: log of the mean of ``exp(-2 d^2)`` over pairs of different documents (ibid.); lower is more
      uniform.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._batches: dict[str, int] = {}  # by name: a batch of one document has only an alignment

    @torch.no_grad()
    def update(self, embeddings: list[Tensor]) -> None:
        """Add one batch."""
        anchor, positive = (
            functional.normalize(column[:_MAX_ROWS].detach().float(), dim=1) for column in embeddings[:2]
        )
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
        """Return the means and reset them; empty if there was no batch since the last call."""
        means = {name: round((total / self._batches[name]).item(), 4) for name, total in self._sums.items()}
        self._sums, self._batches = {}, {}
        return means
