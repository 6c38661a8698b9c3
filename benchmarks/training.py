"""The training step against what a user would put together today, side by side.

    python -m benchmarks.training --data 20newsgroups.parquet enwiki2014.parquet --large 1024

All sides train all-MiniLM-L6-v2 on the same documents with the papers' loss: contrastive + 0.1 MLM, fp32, AdamW.

obvious: views as texts, tokenized in the loop, stock ``MultipleNegativesRankingLoss``, ``AutoModelForMaskedLM`` with
    all logits on masked copies of all views, random batches, the checkpoint's dropout.
obvious, no dropout: the same without dropout, which slows attention on CPUs.
simlte_st, every view masked: the same computation in this package, without dropout.
simlte_st: the MLM term sees a quarter of the views of each batch.
simlte_st, mini-batches: besides, 4,096 tokens are passed at a time, by gradient caching.

Each turn trains on one batch of each side; documents a second are over all turns. Memory is the peak of a process of
its own beyond what it had when the model stood. Time outside the model is that of the Trainer's loop, from the end of a
step to the beginning of the next. ``--large`` compares one batch of so many documents through gradient caching with
batches of ``--batch-size``. Results are written after each source and length; those of other ones stay.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from benchmarks.longformer import resident
from benchmarks.records import RESULTS, environment
from benchmarks.training_sides import SIDES, Step, as_texts, ours, segmenter
from simlte_st.base_models import load_base, set_dropout
from simlte_st.data import DocSplit, SegmentedDocument, read_documents
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.sentences import segment_documents, tokenizer_counter
from simlte_st.data.token_cache import tokenize_corpus
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import read_json, write_json
from simlte_st.limits import view_budget
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.packaged import PACKAGED_BASE
from simlte_st.training import Preset
from simlte_st.training.batching.token_rows import TokenRows
from simlte_st.training.run_folder import RunFolder
from simlte_st.training.trainer import RunOptions, make_trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="SOURCE")
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512], help="tokens a view may have")
    parser.add_argument("--documents", type=int, default=1500, help="documents of each source")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--large", type=int, help="documents of the large batch; left out where not given")
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
                for _ in range(2):  # the optimizer's state is there from the second on
                    step()
                print(json.dumps({"bytes": resident(peak=True) - before}))
                return
            write(measure(source, documents, length, options), options)


def segmented(source: str, limit: int) -> list[SegmentedDocument]:
    """Read and segment documents that make two views."""
    read = list(read_documents(source, limit=limit))
    cut = segmenter(read)
    tokenizer = load_base(PACKAGED_BASE).model.tokenizer
    return [
        document
        for document in segment_documents(read, cut, tokenizer_counter(tokenizer))
        if DocSplit().accepts(document)
    ]


def measure(
    source: str, documents: list[SegmentedDocument], length: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Measure the sides in turns, then the memory of each, the Trainer's loop, and the large batch."""
    steps = {side: make(documents, length, options.batch_size) for side, make in SIDES.items()}
    turns: dict[str, list[float]] = {side: [] for side in steps}
    for turn in range(options.repeats + 1):
        for side, step in steps.items():
            if turn == 1:
                step.reset()  # the first turn warms up
            former = step.seconds, step.documents
            step()
            turns[side].append((step.documents - former[1]) / (step.seconds - former[0]))
        say(f"{Path(source).name}, {length} tokens: turn {turn} of {options.repeats}", turns)
    rates = {side: step.documents / step.seconds for side, step in steps.items()}
    making = {side: step.outside / step.seconds for side, step in steps.items()}
    del steps, step
    row: dict[str, Any] = {
        "source": Path(source).name,
        "tokens": length,
        "documents": len(documents),
        "repeats": options.repeats,
        "batch_size": options.batch_size,
        "documents_per_second": rates,
        "turns": {side: values[1:] for side, values in turns.items()},
        "share_making_batches": making,
        "peak_bytes": {side: peak(side, source, length, options) for side in SIDES},
        "share_outside_model": outside_the_model(documents, length, options),
        "environment": environment(),
    }
    if options.large:
        row["large_batch"] = large_batch(documents, length, options)
    return row


def say(what: str, turns: dict[str, list[float]]) -> None:
    print(what, *(f"{side}: {values[-1]:.2f}" for side, values in turns.items()), sep="; ", flush=True)


def peak(side: str, source: str, length: int, options: argparse.Namespace) -> int:
    """Measure the memory of a side's steps, in bytes, in a process of its own."""
    command = [
        sys.executable, "-m", "benchmarks.training", "--data", source, "--lengths", str(length), "--documents",
        str(options.documents), "--batch-size", str(options.batch_size), "--threads", str(options.threads),
        "--peak", side,
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(json.loads(run.stdout.splitlines()[-1])["bytes"])


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


def outside_the_model(documents: list[SegmentedDocument], length: int, options: argparse.Namespace) -> float:
    """Measure the share of the Trainer's time that is not between the beginning and the end of a step.

    A step is forward, loss, backward, clipping and optimizer; outside are views, batches, logging and checkpoints.
    """
    model = load_base(PACKAGED_BASE, max_seq_length=length, dtype=torch.float32).model.train()
    set_dropout(model, 0.0)
    texts = as_texts(documents)
    with tempfile.TemporaryDirectory() as folder:
        corpus = tokenize_corpus(texts, model.tokenizer, segmenter=segmenter(texts), directory=f"{folder}/tokens")
        trainer, interrupt = make_trainer(
            model,
            MultipleNegativesRankingMLMLoss(model, mlm_share=0.25),
            TokenRows(corpus, corpus.usable(DocSplit())[0]),
            PairDrawer(DocSplit(), 0, view_budget(model)),
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
    return clock.outside / (clock.inside + clock.outside)


def large_batch(documents: list[SegmentedDocument], length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Compare tokens a second of large batches through gradient caching with those of small ones."""
    steps: dict[str, tuple[Step, int]] = {
        "small": (ours(documents, length, options.batch_size, 0.25, exactly=True), options.large // options.batch_size),
        "large": (ours(documents, length, options.large, 0.25, mini_batch_tokens=4096, exactly=True), 1),
    }
    steps["small"][0]()  # warms up
    steps["small"][0].reset()
    # Half of the small batches before the large one, half after: what disturbs the machine falls on both.
    halves = [steps["small"][1] // 2, steps["small"][1] - steps["small"][1] // 2]
    for name, times in (("small", halves[0]), ("large", 1), ("small", halves[1])):
        for _ in range(times):
            steps[name][0]()
    rates = {name: step.tokens / step.seconds for name, (step, _) in steps.items()}
    return {"documents": options.large, "tokens_per_second": rates, "ratio": rates["large"] / rates["small"]}


def write(row: dict[str, Any], options: argparse.Namespace) -> None:
    """Add a row to what has been measured so far."""
    path = options.output / "training.json"
    rows = read_json(path)["rows"] if path.exists() else []
    key = ("source", "tokens")
    rows = [old for old in rows if [old[name] for name in key] != [row[name] for name in key]] + [row]
    rows.sort(key=lambda row: (row["source"], row["tokens"]))
    write_json(path, {"rows": rows})
    text = [
        "# The training step",
        "",
        f"all-MiniLM-L6-v2, {row['batch_size']} documents a batch, contrastive + MLM, fp32, "
        f"{row['environment']['threads']} threads on {row['environment']['device']}; {row['repeats']} turns of each "
        "side in one process. What the sides are: `python -m benchmarks.training --help`. Times: documents a second "
        "over those of the obvious composition, with its dropout and without. Memory: peak of a step over the obvious "
        "composition's.",
        "",
    ]
    for row in rows:
        text += [f"## {row['source']}, {row['tokens']} tokens a view", "", table(row), ""]
        text += [f"Outside the model: {row['share_outside_model']:.1%} of the Trainer's time.", ""]
        if "large_batch" in row:
            large = row["large_batch"]
            text += [
                f"A batch of {large['documents']:,} through gradient caching has {large['ratio']:.2f} times the "
                f"tokens a second of batches of {row['batch_size']}.",
                "",
            ]
    names = " ".join(dict.fromkeys(row["source"] for row in rows))
    text += [f"    python -m benchmarks.training --data {names} --large 1024", ""]
    (options.output / "training.md").write_text("\n".join(text), encoding="utf-8")


def table(row: dict[str, Any]) -> str:
    """Make the table of a source and a length."""
    rates, peaks = row["documents_per_second"], row["peak_bytes"]
    cells = [
        [
            side,
            f"{rate:.2f}",
            f"{rate / rates['obvious']:.2f}x",
            f"{rate / rates['obvious, no dropout']:.2f}x",
            f"{peaks[side] / 2**20:,.0f}",
            f"{peaks[side] / peaks['obvious']:.2f}",
            f"{row['share_making_batches'][side]:.1%}",
        ]
        for side, rate in rates.items()
    ]
    header = ["side", "doc/s", "times", "times, no dropout", "peak, MiB", "memory", "making batches"]
    return markdown_table(header, cells)


if __name__ == "__main__":
    main()
