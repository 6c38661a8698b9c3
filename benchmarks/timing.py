"""Timing side by side, where what is compared takes turns, so that a busy moment falls on both; steps and memory."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.util import batch_to_device

CHECKOUT = Path(__file__).parents[1]

Seconds = list[float]
"""Of each turn."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Switch PyTorch to one CPU thread, which makes times comparable on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(
    jobs: Mapping[str, Callable[[], object]],
    repeats: int,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Seconds]:
    """Time jobs in turns, after one turn that is not counted."""
    seconds: dict[str, Seconds] = {name: [] for name in jobs}
    gc.collect()
    gc.disable()
    try:
        for turn in range(repeats + 1):
            for name, job in jobs.items():
                _wait(device)
                began = clock()
                job()
                _wait(device)
                if turn:
                    seconds[name].append(clock() - began)
    finally:
        gc.enable()
    return seconds


def ratio(over: Seconds, under: Seconds) -> float:
    """Return the ratio of two medians."""
    return statistics.median(over) / statistics.median(under)


def spread(over: Seconds, under: Seconds) -> tuple[float, float]:
    """Return the smallest and the largest ratio of one turn."""
    ratios = [first / second for first, second in zip(over, under, strict=True)]
    return min(ratios), max(ratios)


@contextmanager
def looked_at(look: Callable[[], object], every: float) -> Iterator[None]:
    """Call ``look`` again and again while the block runs, ``every`` so many seconds, in a thread beside it."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every):
            look()

    watcher = threading.Thread(target=run)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def matrix_rate(dtype: torch.dtype, device: str, repeats: int) -> float:
    """Measure the floating-point operations a second of a large matrix product: the best of some turns."""
    size = 8192 if device == "cuda" else 2048
    left, right = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))
    seconds = side_by_side({"product": lambda: left @ right}, repeats, device)["product"]
    return 2 * size**3 / min(seconds)


class TrainingStep:
    """Forward, backward and optimizer on a batch of columns, on the device of the model."""

    def __init__(self, model: torch.nn.Module, loss: Callable[..., Any], bf16: bool = False) -> None:
        self.loss, self.bf16 = loss, bf16
        self.device = next(model.parameters()).device
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
        for parameter in model.parameters():  # so that the optimizer's state is there before anything is measured
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def __call__(self, columns: list[dict[str, Any]]) -> None:
        """Train on a batch."""
        columns = [batch_to_device(dict(column), self.device) for column in columns]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            value = self.loss(columns, None)
        (torch.stack(list(value.values())).sum() if isinstance(value, dict) else value).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        _wait(self.device.type)


def columns_of(features: Mapping[str, Any], names: tuple[str, ...] = ("anchor", "positive")) -> list[dict[str, Any]]:
    """Part a batch into its columns, as the Trainer does."""
    return [
        {key.removeprefix(f"{name}_"): value for key, value in features.items() if key.startswith(f"{name}_")}
        for name in names
    ]


def resident(peak: bool = False, device: str = "cpu") -> int:
    """Read the memory that this process holds, or the most that it held, in bytes: of the machine (Linux), or a GPU."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() if peak else torch.cuda.memory_allocated()
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def own_process(command: Sequence[str]) -> Any:
    """Run ``python -m`` with a benchmark's own arguments, from any folder; give the JSON of the last line it prints."""
    path = os.pathsep.join([str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, "-m", *command],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return json.loads(run.stdout.splitlines()[-1])


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
