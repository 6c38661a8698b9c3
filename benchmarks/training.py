"""The training step against what a user would put together today, side by side.

    python -m benchmarks.training --data 20newsgroups.parquet enwiki2014.parquet

All sides train all-MiniLM-L6-v2 on the same documents with the papers' loss: contrastive + 0.1 MLM, AdamW, on a GPU if
there is one.
Views are drawn and tokenized in the loop on all of them.

obvious: stock ``MultipleNegativesRankingLoss``, ``AutoModelForMaskedLM`` with all logits on masked copies of all
    views, random batches, the checkpoint's dropout.
obvious, no dropout: the same without dropout, which slows attention on CPUs.
simlte_st, every view masked: the same computation in this package, without dropout.
simlte_st: the MLM term sees a quarter of the views of each batch.
simlte_st, mini-batches: besides, 4,096 tokens are passed at a time, by gradient caching.

Parts (``--parts``), each written as soon as it is there, beside what other runs have left in the results:

time: each turn trains on one batch of each side, the first one not counted; documents a second are the tokens a second
    over all turns, for documents of mean length.
memory: the peak of one step in a process of its own: beyond what it had before (activations and gradients), and all.
outside: the share of the Trainer's time from the end of a step to the beginning of the next.
large: one batch of ``--large`` documents through gradient caching against batches of ``--batch-size``.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers.util import get_device_name
from transformers import TrainerCallback

from benchmarks.pages import document, write_results
from benchmarks.records import dtype_of, environment, make_parser
from benchmarks.timing import own_process, resident
from benchmarks.training_sides import SIDES, ours, plain_model
from simlte_st.data import DocSplit, DocSplitTransform, read_documents, write_corpus
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import read_json
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.training import trainer_callbacks
from simlte_st.training.batching import SeededBatchSampler
from simlte_st.training.dropout import set_dropout
from simlte_st.training.fit import make_trainer, training_arguments

DEVICE = get_device_name()
"""Where all sides compute: a GPU, if there is one."""

PAGE = "training" if DEVICE == "cpu" else f"training_{DEVICE}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output", "--bf16")
    parser.add_argument("--data", nargs="+", required=True, metavar="SOURCE")
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512], help="tokens a view may have")
    parser.add_argument("--documents", type=int, default=1500, help="documents of each source")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, default=1024, help="documents of the large batch (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peak", choices=list(SIDES), help=argparse.SUPPRESS)  # one side's process
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    logging.getLogger("simlte_st").setLevel(logging.WARNING)
    for source in options.data:
        with tempfile.TemporaryDirectory() as folder:
            corpus = segmented(source, options.documents, folder)
            for length in options.lengths:
                if options.peak:
                    step = SIDES[options.peak](corpus, length, options.batch_size, options.bf16)
                    before = resident(device=DEVICE)
                    step()
                    peak = resident(peak=True, device=DEVICE)
                    print(json.dumps({"step": peak - before, "process": peak}))
                    return
                for part in options.parts:
                    measured = PARTS[part](source, corpus, length, options)
                    measured["environment"] = environment(dtype_of(options.bf16))
                    write(Path(source).name, length, part, measured, options.output)


def segmented(source: str, limit: int, folder: str) -> Dataset:
    """Read and segment documents that make two views."""
    count = tokenizer_counter(plain_model().tokenizer)
    return write_corpus(read_documents(source, limit=limit), folder, view=DocSplit(), count_tokens=count)[0]


def measure_time(source: str, corpus: Dataset, length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Time the sides in turns."""
    steps = {side: make(corpus, length, options.batch_size, options.bf16) for side, make in SIDES.items()}
    turns: dict[str, list[float]] = {side: [] for side in steps}
    for turn in range(options.repeats + 1):  # the first warms up
        for side, step in steps.items():
            former = step.seconds, step.tokens
            step()
            turns[side].append((step.tokens - former[1]) / (step.seconds - former[0]))
        say(f"{Path(source).name}, {length} tokens: turn {turn} of {options.repeats}, tokens a second", turns)
        if turn == 0:
            for step in steps.values():
                step.forget()
    taken = len(steps) * options.repeats * min(options.batch_size, len(corpus))
    tokens = sum(step.tokens for step in steps.values()) / taken
    return {
        "documents": len(corpus),
        "batch_size": options.batch_size,
        "tokens_per_document": tokens,
        "documents_per_second": {side: step.tokens / step.seconds / tokens for side, step in steps.items()},
        "turns": {side: values[1:] for side, values in turns.items()},
        "share_making_batches": {side: step.outside / step.seconds for side, step in steps.items()},
        "milliseconds_making_a_document": {
            side: 1000 * step.outside / step.tokens * tokens for side, step in steps.items()
        },
    }


def say(what: str, turns: dict[str, list[float]]) -> None:
    print(what, *(f"{side}: {values[-1]:.2f}" for side, values in turns.items()), sep="; ", flush=True)


def measure_memory(source: str, corpus: Dataset, length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the memory of a step of each side, in bytes, in processes of their own."""
    peaks: dict[str, dict[str, int]] = {"step": {}, "process": {}}
    for side in SIDES:
        command = [
            "benchmarks.training", "--data", source, "--lengths", str(length), "--documents",
            str(options.documents), "--batch-size", str(options.batch_size), "--threads", str(options.threads),
            "--bf16" if options.bf16 else "--no-bf16", "--peak", side,
        ]  # fmt: skip
        found = own_process(command)
        for name, by_side in peaks.items():
            by_side[side] = found[name]
        print(f"{Path(source).name}, {length} tokens: {side}: {found['step'] / 2**20:,.0f} MiB", flush=True)
    return {"batch_size": options.batch_size, "peak_bytes": peaks}


class StepClock(TrainerCallback):
    """Measures the seconds inside and outside of training steps, the first one not counted."""

    def __init__(self) -> None:
        self.inside = self.outside = 0.0
        self._last: float | None = None
        self._began = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Note the time since the last step."""
        self._began = time.perf_counter()
        if self._last is not None:
            self.outside += self._began - self._last

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Note the time of the step."""
        ended = time.perf_counter()
        if self._last is not None:
            self.inside += ended - self._began
        self._last = ended


def measure_outside(source: str, corpus: Dataset, length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the share of the Trainer's time that is not between the beginning and the end of a step.

    A step is forward, loss, backward, clipping and optimizer; outside are views, batches and logging.
    """
    model = plain_model(length)
    set_dropout(model, 0.0)
    views, clock = DocSplitTransform(model=model), StepClock()
    loss = MultipleNegativesRankingMLMLoss(model)
    steps = options.repeats + 1
    with tempfile.TemporaryDirectory() as folder:
        arguments = training_arguments(
            Path(folder),
            batch_size=options.batch_size,
            epochs=1,
            steps=steps,
            max_steps=steps,
            learning_rate=5e-5,
            bf16=options.bf16,
            batch_sampler=SeededBatchSampler,
            save_strategy="no",
        )
        callbacks = [*trainer_callbacks(views, loss), clock]
        make_trainer(model, arguments, corpus.with_transform(views), loss, callbacks).train()
    return {"share": clock.outside / (clock.inside + clock.outside)}


def measure_large(source: str, corpus: Dataset, length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Compare tokens a second of a large batch through gradient caching with those of small ones."""
    make = functools.partial(ours, corpus, length, bf16=options.bf16)
    small, large = make(options.batch_size), make(options.large, mini_batch_num_tokens=4096)
    # Small batches before the large one and after: what disturbs the machine falls on both.
    count = max(2, options.large // options.batch_size // 4)
    for name, step, times in (("small", small, count), ("large", large, 1), ("small", small, count)):
        for _ in range(times):
            step()
        print(f"{name}: {step.tokens / step.seconds:,.0f} tokens a second", flush=True)
    rates = {"small": small.tokens / small.seconds, "large": large.tokens / large.seconds}
    record = {"documents": options.large, "batch_size": options.batch_size, "tokens_per_second": rates}
    return {**record, "ratio": rates["large"] / rates["small"]}


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "time": measure_time,
    "memory": measure_memory,
    "outside": measure_outside,
    "large": measure_large,
}


def write(source: str, length: int, part: str, measured: dict[str, Any], output: Path) -> None:
    """Add a part to what has been measured so far."""
    path = output / f"{PAGE}.json"
    rows = read_json(path)["rows"] if path.exists() else []
    key = {"source": source, "tokens": length, "dtype": measured["environment"]["dtype"]}
    row = next((row for row in rows if {"dtype": "float32", **row}.items() >= key.items()), None)
    if row is None:
        row = key
        rows = sorted([*rows, row], key=lambda row: (row["source"], row["tokens"], row.get("dtype", "")))
    row[part] = measured
    write_results(PAGE, {"rows": rows}, output)


def page(record: dict[str, Any]) -> str:
    """Return the page of what has been measured."""
    rows = record["rows"]
    machine = next(row[part] for part in ("time", *PARTS) for row in rows if part in row)["environment"]
    blocks, commands = [], []
    for row in rows:
        half = row.get("dtype", "float32") == "bfloat16"
        blocks.append(f"## {row['source']}, {row['tokens']} tokens a view, {row.get('dtype', 'float32')}")
        if "time" in row or "memory" in row:
            sizes = {row[part]["batch_size"] for part in ("time", "memory") if part in row}
            blocks += [table(row), f"Batches of {' and '.join(map(str, sorted(sizes)))} documents."]
        if "outside" in row:
            blocks.append(f"Outside the model: {row['outside']['share']:.1%} of the Trainer's time.")
        if "large" in row:
            large = row["large"]
            blocks.append(
                f"A batch of {large['documents']:,} through gradient caching has {large['ratio']:.2f} times the "
                f"tokens a second of batches of {large['batch_size']}."
            )
        if "time" in row:
            time = row["time"]
            commands.append(
                f"    python -m benchmarks.training --data {row['source']} --lengths {row['tokens']} --batch-size "
                f"{time['batch_size']} --repeats {len(time['turns']['obvious'])}" + " --bf16" * half
            )
    return document(
        "# The training step",
        f"all-MiniLM-L6-v2, contrastive + MLM, {machine['threads']} threads on {machine['device']}; the sides take "
        "turns in one process. What they are: `python -m benchmarks.training --help`. Times: documents a second "
        "over those of the obvious composition, with its dropout and without; in brackets, in the turn where that is "
        "least and in the turn where it is most. Memory: what a step adds to the process, and all that it has.",
        *blocks,
        "\n".join(commands),
    )


def table(row: dict[str, Any]) -> str:
    """Make the table of a source and a length."""
    rates = row.get("time", {}).get("documents_per_second", {})
    making = row.get("time", {}).get("share_making_batches", {})
    peaks = row.get("memory", {}).get("peak_bytes", {})
    cells = []
    for side in SIDES:
        cells.append([side])
        if rates:
            over = [times(row["time"], side, other) for other in ("obvious", "obvious, no dropout")]
            cells[-1] += [f"{rates[side]:.2f}", *over, f"{making[side]:.1%}"]
        if peaks:
            for by_side in peaks.values():
                cells[-1] += [f"{by_side[side] / 2**20:,.0f}", f"{by_side[side] / by_side['obvious']:.2f}"]
    header = ["side"]
    header += ["doc/s", "times", "times, no dropout", "making batches"] if rates else []
    return markdown_table(header + (["a step, MiB", "times", "process, MiB", "times"] if peaks else []), cells)


def times(measured: dict[str, Any], side: str, other: str) -> str:
    """Write how much faster a side is than another: over all turns, and in the slowest and fastest of them."""
    rates, turns = measured["documents_per_second"], measured["turns"]
    each = [one / two for one, two in zip(turns[side], turns[other], strict=True)]
    return f"{rates[side] / rates[other]:.1f}" + (f" [{min(each):.1f}, {max(each):.1f}]" if side != other else "")


if __name__ == "__main__":
    main()
