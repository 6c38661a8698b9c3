"""The process's random generators, put back after what seeds them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def kept_generators() -> Iterator[None]:
    """Put the global generators of Python, NumPy and torch back when the block ends.

    mteb seeds all of them when it is imported, when a task is made and when one is evaluated: a training around it
    would go on with other numbers. A CUDA device's generator is put back where CUDA is in use already.
    """
    python, numpy = random.getstate(), np.random.get_state()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
