"""The training step against what a user would put together today, side by side.

    python -m benchmarks.training --data 20newsgroups.parquet enwiki2014.parquet

All sides train all-MiniLM-L6-v2 on the same documents with the papers' loss: contrastive + 0.1 MLM, fp32, AdamW.

obvious: views as texts, tokenized in the loop, stock ``MultipleNegativesRankingLoss``, ``AutoModelForMaskedLM`` with
    all logits on masked copies of all views, random batches, the checkpoint's dropout.
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
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from simlte_st.training.run_folder import RunFolder
from simlte_st.training.trainer import RunOptions, make_trainer
from transformers import TrainerCallback

from benchmarks.longformer import resident
from benchmarks.records import RESULTS, environment
from benchmarks.training_sides import SIDES, ours, plain_model, segmenter, tokenized
from simlte_st.data import DocSplit, SegmentedDocument, draw_views, read_documents
from simlte_st.data.sentences import segment_documents, tokenizer_counter
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import read_json, write_json
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training import Preset
from simlte_st.training.dropout import set_dropout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="SOURCE")
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512], help="tokens a view may have")
    parser.add_argument("--documents", type=int, default=1500, help="documents of each source")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, default=1024, help="documents of the large batch (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder (default: %(default)s)")
    parser.add_argument("--peak", choices=list(SIDES), help=argparse.SUPPRESS)  # one side's process
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.getLogger("simlte_st").setLevel(logging.WARNING)
    for source in options.data:
        documents = segmented(source, options.documents)
        for length in options.lengths:
            if options.peak:
                step = SIDES[options.peak](documents, length, options.batch_size)
                before = resident()
                step()
                print(json.dumps({"step": resident(peak=True) - before, "process": resident(peak=True)}))
                return
            for part in options.parts:
                measured = PARTS[part](source, documents, length, options)
                measured["environment"] = environment()
                write(Path(source).name, length, part, measured, options.output)


def segmented(source: str, limit: int) -> list[SegmentedDocument]:
    """Read and segment documents that make two views."""
    read = list(read_documents(source, limit=limit))
    cut = segmenter(read)
    tokenizer = load_model(PACKAGED_BASE).model.tokenizer
    return [
        document
        for document in segment_documents(read, cut, tokenizer_counter(tokenizer))
        if DocSplit().accepts(document)
    ]


def measure_time(
    source: str, documents: list[SegmentedDocument], length: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Time the sides in turns."""
    steps = {side: make(documents, length, options.batch_size) for side, make in SIDES.items()}
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
    # Batches of like lengths hold more short documents or fewer long ones: tokens are what can be compared.
    tokens = mean_tokens(documents, length)
    return {
        "documents": len(documents),
        "batch_size": options.batch_size,
        "tokens_per_document": tokens,
        "documents_per_second": {side: step.tokens / step.seconds / tokens for side, step in steps.items()},
        "turns": {side: values[1:] for side, values in turns.items()},
        "share_making_batches": {side: step.outside / step.seconds for side, step in steps.items()},
    }


def mean_tokens(documents: list[SegmentedDocument], length: int) -> float:
    """Count the tokens of a document's two views, on average."""
    tokenizer = load_model(PACKAGED_BASE).model.tokenizer
    pairs = [draw_views(document, DocSplit(), budget=length - 2) for document in documents]
    texts = [text for pair in pairs if pair is not None for text in (pair.anchor, pair.positive)]
    ids = tokenizer(texts, truncation=True, max_length=length)["input_ids"]
    return sum(map(len, ids)) / len(documents)


def say(what: str, turns: dict[str, list[float]]) -> None:
    print(what, *(f"{side}: {values[-1]:.2f}" for side, values in turns.items()), sep="; ", flush=True)


def measure_memory(
    source: str, documents: list[SegmentedDocument], length: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Measure the memory of a step of each side, in bytes, in processes of their own."""
    peaks: dict[str, dict[str, int]] = {"step": {}, "process": {}}
    for side in SIDES:
        command = [
            sys.executable, "-m", "benchmarks.training", "--data", source, "--lengths", str(length), "--documents",
            str(options.documents), "--batch-size", str(options.batch_size), "--threads", str(options.threads),
            "--peak", side,
        ]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(run.stdout.splitlines()[-1])
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


def measure_outside(
    source: str, documents: list[SegmentedDocument], length: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Measure the share of the Trainer's time that is not between the beginning and the end of a step.

    A step is forward, loss, backward, clipping and optimizer; outside are views, batches, logging and checkpoints.
    """
    model = plain_model(length)
    set_dropout(model, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        rows, drawer = tokenized(documents, model, f"{folder}/tokens")
        trainer, interrupt = make_trainer(
            model,
            MultipleNegativesRankingMLMLoss(model, mlm_share=0.25),
            rows,
            drawer,
            Preset(batch_size=options.batch_size),
            RunFolder.open(Path(folder) / "model", {}, resume=False, overwrite=False),
            RunOptions(max_steps=options.repeats + 1, progress=False),
        )
        clock = StepClock()
        trainer.add_callback(clock)
        try:
            trainer.train()
        finally:
            interrupt.restore()
    return {"share": clock.outside / (clock.inside + clock.outside)}


def measure_large(
    source: str, documents: list[SegmentedDocument], length: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Compare tokens a second of a large batch through gradient caching with those of small ones."""
    small = ours(documents, length, options.batch_size, 0.25, exactly=True)
    large = ours(documents, length, options.large, 0.25, mini_batch_tokens=4096, exactly=True)
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
    path = output / "training.json"
    rows = read_json(path)["rows"] if path.exists() else []
    row = next((row for row in rows if (row["source"], row["tokens"]) == (source, length)), None)
    if row is None:
        row = {"source": source, "tokens": length}
        rows = sorted([*rows, row], key=lambda row: (row["source"], row["tokens"]))
    row[part] = measured
    output.mkdir(parents=True, exist_ok=True)
    write_json(path, {"rows": rows})
    machine = next((row["time"] for row in rows if "time" in row), measured)["environment"]
    text = [
        "# The training step",
        "",
        f"all-MiniLM-L6-v2, contrastive + MLM, fp32, {machine['threads']} threads on {machine['device']}; the sides "
        "take turns in one process. What they are: `python -m benchmarks.training --help`. Times: documents a second "
        "over those of the obvious composition, with its dropout and without. Memory: what a step adds to the process, "
        "and all that the process has.",
        "",
    ]
    for row in rows:
        text += [f"## {row['source']}, {row['tokens']} tokens a view", ""]
        if "time" in row or "memory" in row:
            sizes = {row[part]["batch_size"] for part in ("time", "memory") if part in row}
            text += [table(row), "", f"Batches of {' and '.join(map(str, sorted(sizes)))} documents.", ""]
        if "outside" in row:
            text += [f"Outside the model: {row['outside']['share']:.1%} of the Trainer's time.", ""]
        if "large" in row:
            large = row["large"]
            text += [
                f"A batch of {large['documents']:,} through gradient caching has {large['ratio']:.2f} times the "
                f"tokens a second of batches of {large['batch_size']}.",
                "",
            ]
    text += [
        f"    python -m benchmarks.training --data {row['source']} --lengths {row['tokens']} "
        f"--batch-size {row['time']['batch_size']} --repeats {len(row['time']['turns']['obvious'])}"
        for row in rows
        if "time" in row
    ]
    text.append("")
    (output / "training.md").write_text("\n".join(text), encoding="utf-8")


def table(row: dict[str, Any]) -> str:
    """Make the table of a source and a length."""
    rates = row.get("time", {}).get("documents_per_second", {})
    making = row.get("time", {}).get("share_making_batches", {})
    peaks = row.get("memory", {}).get("peak_bytes", {})
    cells = []
    for side in SIDES:
        cells.append([side])
        if rates:
            over = [f"{rates[side] / rates[other]:.2f}x" for other in ("obvious", "obvious, no dropout")]
            cells[-1] += [f"{rates[side]:.2f}", *over, f"{making[side]:.1%}"]
        if peaks:
            for by_side in peaks.values():
                cells[-1] += [f"{by_side[side] / 2**20:,.0f}", f"{by_side[side] / by_side['obvious']:.2f}"]
    header = ["side"]
    header += ["doc/s", "times", "times, no dropout", "making batches"] if rates else []
    return markdown_table(header + (["a step, MiB", "times", "process, MiB", "times"] if peaks else []), cells)


if __name__ == "__main__":
    main()
