"""Measure the Longformer's speed and memory against transformers' own and against BERT.

    python -m benchmarks.longformer

A model of MiniLM's size (6 layers, 384 hidden, 12 heads) with windows of 512 tokens, in float32 and bfloat16. Both
implementations have the same random weights and global attention on [CLS]. They take turns in one process: ratios of
medians, with the lowest and highest ratio of a turn. Memory is the peak of a separate process, less its memory after
loading the model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from transformers import BertConfig, BertModel, LongformerConfig, LongformerModel, PreTrainedModel

from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import process_memory, ratio, ratio_range, run_module, side_by_side
from simlte_st.longformer import SimlteLongformerConfig, SimlteLongformerModel
from simlte_st.training.prepare_model import set_attention_dropout

SIZE: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
DTYPES = ("float32", "bfloat16")
OURS, STOCK = "simlte_st", "transformers"
PASSES = {"forward": False, "forward + backward": True}
DROPOUT = 0.1
"""Attention dropout of stock configurations."""

SHORT = [60] * 32
"""Lengths of documents that are short enough for BERT."""

Job = Callable[[], object]
Batch = dict[str, torch.Tensor]


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--length", type=int, default=4096, help="tokens of a long document (default: %(default)s)")
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peak", choices=(OURS, STOCK), help=argparse.SUPPRESS)  # in a side's own process
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    if options.peak:
        print(json.dumps(step_peak(options)))
        return
    settings = {name: getattr(options, name) for name in ("repeats", "length", "window", "threads")}
    parts = [measure_dtype(name, options) for name in options.dtypes]
    write_results("longformer", {"options": settings, "environment": environment(), "parts": parts}, options.output)


def measure_dtype(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure all rows in one dtype."""
    dtype, length = getattr(torch, name), options.length
    torch.manual_seed(0)
    stock, ours = (model.to(dtype) for model in make_longformers(options.window, length))
    bert = BertModel(BertConfig(**SIZE, attn_implementation="sdpa")).to(dtype)
    long, short = random_batch([length]), random_batch(SHORT)
    marked = {**long, "global_attention_mask": first_column(long["input_ids"])}
    rows: list[dict[str, Any]] = []

    def compare(title: str, jobs: Mapping[str, Job], under: str) -> None:
        seconds = side_by_side(jobs, options.repeats)
        [over] = set(seconds) - {under}
        low, high = ratio_range(seconds[over], seconds[under])
        row = {"measure": title, "seconds": seconds, "ratio": ratio(seconds[over], seconds[under])}
        rows.append({**row, "lowest": low, "highest": high})
        print(f"{title}: {rows[-1]['ratio']:.2f} [{low:.2f}, {high:.2f}]", flush=True)

    for dropout in (0.0, DROPOUT):
        for title, grad in PASSES.items():
            if grad or not dropout:
                for model in (stock, ours):
                    set_attention_dropout(model.train(bool(dropout)), dropout)
                jobs = {OURS: model_step(ours, long, grad), STOCK: model_step(stock, marked, grad)}
                suffix = f", attention dropout {dropout}" * bool(dropout)
                compare(f"whole model, {title}{suffix}, {length} tokens", jobs, OURS)
    set_attention_dropout(ours.eval(), 0.0)
    for title, grad in PASSES.items():
        jobs = {OURS: model_step(ours, short, grad), "BERT, SDPA": model_step(bert, short, grad)}
        compare(f"32 documents of 60 tokens, {title}, time against BERT", jobs, "BERT, SDPA")
    settings = {"dtypes": name, "length": length, "window": options.window, "threads": options.threads}
    peaks = {side: run_module("benchmarks.longformer", peak=side, **settings) for side in (OURS, STOCK)}
    peak_title = f"peak memory, forward + backward, 4 documents of {length} tokens"
    rows.append({"measure": peak_title, "bytes": peaks, "ratio": peaks[OURS] / peaks[STOCK]})
    return {"dtype": name, "rows": rows}


def step_peak(options: argparse.Namespace) -> int:
    """Measure the peak memory in bytes of a side's forward and backward pass; needs a process of its own."""
    torch.manual_seed(0)
    model = make_longformers(options.window, options.length)[options.peak == OURS]
    model.to(dtype=getattr(torch, options.dtypes[0]))
    batch = random_batch([options.length] * 4)
    if options.peak == STOCK:
        batch["global_attention_mask"] = first_column(batch["input_ids"])
    before = process_memory()
    model_step(model, batch, True)()
    return process_memory(peak=True) - before


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    blocks = []
    for part in record["parts"]:
        blocks += [
            f"## {part['dtype']}",
            table(
                {
                    "measure": row["measure"],
                    "ratio": f"{row['ratio']:.2f}x",
                    "lowest - highest": f"{row['lowest']:.2f} - {row['highest']:.2f}" if "lowest" in row else "",
                }
                for row in part["rows"]
            ),
        ]
    options = " ".join(f"--{name} {record['options'][name]}" for name in ("repeats", "threads"))
    return document(
        "# The Longformer's speed and memory",
        explanation(__doc__),
        "For the whole model: how many times as fast as transformers' Longformer. Against BERT, and for memory: ours "
        "as a multiple of the other's.",
        *blocks,
        machines=[record["environment"]],
        command=f"python -m benchmarks.longformer {options}",
    )


def make_longformers(window: int, length: int) -> tuple[LongformerModel, SimlteLongformerModel]:
    """Make transformers' model and ours with the same weights."""
    settings = {**SIZE, "attention_window": window, "pad_token_id": 1, "max_position_embeddings": length + 2}
    stock = LongformerModel(LongformerConfig(**settings), add_pooling_layer=False)
    ours = SimlteLongformerModel(SimlteLongformerConfig(**settings), add_pooling_layer=False)
    ours.load_state_dict(stock.state_dict())
    return stock.eval(), ours.eval()


def model_step(model: PreTrainedModel, batch: Batch, grad: bool) -> Job:
    """Make a job that runs a model's forward pass and, with ``grad``, its backward pass."""

    def job() -> None:
        model.zero_grad()
        with torch.set_grad_enabled(grad):
            output = model(**batch).last_hidden_state
        if grad:
            output.square().mean().backward()

    return job


def random_batch(lengths: Sequence[int]) -> Batch:
    """Make a batch of random documents with these lengths."""
    mask = (torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]).long()
    return {
        "input_ids": torch.randint(1000, SIZE["vocab_size"], mask.shape) * mask + (1 - mask),
        "attention_mask": mask,
    }


def first_column(ids: torch.Tensor) -> torch.Tensor:
    """Mark the first token of each document for global attention."""
    marks = torch.zeros_like(ids)
    marks[:, 0] = 1
    return marks


if __name__ == "__main__":
    main()
