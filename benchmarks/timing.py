"""Side-by-side timing in turns, so that load on the machine affects all sides; memory, and runs in new processes."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

CHECKOUT = Path(__file__).parents[1]

Seconds = list[float]
"""Seconds of each turn."""


def side_by_side(
    jobs: Mapping[str, Callable[[], object]],
    repeats: int,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Seconds]:
    """Time jobs in turns, after one warm-up turn."""
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


def ratio_range(over: Seconds, under: Seconds) -> tuple[float, float]:
    """Return the lowest and the highest ratio of a turn."""
    ratios = [first / second for first, second in zip(over, under, strict=True)]
    return min(ratios), max(ratios)


def process_memory(peak: bool = False, device: str = "cpu") -> int:
    """Return the current or peak memory of this process in bytes, on the host (Linux only) or a GPU."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() if peak else torch.cuda.memory_allocated()
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def checkout_environment() -> dict[str, str]:
    """Return the environment variables of a process that imports this checkout from any folder."""
    path = os.pathsep.join([str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def run_module(name: str, **options: Any) -> Any:
    """Run ``python -m name`` with options in a new process, and parse the last printed line as JSON."""
    words = [_option_word(option.replace("_", "-"), value) for option, value in options.items()]
    command = [sys.executable, "-m", name, *words]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=checkout_environment())
    return json.loads(process.stdout.splitlines()[-1])


def _option_word(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name}={value}"


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
