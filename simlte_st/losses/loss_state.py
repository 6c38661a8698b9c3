"""What a loss keeps between steps: its own parameters, for checkpoints, and metrics of its batches, for the log."""

from __future__ import annotations

import torch
import torch.distributed
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.distributed import connected, world
from simlte_st.errors import ConfigurationError
from simlte_st.losses.masked_language_model import HeadPrecision

_MOST_ROWS = 1024  # of a batch that are compared


class LossStateMixin(nn.Module):
    """A mixin for losses with parameters of their own; it comes before the stock loss among the base classes.

    :class:`~simlte_st.training.LossStateCallback` needs only these three methods. They include the losses that this one
    wraps.
    """

    model: SentenceTransformer  # its parameters are not the loss's own

    def extra_state(self) -> dict[str, Tensor]:
        """Return the loss's own parameters and buffers by name, those of the model left out."""
        of_model = {id(value) for value in self.model.state_dict(keep_vars=True).values()}
        own = self.state_dict(keep_vars=True)
        return {name: value.detach() for name, value in own.items() if id(value) not in of_model}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restore the result of :meth:`extra_state`, in place."""
        own = self.extra_state()
        if set(own) != set(state):
            raise ConfigurationError(
                f"The saved loss has the values {sorted(state)}, this one {sorted(own)}: resume with the loss and "
                "settings of the run's start."
            )
        self.load_state_dict(state, strict=False)  # the model's are missing

    def set_head_precision(self, bf16: bool) -> None:
        """Switch all heads to bfloat16, also without autocast: the Trainer's ends with the model."""
        for module in self.modules():
            if isinstance(module, HeadPrecision):
                module.bf16 = bf16


def average_gradient(parameter: nn.Parameter) -> None:
    """Average the gradient of a head, which is outside the DDP wrapper, over the processes of a distributed run."""
    if connected() and world() > 1 and parameter.grad is not None:
        torch.distributed.all_reduce(parameter.grad)
        parameter.grad.div_(world())


class BatchMetrics:
    """Running means over the batches since they were last taken.

    - ``mean_cosine``: mean cosine between embeddings of different documents of a batch. It rises when the space
      collapses into a cone, which an MLM term can cause.
    - ``alignment``: mean squared distance between the two views of a document (Wang & Isola, 2020).
    - ``uniformity``: log of the mean of ``exp(-2 d^2)`` over pairs of different documents (same source); lower is
      more uniform.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._batches: dict[str, int] = {}  # by name: a batch of one document has no pair of different ones

    @torch.no_grad()
    def update(self, embeddings: list[Tensor]) -> None:
        """Add one batch."""
        anchor, positive = (
            functional.normalize(column[:_MOST_ROWS].detach().float(), dim=1) for column in embeddings[:2]
        )
        values = {"alignment": (anchor - positive).square().sum(dim=1).mean()}
        if len(anchor) > 1:
            others = ~torch.eye(len(anchor), dtype=torch.bool, device=anchor.device)
            values["mean_cosine"] = (anchor @ positive.T)[others].mean()
            # On the unit sphere d^2 = 2 - 2 cos.
            distances = torch.cat([(2 - 2 * (side @ side.T))[others] for side in (anchor, positive)])
            values["uniformity"] = distances.mul(-2).exp().mean().log()
        for name, value in values.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value
            self._batches[name] = self._batches.get(name, 0) + 1

    def take(self) -> dict[str, float]:
        """Return the means since the last call, none if there was no batch, and reset them."""
        means = {name: round((total / self._batches[name]).item(), 4) for name, total in self._sums.items()}
        self._sums, self._batches = {}, {}
        return means
