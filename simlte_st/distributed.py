"""Several processes that train one model together, started by ``torchrun`` or ``accelerate launch``.

Decorators of the stages of a run say what each process does. With :func:`on_main` and :func:`from_main` the main
process, rank 0, does the work while the others wait; :func:`main_first` has them do it afterwards. An error in the main
process is raised in all. A single process runs a stage as it is.
"""

from __future__ import annotations

import functools
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

from simlte_st.errors import ConfigurationError, ProcessLostError, TrainingInterrupted

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE = timedelta(days=30)
"""How long a process waits for the main one, which segments a large corpus and evaluates alone."""

HEAD_START = 3.0
"""Seconds in which the main process shows an error of all before another one ends: the launcher then ends the rest."""

_SHOWN = "simlte_st/told"
_waiting: Any = None  # the process group for waiting; made by connect()


def launched() -> tuple[int, int]:
    """Return the rank of this process and the number of processes from the launcher's environment."""
    number = int(os.environ.get("WORLD_SIZE", "1"))
    return (int(os.environ.get("RANK", "0")) if number > 1 else 0), number


def connected() -> bool:
    """Return whether there is a process group."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


def world() -> int:
    """Return the number of processes."""
    import torch.distributed as dist

    return dist.get_world_size() if connected() else launched()[1]


def rank() -> int:
    """Return the number of this process, from 0."""
    import torch.distributed as dist

    return dist.get_rank() if connected() else launched()[0]


def is_main() -> bool:
    """Return whether this is the process of rank 0."""
    return rank() == 0


def choose_device(device: str | None) -> str | None:
    """Return the device of this process: a GPU of its own, or the CPU for all; one process keeps what it was given."""
    if world() == 1:
        return device
    import torch

    on_cpu = device == "cpu" or os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    if on_cpu or (device is None and not torch.cuda.is_available()):
        return "cpu"
    if device not in (None, "cuda"):
        raise ConfigurationError(
            f"device={device!r}: each of several processes uses a GPU of its own. Leave it out, or use device='cpu'."
        )
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"


def connect(device: str | None) -> None:
    """Connect the processes, if there are several and they are not connected, and silence all but the main one."""
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
    # What the libraries call in each other.
    warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
    warnings.filterwarnings("ignore", r"torch\.distributed\.nn\.functional\.all_gather is deprecated", FutureWarning)
    if not connected():
        if device != "cpu":
            torch.cuda.set_device(device)
        dist.init_process_group("gloo" if device == "cpu" else "cpu:gloo,cuda:nccl")
    # Older versions of transformers load the optimizer of a checkpoint to "cpu:0", which torch calls "cpu" alone.
    torch.serialization.register_package(15, lambda storage: None, _from_numbered_cpu)
    _waiting = dist.new_group(backend="gloo", timeout=PATIENCE)


def _from_numbered_cpu(storage: Any, location: str) -> Any:
    return storage if location.startswith("cpu:") else None


def disconnect() -> None:
    """Disconnect the processes at the end of a successful program; NCCL warns otherwise."""
    global _waiting
    if _waiting is not None:
        import torch.distributed as dist

        dist.destroy_process_group()
        _waiting = None


def _from_main(value: Any = None) -> Any:
    import torch.distributed as dist

    box = [value]
    dist.broadcast_object_list(box, src=0, group=_waiting)
    return box[0]


def on_main(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process while the others wait; they get None, and its errors."""
    return _in_main(stage, send=False)


def from_main(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process while the others wait; they get its value, or its errors."""
    return _in_main(stage, send=True)


def main_first(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process and then in the others, which find what it wrote."""
    first = on_main(stage)

    @functools.wraps(stage)
    def run_stage(*arguments: P.args, **options: P.kwargs) -> R:
        value = first(*arguments, **options)
        return value if is_main() else stage(*arguments, **options)

    return run_stage


def _in_main(stage: Callable[P, R], *, send: bool) -> Callable[P, R]:
    @functools.wraps(stage)
    def run_stage(*arguments: P.args, **options: P.kwargs) -> R:
        if world() == 1:
            return stage(*arguments, **options)
        if is_main():
            try:
                value = stage(*arguments, **options)
            except BaseException as error:
                with suppress(RuntimeError):  # another process is gone, but this error came first
                    _from_main((_portable(error), None))
                raise
            _from_main((None, value if send else None))
            return value
        raised, value = _from_main()
        if raised is not None:
            raised.of_main = True  # which shows it
            let_main_finish()
            raise raised
        return value

    return run_stage


def let_main_finish() -> None:
    """Wait, in the other processes, until the main one has shown why all of them end."""
    if not is_main():
        time.sleep(HEAD_START)


def _portable(error: BaseException) -> BaseException:
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    return copy if isinstance(copy, BaseException) else RuntimeError(f"{type(error).__name__}: {error}")


def largest(number: int) -> int:
    """Return the largest of the numbers of all processes; a collective call."""
    if world() == 1:
        return number
    import torch
    import torch.distributed as dist

    value = torch.tensor(number)
    dist.all_reduce(value, op=dist.ReduceOp.MAX, group=_waiting)
    return int(value)


def barrier() -> None:
    """Wait for all processes."""
    largest(0)


def mean_over_processes(number: float, device: Any) -> float:
    """Return the mean of a number over the processes; a collective call."""
    if not connected() or world() == 1:
        return number
    import torch
    import torch.distributed as dist

    value = torch.tensor(float(number), device=device, dtype=torch.float64 if device.type != "mps" else None)
    dist.all_reduce(value)
    return float(value) / world()


@contextmanager
def together() -> Iterator[None]:
    """Raise :class:`ProcessLostError` for torch's errors about a lost process; let the main process end first."""
    try:
        yield
    except TrainingInterrupted:
        let_main_finish()
        raise
    except RuntimeError as error:
        if world() == 1 or not _is_of_connection(error):
            raise
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher's; this process ends, but shows why
        raise ProcessLostError(
            "Another process of this run ended: it was killed, or it ran out of memory. Continue from the last "
            "checkpoint with the same settings and resume=True."
        ) from error


def _is_of_connection(error: BaseException) -> bool:
    import torch.distributed as dist

    words = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "gloo/transport")
    return isinstance(error, dist.DistError) or any(word in str(error) for word in words)


def shows(error: BaseException) -> bool:
    """Return whether this process shows an error: of several that fail together, one does."""
    if world() == 1:
        return True
    if getattr(error, "of_main", False):
        return False
    if isinstance(error, TrainingInterrupted) or not connected():
        return is_main()
    from simlte_st.compat import store_of_processes

    try:
        return bool(store_of_processes().add(_SHOWN, 1) == 1)
    except RuntimeError:  # it ended with the process that kept it
        return True
