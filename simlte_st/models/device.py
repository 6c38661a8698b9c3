"""Where models compute: devices, a process on each of several, or actors of Ray.

torch is imported by the functions that need it, since the command line reads :class:`Engine`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from simlte_st.arguments import Count, check_fields
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import check_installed

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True)
class Engine:
    """Where documents are encoded.

    Attributes:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``; several share the work; None for a GPU, if there is
            one.
        engine: This process and its devices (``"local"``), or actors of Ray on one machine or many (``"ray"``).
        actors: Number of actors of Ray, each with a CPU and, if there are any, a GPU; None for as many as fit.
        address: Address of a Ray cluster; None for one that runs here, else a new one.

    Raises:
        ConfigurationError: An option of Ray without ``engine="ray"``, or a device that Ray chooses itself.
        MissingExtraError: ``engine="ray"``, and the extra ``ray`` is not installed.
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
                    f"device={self.device!r}: with engine='ray' it is 'cpu' or 'cuda'; Ray chooses which."
                )
            return
        if self.actors is not None or self.address is not None:
            raise ConfigurationError("actors= and address= are options of engine='ray'.")

    @property
    def several(self) -> list[str]:
        """The devices, where several share the work of this process."""
        return [] if self.device is None or isinstance(self.device, str) else list(self.device)

    @property
    def elsewhere(self) -> bool:
        """Whether processes other than this one encode."""
        return self.engine == "ray" or bool(self.several)

    @property
    def loading_device(self) -> str | None:
        """Where to load the model, which decides its dtype; copies of it go to other processes by the CPU."""
        if self.engine == "ray":  # which may have GPUs where this process has none
            return "cpu" if self.device == "cpu" else None
        if not self.several:
            return self.device  # type: ignore[return-value]
        return next((each for each in self.several if each.split(":")[0] == "cpu"), self.several[0])


def check_device(device: str | None) -> None:
    """Check that a device is available, before work begins."""
    import torch
    from sentence_transformers.util import get_device_name

    if device is None:
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):  # the kind depends on the device
        raise ConfigurationError(
            f"device={device!r} is not available here. Leave it out for {get_device_name()}."
        ) from None


def check_devices(engine: Engine) -> None:
    """Check that the devices of the local engine are available."""
    if engine.engine == "local":
        for each in [engine.device] if isinstance(engine.device, str) else engine.several:
            check_device(each)


def dtype_unasked(device: str | torch.device | None) -> torch.dtype | None:
    """Return the dtype to load a model in where none is asked for: on a CPU float32, elsewhere None for its own.

    Many checkpoints are stored in bfloat16 for GPUs, and transformers computes in what a checkpoint is stored in. A CPU
    without AVX512-BF16 takes 3.9 times as long for it as for float32, one with it two thirds (all-MiniLM-L6-v2, one
    thread), and cosines differ by up to 0.003.
    """
    import torch
    from sentence_transformers.util import get_device_name

    return torch.float32 if torch.device(device or get_device_name()).type == "cpu" else None


def cpu_capabilities() -> dict[str, Any]:
    """Return what PyTorch knows of the CPU: ``cpu_name``, ``avx512_f``, ``amx_bf16``, ..."""
    import torch

    # Older versions of torch know nothing, which only makes us slower.
    found: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return found


def cpu_bf16() -> list[str]:
    """Return the instructions that the CPU has for bfloat16: ``"avx512_bf16"``, ``"amx_bf16"``."""
    found = cpu_capabilities()
    return [name for name in ("avx512_bf16", "amx_bf16") if found.get(name)]


def bf16_available(device: str | None = None) -> bool:
    """Return whether the hardware computes in bfloat16: the GPU, or a CPU with AVX512-BF16 or AMX."""
    import torch

    if torch.cuda.is_available() and (device is None or torch.device(device).type == "cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(cpu_bf16())


@contextmanager
def device_pool(model: SentenceTransformer, devices: Sequence[str]) -> Iterator[Any]:
    """Start a process on each of several devices, which may repeat; yield sentence-transformers' pool."""
    import torch

    before = model.device
    with _threads_divided(sum(torch.device(each).type == "cpu" for each in devices)):
        pool = model.start_multi_process_pool(list(devices))
    try:
        yield pool
    except RuntimeError as error:
        codes = [process.exitcode for process in pool["processes"] if not process.is_alive()]
        if not codes:
            raise
        raise ModelError(
            f"A process that encodes died (exit code {codes[0]}); {-signal.SIGKILL} usually means that memory ran out. "
            "Finished parts are kept for a resumed run."
        ) from error
    finally:
        model.stop_multi_process_pool(pool)
        model.to(before)


@contextmanager
def _threads_divided(processes: int) -> Iterator[None]:
    """Divide the cores among processes that start inside the block; each would use all of them otherwise."""
    import torch

    names = [name for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS") if name not in os.environ and processes]
    for name in names:  # of torch and of tokenizers
        os.environ[name] = str(max(1, torch.get_num_threads() // processes))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
