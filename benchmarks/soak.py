"""Does it hold out? A training that is killed again and again, and the memory of encoding without end.

    python -m benchmarks.soak --kills 20 --minutes 60

1. ``simlte train`` runs once undisturbed, and then as processes that are killed (SIGKILL) at moments drawn from the
   seed and resumed, until there were so many kills; the last process is left alone. Dropout is on, and the masked
   language model has its head. In the end weights are compared byte by byte, and names beside the output. Where a
   process ends before its kill, its model is compared and the next one begins anew.
2. The packaged base encodes a stream of texts of mixed lengths into vectors on disk, on one thread, for so many
   minutes; meanwhile the memory that the process holds is looked at every few seconds.

The documents are the packaged BBC News.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

from benchmarks.datasets.bbc import packaged_corpus_path
from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import looked_at, one_thread, resident
from simlte_st.data import read_documents
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import SETTINGS_FILE
from simlte_st.models.base import load_model
from simlte_st.models.encode import encode_documents
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path
from simlte_st.training.callbacks import last_complete_checkpoint

SETTLED = 0.2
"""Share of the minutes after which memory should not grow any more: by then allocators have what they need."""
MEBIBYTE = 1 << 20


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=120, help="of the training (default: %(default)s)")
    parser.add_argument("--documents", type=int, default=300, help="that it has (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60.0, help="of encoding (default: %(default)s)")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between looks (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        killed = kill_and_resume(Path(folder), options)
        encoded = encode_for(options.minutes, options.every, Path(folder) / "vectors.parquet", options.seed)
        settings = {name: value for name, value in vars(options).items() if name != "output"}
        record = {"options": settings, "environment": environment(), "killed": killed, "encoded": encoded}
    slopes = [growth(encoded["samples"], column)[0] for column in (1, 2)]
    encoded["mebibytes_an_hour"] = dict(zip(("resident", "in use"), slopes, strict=True))
    write_results("soak", record, options.output)


# A training that is killed


def make_base(path: Path) -> None:
    """Write a small BERT with the packaged base's vocabulary, drawn at random."""
    tokenizer = AutoTokenizer.from_pretrained(packaged_base_path())
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **size)).save_pretrained(path)
    tokenizer.save_pretrained(path)


def start(folder: Path, options: argparse.Namespace, *, resume: bool) -> subprocess.Popen[bytes]:
    """Begin the training, or go on with it, as a process."""
    command = [
        sys.executable, "-m", "simlte_st", "train", str(packaged_corpus_path()), "--encoding", "latin-1",
        "--limit", str(options.documents), "--base", str(folder / "base"), "--output", str(folder / "run" / "model"),
        "--preset", "docsplit-bert", "--max-view-length", "48", "--batch-size", "8", "--max-steps", str(options.steps),
        "--save-steps", "2", "--keep", "trained", "--no-bf16", "--seed", str(options.seed), "--quiet",
        *(["--resume"] if resume else []),
    ]  # fmt: skip
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, env={**os.environ, **threads}, stdout=log, stderr=log)


def reached(run: Path) -> str:
    """Return how far a run has come: its newest complete checkpoint, or what comes before one."""
    if not (run / SETTINGS_FILE).exists():
        return "nothing written" if not run.exists() else "begun"
    checkpoint = last_complete_checkpoint(run / "checkpoints")
    if checkpoint is not None:
        return f"step {checkpoint.name.rsplit('-', 1)[1]}"
    return "documents read" if (run / "corpus" / "corpus.json").exists() else "settings written"


def kill_and_resume(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train once undisturbed and then with kills; compare."""
    make_base(folder / "base")
    model, run = folder / "run" / "model", folder / "run" / "model.run"
    began = time.monotonic()
    process = start(folder, options, resume=False)
    first: float | None = None
    while process.poll() is None:
        if first is None and reached(run).startswith("step"):
            first = time.monotonic() - began
        time.sleep(0.01)
    finish(process, folder)
    whole = time.monotonic() - began
    if first is None:
        raise SystemExit("The run ended before a checkpoint was seen: use more --steps.")
    expected, names = (model / "model.safetensors").read_bytes(), sorted(os.listdir(folder / "run"))
    draw = random.Random(options.seed)
    # Late enough to come past the first checkpoint and, all together, about to the end of the training.
    latest = first + 2 * (whole - first) / max(1, options.kills)
    kills: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    clear(folder / "run")
    done = False
    while not done:
        done = len(kills) == options.kills
        process = start(folder, options, resume=(run / SETTINGS_FILE).exists())
        moment = None if done else draw.uniform(0, latest)
        try:
            process.wait(moment)
            finish(process, folder)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills.append({"seconds": moment, "reached": "the model" if model.exists() else reached(run)})
            print(f"kill {len(kills)} after {moment:.1f} s: {kills[-1]['reached']}", flush=True)
            if run.exists() or not model.exists():
                continue
        same = (model / "model.safetensors").read_bytes() == expected
        left = sorted(set(os.listdir(folder / "run")) - set(names))
        runs.append({"kills": len(kills) - sum(each["kills"] for each in runs), "same": same, "left": left})
        print(f"finished after {runs[-1]['kills']} kills: same bytes {same}, left beside it {left}", flush=True)
        clear(folder / "run")
    return {"first_checkpoint_seconds": first, "undisturbed_seconds": whole, "kills": kills, "runs": runs}


def finish(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Check the end of a process; what it complained about is an error."""
    if process.returncode:
        told = (folder / "log").read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"A run ended with status {process.returncode}:\n{told}")


def clear(folder: Path) -> None:
    """Move a finished run out of the way: what it left is not looked at by the next one."""
    folder.rename(folder.with_name(f"{folder.name}-{len(os.listdir(folder.parent))}"))
    folder.mkdir()


# Encoding without end


def mixed_texts(seconds: float, seed: int) -> Iterator[str]:
    """Return articles, and pieces of all lengths of them, for so many seconds from the first on."""
    articles = [document.text for document in read_documents(packaged_corpus_path(), encoding="latin-1")]
    draw, began = random.Random(seed), time.monotonic()
    while time.monotonic() < began + seconds:
        words = draw.choice(articles).split()
        length = round(len(words) ** draw.random())  # as many of 1 to 10 words as of 10 to 100
        first = draw.randrange(len(words) - length + 1)
        yield " ".join(words[first : first + length])


def encode_for(minutes: float, every: float, output: Path, seed: int) -> dict[str, Any]:
    """Encode for so many minutes; by and by, seconds since the beginning, resident memory and what is in use of it."""
    model = load_model(PACKAGED_BASE, dtype=torch.float32).model.to("cpu")
    began = time.monotonic()
    samples: list[tuple[float, float, float]] = []

    def look() -> None:
        samples.append((time.monotonic() - began, resident() / MEBIBYTE, allocated() / MEBIBYTE))

    with looked_at(look, every):
        made = encode_documents(
            model, mixed_texts(60 * minutes, seed), output, settings={"model": PACKAGED_BASE}, part_size=256
        )
    return {
        "documents": made.documents,
        "tokens": made.truncation.tokens,
        "seconds": time.monotonic() - began,
        "samples": [[round(value, 2) for value in sample] for sample in samples],
    }


class _Mallinfo2(ctypes.Structure):
    """What glibc tells of its heaps; see mallinfo(3)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
                     "keepcost")
    )  # fmt: skip


def allocated() -> int:
    """Read what the C library has given out and not got back, in bytes (glibc): without what it keeps for later."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    found = mallinfo2()
    return int(found.uordblks + found.hblkhd)


def growth(samples: Sequence[Sequence[float]], column: int) -> tuple[float, np.ndarray]:
    """Fit a line through a column of the settled part; give MiB an hour, and the numbers of that part."""
    values = np.asarray(samples, dtype=float)
    seconds, sizes = values[:, 0], values[:, column]
    settled = seconds >= SETTLED * seconds[-1]
    slope, _ = np.polyfit(seconds[settled], sizes[settled], 1)
    return float(3600 * slope), sizes[settled]


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    options, killed, encoded = record["options"], record["killed"], record["encoded"]
    (slope, sizes), (used_slope, used) = (growth(encoded["samples"], column) for column in (1, 2))
    kills, runs = killed["kills"], killed["runs"]
    same, clean = sum(each["same"] for each in runs), sum(not each["left"] for each in runs)
    longest = max(each["kills"] for each in runs)
    return document(
        "# Killed again and again, and encoding without end",
        "## A training that is killed",
        f"A small BERT, {options['steps']} steps of 8 of {options['documents']} articles of BBC News, a checkpoint "
        "every second step, dropout and an MLM head. Undisturbed it took "
        f"{killed['undisturbed_seconds']:.0f} s, of which {killed['first_checkpoint_seconds']:.0f} s to the first "
        f"checkpoint. Then it was killed (SIGKILL) {len(kills)} times, up to {longest} in a row, and resumed each "
        f"time. Finished runs: {len(runs)}; with the weights of the undisturbed one, byte for byte: {same}; with "
        f"nothing left beside the output: {clean}.",
        markdown_table(
            ["kill", "seconds after the start", "what was on the disk"],
            [[str(i), f"{kill['seconds']:.1f}", kill["reached"]] for i, kill in enumerate(kills, start=1)],
        ),
        "## Memory of encoding",
        f"{PACKAGED_BASE}, {encoded['documents']:,} texts of one word to an article ({encoded['tokens']:,} tokens), "
        f"one thread, {encoded['seconds'] / 60:.0f} minutes, streamed into a file of vectors. After the first "
        f"{SETTLED:.0%} of the time the process held {np.median(sizes):.0f} MiB (median; {sizes.min():.0f} to "
        f"{sizes.max():.0f}), and of these {np.median(used):.0f} MiB were in use (median; {used.min():.0f} to "
        f"{used.max():.0f}); the others are code, and what is free and kept for what is asked for next. A line through "
        f"what was held grows by {slope:+.0f} MiB an hour, through what was in use by {used_slope:+.0f}; the reader "
        f"keeps about {encoded['documents'] / encoded['seconds'] * 0.36:.0f} MiB an hour, so that no two documents "
        "have the same id.",
        markdown_table(
            ["minutes", "MiB held", "MiB in use"],
            [[f"{row[0] / 60:.1f}", f"{row[1]:.0f}", f"{row[2]:.0f}"] for row in _spread_out(encoded["samples"], 10)],
        ),
        machines=[record["environment"]],
        command=f"python -m benchmarks.soak --kills {options['kills']} --minutes {options['minutes']:g}",
    )


def _spread_out(rows: Sequence[Any], number: int) -> list[Any]:
    """Take so many rows, the first and the last among them."""
    return [rows[round(place)] for place in np.linspace(0, len(rows) - 1, min(number, len(rows)))]


if __name__ == "__main__":
    main()
