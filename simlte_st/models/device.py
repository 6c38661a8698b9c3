"""Choose where models compute: on a device, in a process on each of several devices, or in Ray actors.

Functions import torch when they need it, since the command line reads :class:`Engine`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from simlte_st.arguments import Count, check_fields
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import check_installed

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

Pool: TypeAlias = dict[Literal["input", "output", "processes"], Any]
"""The processes that sentence-transformers starts on several devices, and their queues."""


@dataclass(frozen=True)
class Engine:
    """Where documents are encoded.

    Attributes:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``, or a list of devices that share the work; None for a
            GPU, if there is one.
        engine: This process and its devices (``"local"``), or Ray actors on one machine or many (``"ray"``).
        actors: Number of Ray actors, each with a CPU and, if there are GPUs, a GPU; None for as many as fit.
        address: Address of a Ray cluster; None to use one that runs here, or to start one.

    Raises:
        ConfigurationError: A Ray option without ``engine="ray"``, or a device that Ray chooses itself.
        MissingExtraError: The extra ``ray`` is not installed, with ``engine="ray"``.
    """

    device: str | Sequence[str] | None = None
    engine: Literal["local", "ray"] = "local"
    actors: Count | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.engine == "ray":
            check_installed("ray", "ray", "engine='ray'")
            if self.device not in (None, "cpu", "cuda"):
                raise ConfigurationError(
                    f"device={self.device!r}: with engine='ray', use 'cpu' or 'cuda'; Ray chooses the GPU."
                )
            return
        if self.actors is not None or self.address is not None:
            raise ConfigurationError("actors= and address= need engine='ray'.")

    @property
    def several(self) -> list[str]:
        """The devices, if several share the work of this process."""
        return [] if self.device is None or isinstance(self.device, str) else list(self.device)

    @property
    def elsewhere(self) -> bool:
        """Whether other processes encode."""
        return self.engine == "ray" or bool(self.several)

    @property
    def loading_device(self) -> str | None:
        """The device on which to load the model, which decides its dtype; other processes get copies via the CPU."""
        if self.engine == "ray":  # actors may have GPUs even if this process has none
            return "cpu" if self.device == "cpu" else None
        if not self.several:
            return self.device  # type: ignore[return-value]
        return next((device for device in self.several if device.split(":")[0] == "cpu"), self.several[0])


def check_device(device: str | None) -> None:
    """Check that a device is available before work begins."""
    import torch
    from sentence_transformers.util import get_device_name

    if device is None:
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):  # depends on the device
        raise ConfigurationError(
            f"device={device!r} is not available here. Leave it out to use {get_device_name()}."
        ) from None


def check_devices(engine: Engine) -> None:
    """Check that the devices of the local engine are available."""
    if engine.engine == "local":
        for device in [engine.device] if isinstance(engine.device, str) else engine.several:
            check_device(device)


def default_dtype(device: str | torch.device | None) -> torch.dtype | None:
    """Return the default dtype for loading a model: float32 on a CPU, elsewhere None for the checkpoint's own.

    Many checkpoints are stored in bfloat16 for GPUs, and transformers computes in the stored dtype. Compared with
    float32, bfloat16 takes 3.9 times as long on a CPU without AVX512-BF16 and two thirds as long with it
    (all-MiniLM-L6-v2, one thread); cosines differ by up to 0.003.
    """
    import torch
    from sentence_transformers.util import get_device_name

    return torch.float32 if torch.device(device or get_device_name()).type == "cpu" else None


def cpu_capabilities() -> dict[str, object]:
    """Return PyTorch's description of the CPU: ``cpu_name``, ``avx512_f``, ``amx_bf16``, ..."""
    import torch

    # Older versions of torch have none, which only makes encoding slower.
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return capabilities


def cpu_bf16() -> list[str]:
    """Return the CPU's bfloat16 instructions: ``"avx512_bf16"``, ``"amx_bf16"``."""
    capabilities = cpu_capabilities()
    return [name for name in ("avx512_bf16", "amx_bf16") if capabilities.get(name)]


def bf16_available(device: str | None = None) -> bool:
    """Return whether the GPU, or a CPU with AVX512-BF16 or AMX, computes in bfloat16."""
    import torch

    if torch.cuda.is_available() and (device is None or torch.device(device).type == "cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(cpu_bf16())


@contextmanager
def device_pool(model: SentenceTransformer, devices: Sequence[str]) -> Iterator[Pool]:
    """Start a process on each device (a device may repeat), and yield sentence-transformers' pool."""
    import torch

    home = model.device
    with _divide_threads(sum(torch.device(device).type == "cpu" for device in devices)):
        pool = model.start_multi_process_pool(list(devices))
    try:
        yield pool
    except RuntimeError as error:
        codes = [process.exitcode for process in pool["processes"] if not process.is_alive()]
        if not codes:
            raise
        raise ModelError(
            f"An encoding process died with exit code {codes[0]}; {-signal.SIGKILL} usually means out of memory. "
            "Finished parts are kept for a resumed run."
        ) from error
    finally:
        model.stop_multi_process_pool(pool)
        model.to(home)


@contextmanager
def _divide_threads(processes: int) -> Iterator[None]:
    """Divide the cores among processes that start inside the block, because each would use all of them."""
    import torch

    names = [name for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS") if name not in os.environ and processes]
    for name in names:  # torch reads the first, tokenizers the second
        os.environ[name] = str(max(1, torch.get_num_threads() // processes))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
