"""The first seconds of a command: what it takes to say what is wrong, and to answer a search.

    python -m benchmarks.first_seconds

CPU seconds (user and system) of a process of its own on one thread, the median of several. What is wrong is known from
arguments, files and installed packages, before torch is imported. The index is of simlte-static.
"""

from __future__ import annotations

import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.records import environment, make_parser
from simlte_st.evaluation.table import markdown_table

COMMANDS = {
    "--help": "nothing: the help",
    "train nowhere --output x": "no such source",
    "train texts --output texts": "the output holds the documents",
    "train texts --output x --base nomodel": "no such model",
    "train texts --output x --device cdua": "no such device",
    "compare texts nomodel": "no such model",
    "encode simlte-static texts --output v.csv": "not a parquet file",
    "encode owner/nomodel texts --output v.parquet": "a model that is not here, without a network",
    "index nomodel texts --output i": "no such model",
    "explore simlte-static nowhere --output c.html": "no such source",
    "evaluate nomodel --data texts": "no such model",
    "dedupe nowhere --output k.jsonl": "no such source",
    "convert nomodel --output c": "no such model",
    "export nomodel --output c": "no such model",
    "serve nowhere": "no such index",
    "search nowhere words": "no such index",
    'search ix words --where "bad ="': "a filter that is none",
    "search ix floods --mode text": "nothing: a search by words",
    "search ix floods": "nothing: a search by vectors and words",
}
"""Commands, and what is wrong with them."""


def cpu_seconds(command: Sequence[str], folder: Path) -> float:
    """Return the CPU seconds of a command in a process of its own."""
    own = {"SIMLTE_ST_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([sys.executable, "-m", "simlte_st", *command], cwd=folder, env={**os.environ, **own}, **quiet)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(argv: Sequence[str] | None = None, run: Callable[[Sequence[str], Path], float] = cpu_seconds) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--repeats", type=int, default=3, help="of each command (default: %(default)s)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "texts").mkdir()
        for number in range(50):
            text = f"Report {number}: floods in the north, and the prices of {number * 7} towns.\n"
            (folder / "texts" / f"{number}.txt").write_text(text, encoding="utf-8")
        run(["index", "simlte-static", "texts", "--output", "ix"], folder)
        run(["search", "ix", "floods"], folder)  # reads files that no later one waits for
        seconds: dict[str, list[float]] = {command: [] for command in COMMANDS}
        for _ in range(options.repeats):
            for command, taken in seconds.items():
                taken.append(run(shlex.split(command), folder))
    pages.write_results("first_seconds", {"seconds": seconds, "environment": environment()}, options.output)


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    rows = [
        [f"`simlte {command}`", COMMANDS[command], f"{statistics.median(taken):.2f}"]
        for command, taken in record["seconds"].items()
    ]
    return pages.document(
        "# The first seconds",
        pages.explanation(__doc__),
        markdown_table(["command", "what is wrong", "CPU seconds"], rows),
        machines=[record["environment"]],
        command="python -m benchmarks.first_seconds",
    )


if __name__ == "__main__":
    main()
