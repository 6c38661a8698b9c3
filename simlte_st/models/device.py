"""The device that a model computes on, where one was asked for."""

from __future__ import annotations

import torch
from sentence_transformers.util import get_device_name

from simlte_st.errors import ConfigurationError


def check_device(device: str | None) -> None:
    """Check that a device is there, before work begins.

    Args:
        device: As PyTorch names it: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``; None leaves it to
            sentence-transformers.

    Raises:
        ConfigurationError: There is no such device.
    """
    if device is None:
        return
    try:
        if torch.device(device).type == "meta":  # computes nothing
            raise RuntimeError
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):  # of another kind for each device
        available = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        if get_device_name().split(":")[0] not in ("cpu", "cuda"):
            available.append(get_device_name())
        raise ConfigurationError(
            f"device={device!r} is not available here. Available: {', '.join(available)}. Leave it out for "
            f"{get_device_name()}."
        ) from None
