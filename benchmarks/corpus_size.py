"""Time, memory and disk space of each command on 100,000 documents.

    python -m benchmarks.corpus_size --data enwiki2014.parquet

Documents are passages of 250 words. Each command runs in its own process on one core. Seconds are CPU time, so other
work on the machine matters little; memory is the peak, and disk the size of the output.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import checkout_environment
from simlte_st.data import read_documents

WORDS = 250
MODEL = "simlte-static"
COMMANDS: dict[str, tuple[str, ...]] = {
    "dedupe": ("dedupe", "documents.jsonl", "--output", "kept.jsonl"),
    "encode": ("encode", MODEL, "documents.jsonl", "--output", "vectors.parquet"),
    "index": ("index", MODEL, "documents.jsonl", "--output", "documents.index"),
    "search": ("search", "documents.index", "floods in the north", "--explain"),
    "train": ("train", "documents.jsonl", "--static", "--output", "model"),
    "explore": ("explore", "documents.index", "--output", "documents.html"),
}
"""Arguments of each command."""

LAUNCHER = """
import json, resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(json.dumps([status, *resource.getrusage(resource.RUSAGE_CHILDREN)[:3]]))
"""
"""Runs a command from a small process, because Linux includes the memory of the starting process in the peak."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--data", required=True, help="documents, in any form accepted by simlte")
    parser.add_argument("--documents", type=int, default=100_000)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "documents.jsonl").open("w", encoding="utf-8") as lines:
            lengths = [lines.write(json.dumps(row) + "\n") for row in islice(passages(options), options.documents)]
        rows = {}
        for command, words in COMMANDS.items():
            rows[command] = run_command(words, folder)
            print(command, rows[command], flush=True)
    record = {"documents": len(lengths), "bytes": sum(lengths), "data": Path(options.data).name, "rows": rows}
    write_results("corpus_size", {**record, "environment": environment()}, options.output)


def passages(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    """Split the source's documents into passages of :data:`WORDS` words; the last one may be longer."""
    for source in read_documents(options.data):
        words = source.text.split(" ")
        ends = [*range(WORDS, len(words) - WORDS + 1, WORDS), len(words)]
        for number, (start, end) in enumerate(pairwise([0, *ends])):
            yield {"id": f"{source.id}-{number}", "text": " ".join(words[start:end])}


def run_command(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run a command in a folder, on one core."""
    settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    quiet = ["--quiet"] * (command[0] != "search")
    words = [sys.executable, "-c", LAUNCHER, sys.executable, "-m", "simlte_st", *command, *quiet]
    before, environ = folder_size(folder), {**checkout_environment(), **settings}
    launcher = subprocess.run(words, cwd=folder, env=environ, stdout=subprocess.PIPE, check=True)
    status, user, system, memory = json.loads(launcher.stdout)
    if status:
        raise SystemExit(f"{' '.join(command)} exited with status {status}.")
    return {"seconds": user + system, "memory": memory * 1024, "disk": folder_size(folder) - before}


def folder_size(folder: Path) -> int:
    """Return the total size of all files in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    return document(
        f"# A corpus of {record['documents']:,} documents",
        explanation(__doc__),
        f"The documents are {record['bytes'] / 1e6:,.0f} MB of JSON lines.",
        table(
            {
                "command": f"`{shlex.join(['simlte', *COMMANDS[name]])}`",
                "seconds": f"{row['seconds']:,.0f}",
                "GB of memory": f"{row['memory'] / 1e9:.1f}",
                "MB on disk": f"{row['disk'] / 1e6:,.0f}",
            }
            for name, row in record["rows"].items()
        ),
        machines=[record["environment"]],
        command=f"python -m benchmarks.corpus_size --data {record['data']} --documents {record['documents']}",
    )


if __name__ == "__main__":
    main()
