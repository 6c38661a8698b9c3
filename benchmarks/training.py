"""The training step compared with one composed of stock parts.

    python -m benchmarks.training --data 20newsgroups.parquet enwiki2014.parquet
    python -m benchmarks.training --data enwiki2014.parquet --documents 10000 --defaults

All sides train all-MiniLM-L6-v2 on the same documents with the papers' loss (contrastive + 0.1 MLM, AdamW), on a GPU
if there is one. They take turns in one process, a batch each, after one warm-up batch; all draw and tokenize views
inside the loop. Documents per second come from the tokens per second over all turns, for documents of mean length.
Speedups are over the obvious composition, with and without its dropout, with those of the slowest and fastest turn in
brackets. Memory is the peak of one step in a separate process: the increase (activations and gradients) and the total.

- obvious: stock ``MultipleNegativesRankingLoss``, ``AutoModelForMaskedLM`` with all logits on masked copies of all
  views, random batches, the checkpoint's dropout.
- obvious, no dropout: the same without dropout, which slows attention on CPUs.
- simlte_st: the same computation in this package, without dropout.
- simlte_st, mini-batches: the same, 4,096 tokens at a time, by gradient caching.
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
from benchmarks.timing import own_process, resident
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
        runs = [whole_run(source, options) for source in options.data]
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
                    print(json.dumps(peak(SIDES[options.peak](corpus, length, options.batch_size, options.bf16))))
                    return
                found = {"batch_size": options.batch_size, **measure(corpus, length, options)}
                found["peak_bytes"] = {side: peak_of(side, source, length, options) for side in SIDES}
                where = environment(compute_dtype(options.bf16))
                rows.append({"source": Path(source).name, "tokens": length, **found, "environment": where})
                write_results(PAGE, {"rows": rows}, options.output)


def whole_run(source: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train the default encoder with the default settings, from reading the documents to the verdict."""
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


def measure(corpus: Dataset, length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Time the sides in turns."""
    steps = {side: make(corpus, length, options.batch_size, options.bf16) for side, make in SIDES.items()}
    turns: dict[str, list[float]] = {side: [] for side in steps}
    for turn in range(options.repeats + 1):
        for side, step in steps.items():
            tokens, seconds = step()
            if turn:
                turns[side].append(tokens / seconds)
            else:
                step.tokens, step.seconds = 0, 0.0
            print(f"{side}, {length} tokens: {tokens / seconds:,.0f} tokens a second", flush=True)
    # Sides see different documents, so compare tokens.
    taken = len(steps) * options.repeats * min(options.batch_size, len(corpus))
    mean = sum(step.tokens for step in steps.values()) / taken
    return {
        "turns": turns,
        "documents_per_second": {side: step.tokens / step.seconds / mean for side, step in steps.items()},
    }


def peak(step: Side) -> dict[str, int]:
    """Return the increase in memory of a step and the peak of this process, in bytes."""
    before = resident(device=DEVICE)
    step()
    most = resident(peak=True, device=DEVICE)
    return {"step": most - before, "process": most}


def peak_of(side: str, source: str, length: int, options: argparse.Namespace) -> Any:
    """Measure the memory of a side's step in a separate process."""
    return own_process(
        [
            "benchmarks.training", "--data", source, "--lengths", str(length), "--documents",
            str(options.documents), "--batch-size", str(options.batch_size), "--threads", str(options.threads),
            "--bf16" if options.bf16 else "--no-bf16", "--peak", side,
        ]
    )  # fmt: skip


class Side:
    """A side's batches and training step.

    Attributes:
        tokens: Tokens of all views so far, without padding.
        seconds: Seconds of all steps so far, including making batches.
    """

    def __init__(
        self, batches: Iterator[list[dict[str, Any]]], trained: torch.nn.Module, loss: Callable[..., Any], bf16: bool
    ) -> None:
        self.batches, self.loss, self.bf16 = batches, loss, bf16
        self.tokens, self.seconds = 0, 0.0
        self.device = next(trained.parameters()).device
        self.optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-5, fused=True)
        for parameter in trained.parameters():  # create the optimizer's state before measuring
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def __call__(self) -> tuple[int, float]:
        """Train on the next batch; return its tokens and seconds."""
        began = time.perf_counter()
        columns = [batch_to_device(column, self.device) for column in next(self.batches)]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            value = self.loss(columns, None)
        (torch.stack(list(value.values())).sum() if isinstance(value, dict) else value).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        seconds, tokens = time.perf_counter() - began, sum(int(each["attention_mask"].sum()) for each in columns)
        self.seconds += seconds
        self.tokens += tokens
        return tokens, seconds


def obvious(corpus: Dataset, length: int, batch_size: int, bf16: bool = False, dropout: float | None = None) -> Side:
    """Build the composition of stock parts: stock losses, all logits, random batches."""
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
            ids, wanted = mask.torch_mask_tokens(column["input_ids"].cpu().clone())  # it draws on the CPU
            batch = {"input_ids": ids, "attention_mask": column["attention_mask"], "labels": wanted}
            total = total + 0.1 / len(columns) * masked_lm(**batch_to_device(batch, model.device)).loss
        return total

    sampler = SeededBatchSampler(corpus, min(batch_size, len(corpus)), True)
    return Side(batches(corpus, model, sampler), masked_lm, loss, bf16)


def ours(
    corpus: Dataset,
    length: int,
    batch_size: int,
    bf16: bool = False,
    mini_batch_num_tokens: int | None = None,
) -> Side:
    """Build this package's side: both views in one pass, logits only at masked positions."""
    model = plain_model(length)
    set_dropout(model, 0.0)
    loss: CachedMultipleNegativesRankingMLMLoss | MultipleNegativesRankingMLMLoss
    if mini_batch_num_tokens is None:
        loss = MultipleNegativesRankingMLMLoss(model)
    else:
        loss = CachedMultipleNegativesRankingMLMLoss(model, mini_batch_num_tokens=mini_batch_num_tokens)
    sampler = SeededBatchSampler(corpus, min(batch_size, len(corpus)), True)
    return Side(batches(corpus, model, sampler), torch.nn.ModuleList([model, loss]), loss, bf16)


SIDES: dict[str, Callable[..., Side]] = {
    "obvious": obvious,
    "obvious, no dropout": partial(obvious, dropout=0.0),
    "simlte_st": ours,
    "simlte_st, mini-batches": partial(ours, mini_batch_num_tokens=4096),
}
"""Functions that build each side, by name."""


def batches(corpus: Dataset, model: SentenceTransformer, sampler: SeededBatchSampler) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of tokenized views epoch after epoch, as the Trainer does."""
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
    return load_model(PACKAGED_BASE, max_seq_length=length, dtype=torch.float32).model.train()


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    if "runs" in record:
        machines = [run.pop("environment") for run in record["runs"]]
        about = "``simlte train --encoder`` with its defaults; the whole run includes segmentation and verdict."
        return document("# One default training of an encoder", about, table(record["runs"]), machines=machines[:1])
    blocks, commands, machines = [], [], []
    for row in record["rows"]:
        where = row["environment"]
        blocks += [
            f"## {row['source']}, {row['tokens']} tokens per view, {where['dtype']}",
            table(cells(row, side) for side in SIDES),
            f"Batches of {row['batch_size']} documents.",
        ]
        commands.append(
            f"    python -m benchmarks.training --data {row['source']} --lengths {row['tokens']} --batch-size "
            f"{row['batch_size']} --repeats {len(row['turns']['obvious'])}" + " --bf16" * (where["dtype"] == "bfloat16")
        )
        machines += [where] * (where not in machines)
    return document("# The training step", explanation(__doc__), *blocks, "\n".join(commands), machines=machines)


def cells(row: dict[str, Any], side: str) -> dict[str, str]:
    """Return a side's row of a table."""
    rates, turns, peaks = row["documents_per_second"], row["turns"], row["peak_bytes"]

    def times(other: str) -> str:
        each = [one / two for one, two in zip(turns[side], turns[other], strict=True)]
        return f"{rates[side] / rates[other]:.1f} [{min(each):.1f}, {max(each):.1f}]" if side != other else ""

    memory = {kind: f"{peaks[side][kind] / 2**20:,.0f}" for kind in ("step", "process")}
    return {
        "side": side,
        "doc/s": f"{rates[side]:.2f}",
        "speedup": times("obvious"),
        "speedup, no dropout": times("obvious, no dropout"),
        "step, MiB": memory["step"],
        "relative to obvious": f"{peaks[side]['step'] / peaks['obvious']['step']:.2f}",
        "process, MiB": memory["process"],
    }


if __name__ == "__main__":
    main()
