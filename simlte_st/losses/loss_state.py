"""The parameters of a loss, as checkpoints need them: sentence-transformers saves those of the model only."""

from __future__ import annotations

import torch
import torch.distributed
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from simlte_st.distributed import connected, world
from simlte_st.errors import ConfigurationError
from simlte_st.losses.chunked_cross_entropy import HeadPrecision


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
