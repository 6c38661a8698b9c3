"""Measure the Longformer by length, on any device.

    python -m benchmarks.longformer_lengths --device cuda

All batches have the same number of tokens. In the last rows, documents have mixed lengths of at least a quarter of the
longest, new ones in each turn. Models of MiniLM's size (6 layers, 384 hidden, 12 heads) with random weights take turns:
our Longformer, also in chunks, without PyTorch's FlashAttention kernel; transformers', with the same weights and global
attention on [CLS]; all of these with attention dropout .1; and BERT with full attention through SDPA. GPUs differ, so
compare the ratios: the others' time as a multiple of ours. "graph" replays our layers as one CUDA graph, which the host
launches once. Kernels and waits for the GPU are counted over a whole pass. The largest difference of our states from
transformers', with and without the kernel, is a check of both. A model that fails is left out. No length starts after
--seconds: --dtypes bfloat16 --seconds 150 --repeats 3 takes a minute on an H200.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
import warnings
from functools import cache
from itertools import cycle, product
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

from benchmarks.longformer import OURS, PASSES, SIZE, STOCK, Batch, Job, first_column, make_longformers, model_step
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import ratio, side_by_side
from simlte_st.longformer.packing import pack_batch
from simlte_st.training.prepare_model import set_attention_dropout

CHUNKS, GRAPH = f"{OURS}, chunks", f"{OURS}, graph"
OTHERS = {
    GRAPH: "graph", CHUNKS: "chunks", STOCK: STOCK, f"{OURS}, dropout": "dropout .1",
    f"{CHUNKS}, dropout": "chunks, dropout .1", f"{STOCK}, dropout": f"{STOCK}, dropout .1", "full": "full attention",
}  # fmt: skip
"""The models compared with ours, and the titles of their columns."""


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--dtypes", choices=("float32", "bfloat16"), nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048, 4096, 16384], metavar="N")
    parser.add_argument("--tokens", type=int, default=16384, metavar="N", help="of a batch (default: %(default)s)")
    parser.add_argument("--window", type=int, default=512, metavar="N", help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="turns (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=600, metavar="N", help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="default: this folder")
    began, options = time.monotonic(), parser.parse_args(arguments)
    settings = {name: getattr(options, name) for name in ("device", "tokens", "window", "repeats")}
    record: dict[str, Any] = {"options": settings, "environment": environment(), "rows": []}
    lengths = [*((length, False) for length in options.lengths), (min(4096, max(options.lengths)), True)]
    for dtype, (length, mixed) in product(options.dtypes, lengths):
        if time.monotonic() - began < options.seconds:
            record["rows"] += measure_length(length, mixed, dtype, options)
            write_results("longformer_lengths", record, options.output, verbose=False)
            print(f"{dtype}, {length} tokens{', mixed' if mixed else ''}: done", flush=True)
    write_results("longformer_lengths", record, options.output)


def measure_length(length: int, mixed: bool, dtype: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure all models at one length, or at mixed lengths of at least a quarter of it."""
    documents, device = max(1, options.tokens // length), options.device
    torch.manual_seed(0)
    stock, ours = make_longformers(options.window, length)
    models: dict[str, Any] = {OURS: ours, STOCK: stock, CHUNKS: copy.deepcopy(ours)}
    models |= {f"{side}, dropout": copy.deepcopy(model) for side, model in models.items()}
    models["full"] = BertModel(BertConfig(**SIZE, max_position_embeddings=length), add_pooling_layer=False).eval()
    for side, model in models.items():
        model.to(device=device, dtype=getattr(torch, dtype))
        if "dropout" in side:
            set_attention_dropout(model.train(), 0.1)
        if side.startswith(CHUNKS):
            model.register_forward_pre_hook(lambda *_: torch.backends.cuda.enable_flash_sdp(False))
            model.register_forward_hook(lambda *_: torch.backends.cuda.enable_flash_sdp(True), always_call=True)
    batches = [make_batch(length, documents, mixed, device) for _ in range(options.repeats + 2 if mixed else 1)]
    marked = [{**batch, "global_attention_mask": first_column(batch["input_ids"])} for batch in batches]
    rows = []
    for name, grad in PASSES.items():
        jobs = {
            side: cycle_batches(model, marked if side.startswith(STOCK) else batches, grad)
            for side, model in models.items()
            if grad or "dropout" not in side
        }
        if device == "cuda" and not (grad or mixed):
            jobs[GRAPH] = graph_job(models[OURS], batches[0])
        peaks, counts = {}, {}
        for side, job in jobs.items():
            try:
                peaks[side] = gpu_peak(job, device)
                counts[side] = count_launches(job, device)
            except RuntimeError as error:  # out of memory, or no kernel for this GPU or PyTorch
                print(f"{side}, {name}, {length} tokens: {str(error)[:200]}", flush=True)
        seconds = side_by_side({side: jobs[side] for side in peaks}, options.repeats, device)
        row = {"dtype": dtype, "length": length, "mixed": mixed, "documents": documents, "pass": name}
        differences = [
            state_difference(models[side], stock, batches[0], marked[0])
            for side in (OURS, CHUNKS)
            if {side, STOCK} <= peaks.keys() and not grad
        ]
        costs = {"seconds": seconds, "peak_bytes": peaks, "launches": counts}
        rows.append({**row, **costs, "difference": max(differences, default=None)})
    return rows


def make_batch(length: int, documents: int, mixed: bool, device: str) -> Batch:
    """Make a batch of random tokens."""
    ids = torch.randint(1000, SIZE["vocab_size"], (documents, length), device=device)
    lengths = torch.randint(length // 4, length + 1, (documents, 1), device=device) if mixed else length
    return {"input_ids": ids, "attention_mask": (torch.arange(length, device=device) < lengths).long().expand_as(ids)}


def cycle_batches(model: Any, batches: list[Batch], grad: bool) -> Job:
    """Make a job that runs the next batch in each turn."""
    steps = cycle([model_step(model, batch, grad) for batch in batches])
    return lambda: next(steps)()


def graph_job(model: Any, batch: Batch) -> Job:
    """Make a job that runs the layers on a batch, captured as a CUDA graph in the first run."""

    @cache
    def graph() -> torch.cuda.CUDAGraph:
        device = batch["input_ids"].device
        packing = pack_batch(batch["attention_mask"].cpu() > 0, cls=True, device=device)
        states = torch.randn(packing.slots, model.config.hidden_size, device=device, dtype=model.dtype)
        stream, captured = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.stream(stream):
            model.encoder(states, packing, False)  # plans the batch, which cannot be captured
            with torch.cuda.graph(captured, stream=stream):
                model.encoder(states, packing, False)
        return captured

    return lambda: graph().replay()


def count_launches(job: Job, device: str) -> tuple[int, int]:
    """Count a job's kernels and its waits for the GPU (0 and 0 on a CPU)."""
    if device == "cpu":
        return 0, 0
    with warnings.catch_warnings(record=True) as waits:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        job()
        torch.cuda.set_sync_debug_mode("default")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        job()
        torch.cuda.synchronize()
    kernels = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return len(kernels), sum("synchroniz" in str(wait.message) for wait in waits)


def gpu_peak(job: Job, device: str) -> int:
    """Run a job once, and return its peak GPU memory in bytes (0 on a CPU)."""
    if device == "cpu":
        job()
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    job()
    return torch.cuda.max_memory_allocated() - before


def state_difference(ours: Any, stock: Any, batch: Batch, marked: Batch) -> float:
    """Return the largest difference of our states from transformers' on the first document."""
    with torch.inference_mode():
        real = batch["attention_mask"][:1] > 0
        states = [
            model(**{name: value[:1] for name, value in features.items()}).last_hidden_state[real].float()
            for model, features in ((ours, batch), (stock, marked))
        ]
    return float((states[0] - states[1]).abs().max())


def page(record: dict[str, Any]) -> str:
    """Return the page of the results so far."""
    options = record["options"]
    rows = []
    sides = {side for row in record["rows"] for side in row["seconds"]}
    for row in record["rows"]:
        seconds, greatest = row["seconds"], row["difference"]
        rows.append(
            {
                "dtype": row["dtype"],
                "tokens": f"{row['length'] // 4:,} to {row['length']:,}" if row["mixed"] else f"{row['length']:,}",
                "documents": str(row["documents"]),
                "pass": row["pass"],
                "ms": f"{1000 * statistics.median(seconds[OURS]):.1f}",
                **{title: f"{ratio(seconds[side], seconds[OURS]):.2f}x" if side in seconds else ""
                   for side, title in OTHERS.items() if side in sides},
                **{f"{side}, kernels / waits": " / ".join(map(str, row["launches"].get(side, ())))
                   for side in (OURS, CHUNKS, STOCK) if "launches" in row and side in sides},
                **{f"{side}, MiB": f"{row['peak_bytes'].get(side, 0) / 2**20:,.0f}"
                   for side in (OURS, CHUNKS, STOCK) if side in sides},
                "difference": "" if greatest is None else f"{greatest:.1e}",
            }
        )  # fmt: skip
    return document(
        "# The Longformer by length",
        explanation(__doc__),
        f"Milliseconds of simlte_st, window {options['window']}: medians of {options['repeats']} turns on "
        f"{options['device']}. The others, and ours with attention dropout: times as long.",
        table(rows),
        machines=[record["environment"]],
        command=f"python -m benchmarks.longformer_lengths --device {options['device']} --tokens {options['tokens']}",
    )


if __name__ == "__main__":
    main()
