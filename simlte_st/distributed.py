"""Several processes that train one model together, started by ``torchrun`` or ``accelerate launch``.

Decorators of the stages of a run say what each process does. With :func:`on_main` and :func:`from_main` the main
process, rank 0, does the work while the others wait; :func:`main_first` has them do it afterwards. An error in the main
process is raised in all. A single process runs a stage as it is.
"""

from __future__ import annotations

import functools
import os
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, cast

from simlte_st.errors import ConfigurationError, TrainingInterrupted

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE = timedelta(days=30)
"""How long a process waits for the main one, which segments a large corpus and evaluates alone."""

HEAD_START = 3.0
"""Seconds in which the main process shows an error of all before another one ends: the launcher then ends the rest."""

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


def connect(device: str | None) -> str | None:
    """Connect the processes, if there are several, and silence all but the main one.

    Returns:
        The device of this process: a GPU of its own, or the CPU for all. A single process keeps what it was given.
    """
    global _waiting
    if world() == 1:
        return device
    import logging
    import warnings

    import torch
    import torch.distributed as dist
    from accelerate import PartialState  # type: ignore[import-untyped]
    from datasets import disable_progress_bars
    from transformers.utils import logging as transformers_logging

    if device not in (None, "cpu", "cuda"):
        raise ConfigurationError(
            f"device={device!r}: each of several processes uses a GPU of its own. Leave it out, or use device='cpu'."
        )
    on_cpu = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes") or not torch.cuda.is_available()
    state = PartialState(cpu=device == "cpu" or (device is None and on_cpu))
    if _waiting is None:
        _waiting = dist.new_group(backend="gloo", timeout=PATIENCE)
        if not is_main():
            for library in ("simlte_st", "sentence_transformers"):
                logging.getLogger(library).setLevel(logging.CRITICAL)
            transformers_logging.set_verbosity_error()
            transformers_logging.disable_progress_bar()
            disable_progress_bars()
        # What the libraries call in each other.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        warnings.filterwarnings("ignore", r"torch\.distributed\.nn\.functional\.all_gather is dep", FutureWarning)
        # Older versions of transformers load the optimizer of a checkpoint to "cpu:0", which torch calls "cpu" alone.
        torch.serialization.register_package(15, lambda storage: None, _from_numbered_cpu)
    return "cpu" if state.device.type == "cpu" else str(state.device)


def _from_numbered_cpu(storage: Any, location: str) -> Any:
    return storage if location.startswith("cpu:") else None


def disconnect() -> None:
    """Disconnect the processes at the end of a successful program; NCCL warns otherwise."""
    global _waiting
    if _waiting is not None:
        import torch.distributed as dist

        dist.destroy_process_group()
        _waiting = None


def from_main(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process while the others wait; they get its value, or its errors."""

    @functools.wraps(stage)
    def run_stage(*arguments: P.args, **options: P.kwargs) -> R:
        if world() == 1:
            return stage(*arguments, **options)
        import torch.distributed as dist

        box: list[Any] = [None, None]  # an error, or a value
        if is_main():
            try:
                box[1] = stage(*arguments, **options)
            except BaseException as error:
                with suppress(RuntimeError):  # another process is gone, but this error came first
                    dist.broadcast_object_list([_portable(error), None], src=0, group=_waiting)
                raise
        dist.broadcast_object_list(box, src=0, group=_waiting)
        if box[0] is not None:
            box[0].of_main = True  # which shows it
            let_main_finish()
            raise box[0]
        return cast(R, box[1])

    return run_stage


def on_main(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process while the others wait; they get None, or its errors."""

    @functools.wraps(stage)
    def run_stage(*arguments: P.args, **options: P.kwargs) -> R:
        made: list[R] = []
        from_main(lambda: made.append(stage(*arguments, **options)))()
        return made[0] if made else cast(R, None)

    return run_stage


def main_first(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process and then in the others, which find what it wrote."""

    @functools.wraps(stage)
    def run_stage(*arguments: P.args, **options: P.kwargs) -> R:
        value = on_main(stage)(*arguments, **options)
        return value if is_main() else stage(*arguments, **options)

    return run_stage


def let_main_finish() -> None:
    """Wait, in the other processes, until the main one has shown why all of them end."""
    if not is_main():
        time.sleep(HEAD_START)


def _portable(error: BaseException) -> BaseException:
    try:
        return cast(BaseException, pickle.loads(pickle.dumps(error)))
    except Exception:  # an error of a library that cannot be pickled
        return RuntimeError(f"{type(error).__name__}: {error}")


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

    value = torch.tensor(float(number), device=device, dtype=torch.float64)
    dist.all_reduce(value)
    return float(value) / world()


def shows(error: BaseException) -> bool:
    """Return whether this process shows an error: the main process shows its own for all."""
    return is_main() or not (isinstance(error, TrainingInterrupted) or getattr(error, "of_main", False))
