"""The numbers of a benchmark and their environment, as written by all benchmarks."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from simlte_st.evaluation import bootstrap_interval
from simlte_st.models.device import cpu_bf16

RESULTS = Path(__file__).parent / "results"
"""Where results are kept."""


TFIDF_INVERSE_L2 = 100.0
"""``C`` of the logistic regression on TF-IDF vectors, in benchmarks that do not choose it.

scikit-learn's 1 is too small for vectors of length one with thousands of columns where classes are uneven: it learns
the frequent classes only. On 1,000 arXiv abstracts in 20 classes macro-F1 is 14 with 1, 41 with 10 and 44 with 100.
With five examples a class it makes no difference.
"""


OPTIONS: dict[str, dict[str, Any]] = {
    "--shared": {"type": Path, "required": True, "metavar": "FOLDER", "help": "folder of the data sets"},
    "--output": {"type": Path, "default": RESULTS, "metavar": "FOLDER", "help": "folder (default: %(default)s)"},
    "--results": {"type": Path, "default": RESULTS, "help": argparse.SUPPRESS},
    # Left to themselves some machines train in bfloat16, and others not.
    "--bf16": {
        "action": argparse.BooleanOptionalAction,
        "default": False,
        "help": "compute in bfloat16 (default: float32)",
    },
}
"""Options that several benchmarks have."""


def make_parser(doc: str | None, *names: str) -> argparse.ArgumentParser:
    """Return a parser whose help is a benchmark's docstring, with some of :data:`OPTIONS`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, *names)
    return parser


def add_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, *names: str, **changed: Any) -> None:
    """Add some of :data:`OPTIONS`, with changes."""
    for name in names:
        parser.add_argument(name, **{**OPTIONS[name], **changed})


def dtype_of(bf16: bool) -> torch.dtype:
    """Return the type that ``--bf16`` or its absence asks for."""
    return torch.bfloat16 if bf16 else torch.float32


def environment(dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Describe versions and machine, the type that was computed in, and whether the CPU has bfloat16 in hardware."""
    packages = ("torch", "transformers", "sentence-transformers", "datasets", "nltk", "scikit-learn")
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else _processor()
    return {
        "device": device,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "dtype": str(dtype).removeprefix("torch."),
        "cpu_bf16": " ".join(cpu_bf16()) or "no",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def environments(cells: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the machines and versions that cells come from, each once; see :class:`benchmarks.grid.work.Work`."""
    found: list[dict[str, Any]] = []
    for cell in cells:
        if cell["environment"] not in found:
            found.append(cell["environment"])
    return found


def environment_lines(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Write machines and versions as lines of a list."""
    return ["- " + ", ".join(f"{name} {value}" for name, value in each.items()) for each in found]


def difference(values: np.ndarray) -> str:
    """Write the mean of paired differences with its bootstrap interval."""
    low, high = bootstrap_interval(values)
    return f"{values.mean():+.1f} [{low:+.1f}, {high:+.1f}]"


def with_interval(values: Mapping[str, float], name: str, factor: float = 100.0) -> str:
    """Write a number and the ends of its interval, in percent if nothing else is said."""
    value, low, high = (factor * values[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def mean_deviation(
    values: Sequence[float] | np.ndarray, digits: int = 1, factor: float = 100.0, sign: Literal["-", "+"] = "-"
) -> str:
    """Write mean and deviation, in percent if nothing else is said, the sign always (``"+"``) or only where negative.

    One value has no deviation.
    """
    numbers = factor * np.asarray(values, dtype=float)
    text = f"{numbers.mean():{sign}.{digits}f}"
    return f"{text} ± {numbers.std(ddof=1):.{digits}f}" if numbers.size > 1 else text


def rounded(value: Any) -> Any:
    """Round all numbers in JSON values to five places: there are tens of thousands of them."""
    if isinstance(value, Mapping):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(part) for part in value]
    return round(float(value), 5) if isinstance(value, (float, np.floating)) else value
