"""What a loss holds beside the model, and how it goes into checkpoints: sentence-transformers saves the model only."""

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

    :class:`~simlte_st.training.LossStateCallback` needs these three methods of a loss and nothing else. They also reach
    what the losses hold that this one wraps.

    Attributes:
        model: The model that is trained. Its parameters are not the loss's own.
    """

    model: SentenceTransformer

    def extra_state(self) -> dict[str, Tensor]:
        """Return the loss's own parameters and buffers by name, those of the model left out."""
        of_model = {id(value) for value in self.model.state_dict(keep_vars=True).values()}
        own = self.state_dict(keep_vars=True)
        return {name: value.detach() for name, value in own.items() if id(value) not in of_model}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`extra_state` gave, in place."""
        own = self.extra_state()
        if set(own) != set(state):
            raise ConfigurationError(
                f"The saved loss has the values {sorted(state)}, this one {sorted(own)}: "
                "resume with the loss and the settings that the run was started with."
            )
        self.load_state_dict(state, strict=False)  # the model's are missing

    def set_head_precision(self, bf16: bool) -> None:
        """Let the heads compute in bfloat16 although no autocast is on: the Trainer's ends with the model."""
        for module in self.modules():
            if isinstance(module, HeadPrecision):
                module.bf16 = bf16


def average_gradient(parameter: nn.Parameter) -> None:
    """Average a head's gradient over the processes of a distributed run: the head is outside the DDP wrapper."""
    if connected() and world() > 1 and parameter.grad is not None:
        torch.distributed.all_reduce(parameter.grad)
        parameter.grad.div_(world())
