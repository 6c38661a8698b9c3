"""The training step, compared with one composed of stock parts.

    python -m benchmarks.training --data 20newsgroups.parquet enwiki2014.parquet
    python -m benchmarks.training --data enwiki2014.parquet --documents 10000 --defaults

All sides train all-MiniLM-L6-v2 on the same documents with the papers' loss (contrastive + 0.1 MLM, AdamW), on a GPU
if there is one. They take turns in one process, one batch at a time after a warm-up batch, and draw and tokenize views
inside the loop. Documents per second are tokens per second over all turns, for documents of mean length. Speedups are
over the obvious composition with and without dropout; brackets give the range over turns. Memory is the peak of one
step in a separate process: the increase (activations and gradients) and the total.

- obvious: stock ``MultipleNegativesRankingLoss``, ``AutoModelForMaskedLM`` with all logits on masked copies of all
  views, random batches, the checkpoint's dropout.
- obvious, no dropout: the same without dropout, which slows attention on CPUs.
- simlte_st: the same computation in this package, without dropout.
- simlte_st, mini-batches: the same with gradient caching, 4,096 tokens at a time.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import batch_to_device, get_device_name
from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling

from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import compute_dtype, environment, make_parser
from benchmarks.timing import process_memory, ratio_range, run_module
from simlte_st import train
from simlte_st.compat import quiet_transformers
from simlte_st.data import DocSplit, DocSplitTransform, read_documents, write_corpus
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path
from simlte_st.training.batches import SeededBatchSampler
from simlte_st.training.prepare_model import set_dropout
from simlte_st.words.sentences import tokenizer_counter

DEVICE = get_device_name()
"""The device of all sides: a GPU if there is one."""

PAGE = "training" if DEVICE == "cpu" else f"training_{DEVICE}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output", "--bf16")
    parser.add_argument("--data", nargs="+", required=True, metavar="SOURCE")
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512], help="maximum tokens of a view")
    parser.add_argument("--documents", type=int, default=1500, help="documents of each source")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--defaults", action="store_true", help="time one run of simlte train --encoder instead")
    parser.add_argument("--peak", choices=list(SIDES), help=argparse.SUPPRESS)  # for a side's own process
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    logging.getLogger("simlte_st").setLevel(logging.WARNING)
    if options.defaults:
        runs = [time_whole_run(source, options) for source in options.data]
        write_results(f"{PAGE}_defaults", {"runs": runs}, options.output)
        return
    rows: list[dict[str, Any]] = []
    for source in options.data:
        with tempfile.TemporaryDirectory() as folder:
            tokens = tokenizer_counter(plain_model().tokenizer)
            documents = read_documents(source, limit=options.documents)
            corpus = write_corpus(documents, folder, view=DocSplit(), count_tokens=tokens)[0]
            for length in options.lengths:
                if options.peak:
                    step = SIDES[options.peak](corpus, length, options.batch_size, options.bf16)
                    print(json.dumps(step_memory(step)))
                    return
                row = {"source": Path(source).name, "tokens": length, "batch_size": options.batch_size}
                speeds = time_sides(corpus, length, options)
                peaks = {side: measure_step_memory(side, source, length, options) for side in SIDES}
                versions = environment(compute_dtype(options.bf16))
                rows.append({**row, **speeds, "peak_bytes": peaks, "environment": versions})
                write_results(PAGE, {"rows": rows}, options.output)


def time_whole_run(source: str, options: argparse.Namespace) -> dict[str, Any]:
    """Time a default training of the default encoder, from reading the documents to the verdict."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        documents = read_documents(source, limit=options.documents)
        result = train(documents, f"{folder}/model", base=PACKAGED_BASE, bf16=options.bf16, progress=False)
    size, seconds = min(result.preset.batch_size, result.corpus.documents), time.perf_counter() - began
    return {
        "documents": f"{options.documents:,} of {Path(source).name}",
        "training": f"{result.steps} steps of {size} documents in {result.seconds:.1f} s",
        "trained documents / s": f"{result.steps * size / result.seconds:.1f}",
        "whole run": f"{seconds:.1f} s",
        "environment": environment(compute_dtype(options.bf16)),
    }


def time_sides(corpus: Dataset, length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Time the sides in turns."""
    steps = {side: make(corpus, length, options.batch_size, options.bf16) for side, make in SIDES.items()}
    turns: dict[str, list[tuple[int, float]]] = {side: [] for side in steps}
    for _ in range(options.repeats + 1):
        for side, step in steps.items():
            turns[side].append(step())
            tokens, seconds = turns[side][-1]
            print(f"{side}, {length} tokens: {tokens / seconds:,.0f} tokens a second", flush=True)
    # Sides see different documents, so tokens are compared.
    totals = {side: [sum(column) for column in zip(*turns[side][1:], strict=True)] for side in steps}
    documents = len(steps) * options.repeats * min(options.batch_size, len(corpus))
    mean = sum(tokens for tokens, _ in totals.values()) / documents
    return {
        "turns": {side: [tokens / seconds for tokens, seconds in turns[side][1:]] for side in steps},
        "documents_per_second": {side: tokens / seconds / mean for side, (tokens, seconds) in totals.items()},
    }


def step_memory(step: Side) -> dict[str, int]:
    """Return the memory increase of a step and the peak memory of this process, in bytes."""
    before = process_memory(device=DEVICE)
    step()
    peak = process_memory(peak=True, device=DEVICE)
    return {"step": peak - before, "process": peak}


def measure_step_memory(side: str, source: str, length: int, options: argparse.Namespace) -> Any:
    """Measure the memory of a side's step in a separate process."""
    settings = {name: getattr(options, name) for name in ("documents", "batch_size", "threads", "bf16")}
    return run_module("benchmarks.training", peak=side, data=source, lengths=length, **settings)


class Side:
    """A side's batches and training step."""

    def __init__(
        self, batches: Iterator[list[dict[str, Any]]], module: torch.nn.Module, loss: Callable[..., Any], bf16: bool
    ) -> None:
        self.batches, self.loss, self.bf16 = batches, loss, bf16
        self.device = next(module.parameters()).device
        self.optimizer = torch.optim.AdamW(module.parameters(), lr=1e-5, fused=True)
        for parameter in module.parameters():  # create the optimizer's state before timing
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def __call__(self) -> tuple[int, float]:
        """Train on the next batch; return its number of tokens, without padding, and the seconds, with batching."""
        began = time.perf_counter()
        columns = [batch_to_device(column, self.device) for column in next(self.batches)]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            value = self.loss(columns, None)
        (torch.stack(list(value.values())).sum() if isinstance(value, dict) else value).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        return sum(int(column["attention_mask"].sum()) for column in columns), seconds


def obvious_side(
    corpus: Dataset, length: int, batch_size: int, bf16: bool = False, dropout: float | None = None
) -> Side:
    """Compose stock parts: stock losses, all logits, random batches."""
    model = plain_model(length)
    with quiet_transformers():
        masked_lm = AutoModelForMaskedLM.from_pretrained(packaged_base_path())
    masked_lm.bert = model[0].auto_model
    masked_lm.tie_weights()
    masked_lm.to(model.device).train()
    if dropout is not None:
        set_dropout(model, dropout)
    contrastive = MultipleNegativesRankingLoss(model)
    mask = DataCollatorForLanguageModeling(model.tokenizer, mlm_probability=0.15)

    def loss(columns: Any, labels: None) -> Any:
        total = contrastive([dict(column) for column in columns], labels)
        for column in columns:
            ids, targets = mask.torch_mask_tokens(column["input_ids"].cpu().clone())  # it draws on the CPU
            batch = {"input_ids": ids, "attention_mask": column["attention_mask"], "labels": targets}
            total = total + 0.1 / len(columns) * masked_lm(**batch_to_device(batch, model.device)).loss
        return total

    return Side(view_batches(corpus, model, batch_size), masked_lm, loss, bf16)


def package_side(
    corpus: Dataset,
    length: int,
    batch_size: int,
    bf16: bool = False,
    make_loss: Callable[[SentenceTransformer], torch.nn.Module] = MultipleNegativesRankingMLMLoss,
) -> Side:
    """Compose this package's parts: both views in one pass, logits only at masked positions."""
    model = plain_model(length)
    set_dropout(model, 0.0)
    loss = make_loss(model)
    return Side(view_batches(corpus, model, batch_size), torch.nn.ModuleList([model, loss]), loss, bf16)


mini_batch_loss = partial(CachedMultipleNegativesRankingMLMLoss, mini_batch_num_tokens=4096)
SIDES: dict[str, Callable[..., Side]] = {
    "obvious": obvious_side,
    "obvious, no dropout": partial(obvious_side, dropout=0.0),
    "simlte_st": package_side,
    "simlte_st, mini-batches": partial(package_side, make_loss=mini_batch_loss),
}
"""Functions that build the sides, by name."""


def view_batches(corpus: Dataset, model: SentenceTransformer, batch_size: int) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of tokenized views epoch after epoch, as the Trainer does."""
    sampler = SeededBatchSampler(corpus, min(batch_size, len(corpus)), True)
    views = DocSplitTransform(model=model)
    views.callback.epoch = 0
    dataset = corpus.with_transform(views)
    collator = SentenceTransformerDataCollator(preprocess_fn=model.preprocess)
    for views.callback.epoch in count():
        sampler.set_epoch(views.callback.epoch)
        for rows in sampler:
            features = collator(dataset.__getitems__([int(row) for row in rows]))
            yield [
                {key.removeprefix(name): value for key, value in features.items() if key.startswith(name)}
                for name in ("anchor_", "positive_")
            ]


def plain_model(length: int | None = None) -> SentenceTransformer:
    """Load the model that all sides train, in training mode."""
    torch.manual_seed(0)
    return load_model(PACKAGED_BASE, dtype=torch.float32).copy(max_seq_length=length).model.train()


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    if "runs" in record:
        machines = [run.pop("environment") for run in record["runs"]]
        about = "``simlte train --encoder`` with its defaults; the whole run includes segmentation and verdict."
        return document("# One default training of an encoder", about, table(record["runs"]), machines=machines[:1])
    blocks, commands, machines = [], [], []
    for row in record["rows"]:
        versions = row["environment"]
        bf16 = " --bf16" * (versions["dtype"] == "bfloat16")
        blocks += [
            f"## {row['source']}, {row['tokens']} tokens per view, {versions['dtype']}",
            table(side_cells(row, side) for side in SIDES),
            f"Batches of {row['batch_size']} documents.",
        ]
        commands.append(
            f"    python -m benchmarks.training --data {row['source']} --lengths {row['tokens']} --batch-size "
            f"{row['batch_size']} --repeats {len(row['turns']['obvious'])}{bf16}"
        )
        machines += [versions] * (versions not in machines)
    return document("# The training step", explanation(__doc__), *blocks, "\n".join(commands), machines=machines)


def side_cells(row: dict[str, Any], side: str) -> dict[str, str]:
    """Return a side's row of a table."""
    rates, turns, peaks = row["documents_per_second"], row["turns"], row["peak_bytes"]

    def speedup(baseline: str) -> str:
        low, high = ratio_range(turns[side], turns[baseline])
        return f"{rates[side] / rates[baseline]:.1f} [{low:.1f}, {high:.1f}]" if side != baseline else ""

    memory = {kind: f"{peaks[side][kind] / 2**20:,.0f}" for kind in ("step", "process")}
    return {
        "side": side,
        "doc/s": f"{rates[side]:.2f}",
        "speedup": speedup("obvious"),
        "speedup, no dropout": speedup("obvious, no dropout"),
        "step, MiB": memory["step"],
        "relative to obvious": f"{peaks[side]['step'] / peaks['obvious']['step']:.2f}",
        "process, MiB": memory["process"],
    }


if __name__ == "__main__":
    main()
