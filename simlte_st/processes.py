"""Several processes that train one model together, started by ``torchrun`` or ``accelerate launch``.

The main process, the one of rank 0, does what is done once: it reads, segments, converts, measures and saves, while the
others wait. What fails in it fails in all. A run of one process goes through the same functions, and talks to nobody.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

from simlte_st.errors import ConfigurationError, ProcessLostError, TrainingInterrupted

T = TypeVar("T")

PATIENCE = timedelta(days=30)
"""How long a process waits for the main one, which may segment a large corpus, or measure, alone."""

HEAD_START = 3.0
"""Seconds that the main process has to tell an error of all before another one ends: a launcher then ends the rest."""

_TOLD = "simlte_st/told"
_waiting: Any = None  # the process group for waiting; made by start()


def launched() -> tuple[int, int]:
    """Return the rank of this process and the number of processes, as the launcher's environment says."""
    number = int(os.environ.get("WORLD_SIZE", "1"))
    return (int(os.environ.get("RANK", "0")) if number > 1 else 0), number


def connected() -> bool:
    """Return whether there is a process group."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


def world() -> int:
    """Count the processes."""
    import torch.distributed as dist

    return dist.get_world_size() if connected() else launched()[1]


def rank() -> int:
    """Number this process, from 0."""
    import torch.distributed as dist

    return dist.get_rank() if connected() else launched()[0]


def is_main() -> bool:
    """Return whether this is the process that does what is done once."""
    return rank() == 0


def choose_device(device: str | None) -> str | None:
    """Choose where this process computes: each on a GPU of its own, or all on the CPU."""
    if world() == 1:
        return device
    import torch

    on_cpu = device == "cpu" or os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    if on_cpu or (device is None and not torch.cuda.is_available()):
        return "cpu"
    if device not in (None, "cuda"):
        raise ConfigurationError(
            f"device={device!r}: of several processes each takes a GPU of its own. Leave it out, or use device='cpu'."
        )
    local, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if local >= gpus:
        raise ConfigurationError(
            f"There are more processes on this machine than GPUs ({gpus}): start as many, or use device='cpu'."
        )
    return f"cuda:{local}"


def start(device: str | None) -> None:
    """Connect the processes, and silence all but the main one; does nothing where there is one, or it was done."""
    global _waiting
    if world() == 1 or _waiting is not None:
        return
    import logging
    import warnings

    import torch
    import torch.distributed as dist
    from datasets import disable_progress_bars
    from transformers.utils import logging as transformers_logging

    if not is_main():
        for library in ("simlte_st", "sentence_transformers"):
            logging.getLogger(library).setLevel(logging.CRITICAL)
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        disable_progress_bars()
    # What the libraries call in each other, and no user can change.
    warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
    warnings.filterwarnings("ignore", r"torch\.distributed\.nn\.functional\.all_gather is deprecated", FutureWarning)
    if not connected():
        if device != "cpu":
            torch.cuda.set_device(device)
        try:
            dist.init_process_group("gloo" if device == "cpu" else "cpu:gloo,cuda:nccl")
        except ValueError as error:  # of the environment
            raise ConfigurationError(
                f"WORLD_SIZE is {world()}, but {error}. Start the processes by torchrun or accelerate launch; for one "
                "process alone, unset WORLD_SIZE."
            ) from error
    # Older versions of transformers load the optimizer of a checkpoint to "cpu:0", which torch calls "cpu" alone.
    torch.serialization.register_package(15, lambda storage: None, _from_numbered_cpu)
    _waiting = dist.new_group(backend="gloo", timeout=PATIENCE)


def _from_numbered_cpu(storage: Any, location: str) -> Any:
    return storage if location.startswith("cpu:") else None


def stop() -> None:
    """Disconnect the processes, at the end of a program that went well: NCCL complains where nobody does."""
    global _waiting
    if _waiting is not None:
        import torch.distributed as dist

        dist.destroy_process_group()
        _waiting = None


def _from_main(value: Any) -> Any:
    import torch.distributed as dist

    box = [value]
    dist.broadcast_object_list(box, src=0, group=_waiting)
    return box[0]


def on_main(work: Callable[[], T]) -> T | None:
    """Do something in the main process, while the others wait."""
    if world() == 1:
        return work()
    result: T | None = None
    if is_main():
        try:
            result = work()
        except BaseException as error:
            with suppress(RuntimeError):  # another one is gone: this error came first
                _from_main(_portable(error))
            raise
    raised = _from_main(None)
    if raised is not None:
        raised.of_main = True  # which tells it
        let_main_tell()
        raise raised
    return result


def let_main_tell() -> None:
    """Wait, in a process other than the main one, until that has told why all of them end."""
    if not is_main():
        time.sleep(HEAD_START)


def _portable(error: BaseException) -> BaseException:
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    return copy if isinstance(copy, BaseException) else RuntimeError(f"{type(error).__name__}: {error}")


def main_first(work: Callable[[], T]) -> T:
    """Do something in the main process, and then in the others, which find what it wrote."""
    result = on_main(work)
    return result if is_main() else work()  # type: ignore[return-value]  # the main one's


def result_of_main(work: Callable[[], T]) -> T:
    """Do something in the main process, and give the result to all."""
    result = on_main(work)
    return result if world() == 1 else _from_main(result)  # type: ignore[return-value]  # the main one's


def largest(number: int) -> int:
    """Return the largest of the numbers of all processes; each of them has to ask."""
    if world() == 1:
        return number
    import torch
    import torch.distributed as dist

    value = torch.tensor(number)
    dist.all_reduce(value, op=dist.ReduceOp.MAX, group=_waiting)
    return int(value)


def barrier() -> None:
    """Wait until all processes have come here."""
    largest(0)


def mean_over_processes(number: float, device: Any) -> float:
    """Average a number over the processes; each of them has to ask."""
    if not connected() or world() == 1:
        return number
    import torch
    import torch.distributed as dist

    value = torch.tensor(float(number), device=device, dtype=torch.float64 if device.type != "mps" else None)
    dist.all_reduce(value)
    return float(value) / world()


@contextmanager
def together() -> Iterator[None]:
    """Raise our own error in the place of what torch raises when another process is gone."""
    try:
        yield
    except RuntimeError as error:
        if world() == 1 or not _is_of_connection(error):
            raise
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher's; this process ends, but says why
        raise ProcessLostError(
            "Another process of this run ended: it was killed, or its memory did not suffice. Go on from the last "
            "checkpoint with the same settings and resume=True."
        ) from error


def _is_of_connection(error: BaseException) -> bool:
    import torch.distributed as dist

    words = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "gloo/transport")
    return isinstance(error, dist.DistError) or any(word in str(error) for word in words)


def tells(error: BaseException) -> bool:
    """Return whether this process is the one to show an error: of several that fail together, one does."""
    if world() == 1:
        return True
    if getattr(error, "of_main", False):
        return False
    if isinstance(error, TrainingInterrupted) or not connected():
        return is_main()
    from simlte_st.compat import store_of_processes

    try:
        return bool(store_of_processes().add(_TOLD, 1) == 1)
    except RuntimeError:  # it went with the process that kept it
        return True
