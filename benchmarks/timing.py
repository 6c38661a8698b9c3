"""Timing side by side: what is compared takes turns, so that a busy moment of the machine falls on both."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

import torch


def side_by_side(jobs: Mapping[str, Callable[[], object]], repeats: int, device: str = "cpu") -> dict[str, list[float]]:
    """Time jobs in turns, after one turn that is not counted.

    Args:
        jobs: What to time, by name.
        repeats: Turns.
        device: ``"cuda"`` waits for the card before each look at the clock.

    Returns:
        Seconds of each turn, by name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    gc.collect()
    gc.disable()
    try:
        for turn in range(repeats + 1):
            for name, job in jobs.items():
                _wait(device)
                began = time.perf_counter()
                job()
                _wait(device)
                if turn:
                    seconds[name].append(time.perf_counter() - began)
    finally:
        gc.enable()
    return seconds


def ratio(over: list[float], under: list[float]) -> float:
    """Give the ratio of two medians."""
    return statistics.median(over) / statistics.median(under)


def spread(over: list[float], under: list[float]) -> tuple[float, float]:
    """Give the smallest and the largest ratio of one turn."""
    ratios = [first / second for first, second in zip(over, under, strict=True)]
    return min(ratios), max(ratios)


def matrix_rate(dtype: torch.dtype, device: str, repeats: int, size: int | None = None) -> float:
    """Measure the floating-point operations a second of a large matrix product: the best of some turns."""
    size = size or (8192 if device == "cuda" else 2048)
    left, right = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))
    seconds = side_by_side({"product": lambda: left @ right}, repeats, device)["product"]
    return 2 * size**3 / min(seconds)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
