"""Choose devices and dtypes for models, and start a process on each of several devices."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import get_device_name

from simlte_st.errors import ConfigurationError, ModelError

Pool: TypeAlias = dict[Literal["input", "output", "processes"], Any]
"""The processes that sentence-transformers starts on several devices, and their queues."""


def check_device(device: str | Sequence[str] | None) -> None:
    """Check that a device, or each of several, is available before work begins."""
    for name in [device] if isinstance(device, str) else device or ():
        try:
            torch.empty(0, device=name)
        except (RuntimeError, AssertionError, NotImplementedError):  # the type depends on the device
            raise ConfigurationError(f"device={name!r} is not available: omit it to use {get_device_name()}.") from None


def default_dtype(device: str | torch.device | None) -> torch.dtype | None:
    """Return the default dtype for loading a model: float32 on a CPU, otherwise None for the checkpoint's own.

    Many checkpoints are stored in bfloat16 for GPUs, and transformers computes in the stored dtype. Compared with
    float32, bfloat16 takes 3.9 times as long on a CPU without AVX512-BF16 and two thirds as long with it
    (all-MiniLM-L6-v2, one thread); cosines differ by up to 0.003.
    """
    return torch.float32 if torch.device(device or get_device_name()).type == "cpu" else None


def cpu_capabilities() -> dict[str, object]:
    """Return PyTorch's description of the CPU: ``cpu_name``, ``avx512_f``, ``amx_bf16``, ..."""
    # Older versions of torch lack this function; encoding is then only slower.
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return capabilities


def cpu_bf16() -> list[str]:
    """Return the CPU's bfloat16 instructions: ``"avx512_bf16"``, ``"amx_bf16"``."""
    capabilities = cpu_capabilities()
    return [name for name in ("avx512_bf16", "amx_bf16") if capabilities.get(name)]


def reranking_dtype(device: str | None) -> torch.dtype | None:
    """Return the dtype for loading a reranker: bfloat16 on a CPU with instructions for it, otherwise the default."""
    dtype = default_dtype(device)
    return torch.bfloat16 if dtype is torch.float32 and cpu_bf16() else dtype


def bf16_available(device: str | None = None) -> bool:
    """Return whether the device supports bfloat16: a GPU, or a CPU with AVX512-BF16 or AMX."""
    if torch.cuda.is_available() and (device is None or torch.device(device).type == "cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(cpu_bf16())


@contextmanager
def device_pool(model: SentenceTransformer, devices: Sequence[str]) -> Iterator[Pool]:
    """Start a process on each device (a device may repeat), and yield sentence-transformers' pool."""
    home = model.device
    with _divide_threads(sum(torch.device(device).type == "cpu" for device in devices)):
        pool = model.start_multi_process_pool(list(devices))
    try:
        yield pool
    except RuntimeError as error:
        codes = [process.exitcode for process in pool["processes"] if not process.is_alive()]
        if not codes:
            raise
        hint = f"{-signal.SIGKILL} usually means out of memory. Finished parts are kept, so the run can be resumed."
        raise ModelError(f"An encoding process died with exit code {codes[0]}; {hint}") from error
    finally:
        model.stop_multi_process_pool(pool)
        model.to(home)


@contextmanager
def _divide_threads(processes: int) -> Iterator[None]:
    """Divide the cores among processes that start inside the block, because each would use all of them."""
    names = [name for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS") if name not in os.environ and processes]
    for name in names:  # torch reads the first, tokenizers the second
        os.environ[name] = str(max(1, torch.get_num_threads() // processes))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
