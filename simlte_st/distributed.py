"""Coordinate the processes that train one model, started by ``torchrun`` or ``accelerate launch``.

Decorators divide the stages of a run among the processes. With :func:`on_main` and :func:`from_main`, the main process
(rank 0) runs the stage while the others wait; with :func:`main_first`, the other processes run it afterwards. An error
in the main process is raised in every process. In a single process, the decorators have no effect.
"""

from __future__ import annotations

import functools
import os
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from simlte_st.errors import ConfigurationError, TrainingInterrupted

if TYPE_CHECKING:
    import torch.distributed

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE = timedelta(days=30)
"""Timeout for processes waiting for the main process, which alone segments the corpus and evaluates."""

HEAD_START = 3.0
"""Seconds to let the main process print a shared error; the launcher stops all processes when one ends."""

_group: torch.distributed.ProcessGroup | None = None  # created by connect_processes(), for waiting


def launcher_rank() -> tuple[int, int]:
    """Return this process's rank and the number of processes, from the launcher's environment variables."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    return (int(os.environ.get("RANK", "0")) if processes > 1 else 0), processes


def is_connected() -> bool:
    """Return whether the process group is initialized."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


def world() -> int:
    """Return the number of processes."""
    import torch.distributed as dist

    return dist.get_world_size() if is_connected() else launcher_rank()[1]


def rank() -> int:
    """Return this process's rank, counted from 0."""
    import torch.distributed as dist

    return dist.get_rank() if is_connected() else launcher_rank()[0]


def is_main() -> bool:
    """Return whether this is the main process, rank 0."""
    return rank() == 0


def connect_processes(device: str | None) -> str | None:
    """Connect the processes, if there are several, and silence all but the main process.

    Returns:
        The device for this process: its own GPU, or the CPU if all use it. A single process keeps ``device``.
    """
    global _group
    if world() == 1:
        return device
    import logging
    import warnings

    import torch.distributed
    from accelerate import PartialState  # type: ignore[import-untyped]
    from datasets import disable_progress_bars
    from transformers.utils import logging as transformers_logging

    if device not in (None, "cpu", "cuda"):
        raise ConfigurationError(f"device={device!r}: each process uses its own GPU. Omit it, or use 'cpu'.")
    on_cpu = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes") or not torch.cuda.is_available()
    state = PartialState(cpu=device == "cpu" or (device is None and on_cpu))
    if _group is None:
        _group = torch.distributed.new_group(backend="gloo", timeout=PATIENCE)
        if not is_main():
            for library in ("simlte_st", "sentence_transformers"):
                logging.getLogger(library).setLevel(logging.CRITICAL)
            transformers_logging.set_verbosity_error()
            transformers_logging.disable_progress_bar()
            disable_progress_bars()
        # These libraries call each other's deprecated functions.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        warnings.filterwarnings("ignore", r"torch\.distributed\.nn\.functional\.all_gather is dep", FutureWarning)
        # Older versions of transformers load the optimizer to "cpu:0", but torch only accepts "cpu".
        torch.serialization.register_package(15, lambda storage: None, _from_numbered_cpu)
    return "cpu" if state.device.type == "cpu" else str(state.device)


def _from_numbered_cpu(storage: R, location: str) -> R | None:
    return storage if location.startswith("cpu:") else None


def disconnect() -> None:
    """Disconnect the processes at the end of a successful run; otherwise NCCL warns."""
    global _group
    if _group is not None:
        import torch.distributed as dist

        dist.destroy_process_group()
        _group = None


def from_main(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process while the others wait; every process returns its value or raises its error."""

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
                with suppress(RuntimeError):  # another process has ended; raise the first error instead
                    dist.broadcast_object_list([_portable(error), None], src=0, group=_group)
                raise
        dist.broadcast_object_list(box, src=0, group=_group)
        if box[0] is not None:
            box[0].of_main = True  # so that only the main process prints it
            let_main_finish()
            raise box[0]
        return cast(R, box[1])

    return run_stage


def on_main(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process while the others wait, then return None or raise its error."""

    @functools.wraps(stage)
    def run_stage(*arguments: P.args, **options: P.kwargs) -> R:
        values: list[R] = []
        from_main(lambda: values.append(stage(*arguments, **options)))()
        return values[0] if values else cast(R, None)

    return run_stage


def main_first(stage: Callable[P, R]) -> Callable[P, R]:
    """Run a stage in the main process first, then in the others, which can read the files it wrote."""

    @functools.wraps(stage)
    def run_stage(*arguments: P.args, **options: P.kwargs) -> R:
        value = on_main(stage)(*arguments, **options)
        return value if is_main() else stage(*arguments, **options)

    return run_stage


def let_main_finish() -> None:
    """Wait until the main process has printed the error that ends every process."""
    if not is_main():
        time.sleep(HEAD_START)


def _portable(error: BaseException) -> BaseException:
    try:
        return cast(BaseException, pickle.loads(pickle.dumps(error)))
    except Exception:  # some libraries raise errors that cannot be pickled
        return RuntimeError(f"{type(error).__name__}: {error}")


def max_over_processes(number: int) -> int:
    """Return the maximum of a number over all processes. Each must call this function, and waits for the others."""
    if world() == 1:
        return number
    import torch.distributed

    value = torch.tensor(number)
    torch.distributed.all_reduce(value, op=torch.distributed.ReduceOp.MAX, group=_group)
    return int(value)


def mean_over_processes(number: float, device: torch.device) -> float:
    """Return the mean of a number over all processes; every process must call this function."""
    if not is_connected() or world() == 1:
        return number
    import torch.distributed

    value = torch.tensor(float(number), device=device, dtype=torch.float64)
    torch.distributed.all_reduce(value)
    return float(value) / world()


def shows(error: BaseException) -> bool:
    """Return whether this process prints an error; only the main process prints an error that all processes raise."""
    return is_main() or not (isinstance(error, TrainingInterrupted) or getattr(error, "of_main", False))
