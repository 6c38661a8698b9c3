r"""What Ray costs on one machine: texts a second and CPU time of its engine against the local one, one thread each.

    python -m benchmarks.encode_engines SOURCE

Both make the same part files, in turns. What is timed lies between the first and the last part of a run: Ray takes some
seconds to start a process and import torch in it, once, which is told by itself. CPU time is that of all processes: the
actor, the reader and Ray's own. Results go to ``results/encode_engines.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import psutil
import pyarrow.parquet as pq
import torch

from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import looked_at, one_thread
from simlte_st.data import read_documents
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.config import EngineConfig
from simlte_st.models.encode import make_parts
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.parts import DocumentParts, PartEncoder
from simlte_st.models.parts_folder import part_files

Engine = Literal["local", "ray"]

ENGINES: tuple[Engine, ...] = ("local", "ray")


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("source", metavar="SOURCE", help="documents")
    parser.add_argument("--model", default=PACKAGED_BASE, metavar="NAME", help="default: %(default)s")
    parser.add_argument("--limit", type=int, default=600, metavar="N", help="documents (default: %(default)s)")
    parser.add_argument("--part-size", type=int, default=50, metavar="N", help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="turns (default: %(default)s)")
    options = parser.parse_args(arguments)
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        with one_thread():
            encoder = PartEncoder(load_model(options.model, device="cpu", dtype=torch.float32).model)
            turns: list[dict[Engine, dict[str, Any]]] = [
                {engine: run(engine, encoder, options) for engine in ENGINES} for _ in range(options.repeats)
            ]
    finally:
        ray.shutdown()
    write_results("encode_engines", result(turns, options), options.output)


def run(engine: Engine, encoder: PartEncoder, options: argparse.Namespace) -> dict[str, Any]:
    """Encode once; give the rates between the first and the last part, and the vectors."""
    with TemporaryDirectory() as name:
        folder, usage = Path(name), _Usage()
        parts = DocumentParts(read_documents(options.source, limit=options.limit), folder, options.part_size)
        began = time.time()
        usage.look()
        with looked_at(usage.look, every=1):
            config = EngineConfig(engine=engine, actors=1 if engine == "ray" else None)
            make_parts(parts, encoder, config, progress=False)
        usage.look()
        tables = [pq.read_table(path) for path in part_files(folder)]
        ends = sorted(
            (path.stat().st_mtime, len(table)) for path, table in zip(part_files(folder), tables, strict=True)
        )
    texts, first, last = sum(size for _, size in ends[1:]), ends[0][0], ends[-1][0]
    return {
        "texts": texts,
        "wall": last - first,
        "cpu": usage.between(first, last),
        "until_first_part": first - began,
        "load": os.getloadavg()[0],
        "vectors": np.concatenate([table["vector"].combine_chunks().flatten().to_numpy() for table in tables]),
    }


class _Usage:
    """Samples of the CPU seconds of this process and all below it."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[int, float], float] = {}
        self._samples: list[tuple[float, float]] = []

    def look(self) -> None:
        """Take one."""
        own = psutil.Process(os.getpid())
        for process in (own, *own.children(recursive=True)):
            try:
                used = process.cpu_times()
                self._seconds[process.pid, process.create_time()] = used.user + used.system
            except psutil.Error:  # it has just ended; what it had used stays counted
                continue
        self._samples.append((time.time(), sum(self._seconds.values())))

    def between(self, first: float, last: float) -> float:
        """Return the CPU seconds between two times."""
        times, seconds = zip(*self._samples, strict=True)
        begin, end = np.interp([first, last], times, seconds)
        return float(end - begin)


def result(turns: list[dict[Engine, dict[str, Any]]], options: argparse.Namespace) -> dict[str, Any]:
    """Return what is recorded."""
    different = max(float(np.abs(turn["local"]["vectors"] - turn["ray"]["vectors"]).max()) for turn in turns)
    record: dict[str, Any] = {
        "model": options.model,
        "documents": options.limit,
        "part_size": options.part_size,
        "largest_difference": different,
        "turns": [
            {name: {k: v for k, v in one.items() if k != "vectors"} for name, one in turn.items()} for turn in turns
        ],
        "environment": environment(),
    }
    return record | {f"ray_to_local_{clock}": statistics.median(rates(record, clock)[1]) for clock in ("wall", "cpu")}


def rates(record: dict[str, Any], clock: str) -> tuple[list[list[float]], list[float]]:
    """Return the texts a second of each engine, turn by turn, and Ray's over local ones, ascending."""
    found = [[turn[name]["texts"] / turn[name][clock] for turn in record["turns"]] for name in ENGINES]
    return found, sorted(ray / local for local, ray in zip(*found, strict=True))


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    rows, turns, different = [], record["turns"], record["largest_difference"]
    for clock, called in (("wall", "the clock"), ("cpu", "CPU")):
        by_engine, ratios = rates(record, clock)
        medians = [f"{statistics.median(values):.1f}" for values in by_engine]
        ratio = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        rows.append([f"texts a second of {called}", *medians, ratio])
    load = statistics.median(one["load"] for turn in turns for one in turn.values())
    start = statistics.median(turn["ray"]["until_first_part"] - turn["local"]["until_first_part"] for turn in turns)
    return document(
        "# Encoding by Ray on one machine",
        f"`--engine ray` with one actor against the local engine, one thread each, in {len(turns)} turns: "
        f"{turns[0]['local']['texts']} texts in parts of {record['part_size']}, `{record['model']}`. Medians; the "
        "ratio is that of a turn, with the smallest and the largest. CPU is that of all processes, Ray's own included. "
        f"{load:.0f} processes wanted the {record['environment']['cores']} cores meanwhile, other work included; where "
        "they are more than the cores, the clock tells who got them, and CPU tells what Ray costs.",
        markdown_table(["", "local", "ray", "ray / local"], rows),
        f"Ray's first part comes {start:.0f} seconds later: a process starts and imports torch. Vectors "
        f"{f'differ by {different:.0e} at most' if different else 'are the same to the bit'}.",
        machines=[record["environment"]],
        command=f"python -m benchmarks.encode_engines SOURCE --limit {record['documents']} "
        f"--part-size {record['part_size']}",
    )


if __name__ == "__main__":
    main()
