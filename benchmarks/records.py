"""Options, environment and number formats of all benchmarks."""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from simlte_st.evaluation import bootstrap_interval
from simlte_st.models.device import cpu_bf16

RESULTS = Path(__file__).parent / "results"
"""Folder of the results."""


TFIDF_INVERSE_L2 = 100.0
"""``C`` of the logistic regression on TF-IDF vectors, in benchmarks without cross-validation.

scikit-learn's default of 1 is too small for unit vectors with thousands of columns: with uneven classes the regression
learns only the frequent ones. On 1,000 arXiv abstracts in 20 classes, macro-F1 is 14 with 1, 41 with 10 and 44 with
100. With five examples per class it makes no difference.
"""


OPTIONS: dict[str, dict[str, Any]] = {
    "--shared": {"type": Path, "required": True, "metavar": "FOLDER", "help": "folder of the data sets"},
    "--output": {"type": Path, "default": RESULTS, "metavar": "FOLDER", "help": "output folder (default: %(default)s)"},
    "--work": {"type": Path, "metavar": "FOLDER", "help": "folder of finished parts (default: %(default)s)"},
    "--threads": {"type": int, "default": 1, "metavar": "N", "help": "threads of PyTorch (default: %(default)s)"},
    "--results": {"type": Path, "default": RESULTS, "help": argparse.SUPPRESS},
    # Explicit, because some machines train in bfloat16 by default and others do not.
    "--bf16": {
        "action": argparse.BooleanOptionalAction,
        "default": False,
        "help": "compute in bfloat16 (default: float32)",
    },
}
"""Options shared by several benchmarks."""


def make_parser(doc: str | None, *names: str, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser with a benchmark's docstring as help, some of :data:`OPTIONS`, and other defaults."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, *names)
    parser.set_defaults(**defaults)
    return parser


def add_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, *names: str, **changed: Any) -> None:
    """Add some of :data:`OPTIONS`, with changed arguments."""
    for name in names:
        parser.add_argument(name, **{**OPTIONS[name], **changed})


def compute_dtype(bf16: bool) -> torch.dtype:
    """Return the dtype for ``--bf16`` or its absence."""
    return torch.bfloat16 if bf16 else torch.float32


def environment(dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Return versions, machine, dtype, and whether the CPU supports bfloat16 in hardware."""
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
    path = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*:(.+)", path.read_text(encoding="utf-8"), re.MULTILINE) if path.exists() else None
    return name[1].strip() if name else platform.processor() or platform.machine()


def environments(cells: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the distinct machines and versions of cells; see :class:`benchmarks.grid.work.Work`."""
    return list({str(cell["environment"]): cell["environment"] for cell in cells}.values())


def environment_lines(machines: Iterable[Mapping[str, Any]]) -> str:
    """Format machines and versions as a list."""
    return "\n".join("- " + ", ".join(f"{name} {value}" for name, value in machine.items()) for machine in machines)


def percent(value: float) -> str:
    """Format a share in percent; NaN gives an empty cell."""
    return "" if np.isnan(value) else f"{100 * value:.1f}"


def difference(values: ArrayLike) -> str:
    """Format the mean of paired differences with its bootstrap interval."""
    low, high = bootstrap_interval(values)
    return f"{np.mean(values):+.1f} [{low:+.1f}, {high:+.1f}]"


def with_interval(values: Mapping[str, float], name: str, factor: float = 100.0) -> str:
    """Format a number with its interval, by default in percent."""
    value, low, high = (factor * values[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def mean_deviation(values: ArrayLike, digits: int = 1, factor: float = 100.0, sign: Literal["-", "+"] = "-") -> str:
    """Format mean ± standard deviation, by default in percent; ``sign="+"`` also shows plus signs."""
    numbers = factor * np.asarray(values, dtype=float)
    text = f"{numbers.mean():{sign}.{digits}f}"
    return f"{text} ± {numbers.std(ddof=1):.{digits}f}" if numbers.size > 1 else text


def round_floats(value: Any) -> Any:
    """Round all floats in JSON values to five places, to keep large files small."""
    if isinstance(value, Mapping):
        return {key: round_floats(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [round_floats(part) for part in value]
    return round(float(value), 5) if isinstance(value, (float, np.floating)) else value
