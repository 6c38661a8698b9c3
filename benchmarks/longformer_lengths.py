"""The Longformer by length on any device: for whoever has a graphics card, in less than ten minutes.

    python -m benchmarks.longformer_lengths --device cuda

Each length is a batch of as many tokens, in bfloat16 and in float32. The last rows are of documents of mixed lengths,
from a quarter of the most on, which are others at each turn, as those of a corpus are. Four models of MiniLM's size (6
layers, 384 hidden, 12 heads) with random weights take turns: ours and transformers' Longformer, with the same weights
and [CLS] global; both again with attention dropout .1; and BERT with full attention through SDPA. Two files come of it,
``longformer_lengths.md``, which is printed too, and ``.json``: please open an issue with both. Cards differ, so what is
compared between them are ratios: how many times the others take, and the share of the card's own matrix rate. The
greatest difference of our states to transformers' says whether the kernels of that card compute what they shall.
"""

from __future__ import annotations

import argparse
import statistics
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

from benchmarks.longformer import SIZE, Job, both, first_column, model_step
from benchmarks.longformer_cost import encoder_operations
from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import matrix_rate, ratio, side_by_side
from simlte_st.evaluation.table import markdown_table
from simlte_st.training.dropout import set_attention_dropout

PASSES = {"forward": False, "forward + backward": True}


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--dtypes", choices=("float32", "bfloat16"), nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048, 4096, 16384], metavar="N")
    parser.add_argument("--tokens", type=int, default=16384, metavar="N", help="of a batch (default: %(default)s)")
    parser.add_argument("--window", type=int, default=512, metavar="N", help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="turns (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="default: this folder")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch sees no card here. Try it with --device cpu --tokens 512 --lengths 512.")
    rows: list[dict[str, Any]] = []
    rates = {name: matrix_rate(getattr(torch, name), options.device, options.repeats) for name in options.dtypes}
    batches = [*((length, False) for length in options.lengths), (min(4096, max(options.lengths)), True)]
    for dtype in options.dtypes:
        for length, mixed in batches:
            rows += measure(length, mixed, dtype, options, rates[dtype])
            save(rows, rates, options, aloud=False)
            print(f"{dtype}, {length} tokens{', mixed' if mixed else ''}: done", flush=True)
    save(rows, rates, options)


def measure(length: int, mixed: bool, dtype: str, options: argparse.Namespace, rate: float) -> list[dict[str, Any]]:
    """Measure all models at one length, or at lengths from a quarter of it on."""
    documents, device = max(1, options.tokens // length), options.device
    torch.manual_seed(0)
    stock, ours, again, stock_again = *both(options.window, length), *both(options.window, length)[::-1]
    full = BertModel(BertConfig(**SIZE, max_position_embeddings=length), add_pooling_layer=False).eval()
    models: dict[str, Any] = {"simlte_st": ours, "transformers": stock, "full": full}
    models |= {"simlte_st, dropout": again, "transformers, dropout": stock_again}
    for model in models.values():
        model.to(device=device, dtype=getattr(torch, dtype))
    for model in (again, stock_again):
        set_attention_dropout(model.train(), 0.1)
    batches = [batch_of(length, documents, mixed, device) for _ in range(options.repeats + 2 if mixed else 1)]
    batch, marked = batches[0], with_globals(batches[0])
    rows = []
    for name, grad in PASSES.items():
        jobs = {
            side: turns(model, [with_globals(b) for b in batches] if side.startswith("transformers") else batches, grad)
            for side, model in models.items()
            if grad or "dropout" not in side
        }
        peaks = {side: peak(job, device) for side, job in jobs.items()}
        jobs = {side: job for side, job in jobs.items() if peaks[side] is not None}
        seconds = side_by_side(jobs, options.repeats, device)
        work = encoder_operations([length] * documents, options.window, SIZE) * (3 if grad else 1)
        mine = seconds.get("simlte_st")
        rows.append(
            {
                "dtype": dtype,
                "length": length,
                "mixed": mixed,
                "documents": documents,
                "pass": name,
                "seconds": seconds,
                "peak_bytes": peaks,
                "share_of_matrix_rate": work / rate / statistics.median(mine) if mine and not mixed else None,
                "difference": None if grad else difference(ours, stock, batch, marked),
            }
        )
    return rows


def batch_of(length: int, documents: int, mixed: bool, device: str) -> dict[str, torch.Tensor]:
    """Make a batch of random tokens."""
    ids = torch.randint(1000, SIZE["vocab_size"], (documents, length), device=device)
    lengths = torch.randint(length // 4, length + 1, (documents, 1), device=device) if mixed else length
    return {"input_ids": ids, "attention_mask": (torch.arange(length, device=device) < lengths).long().expand_as(ids)}


def with_globals(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Mark the first token of each document, which ours does by itself."""
    return {**batch, "global_attention_mask": first_column(batch["input_ids"])}


def turns(model: Any, batches: list[dict[str, torch.Tensor]], grad: bool) -> Job:
    """Make a job that takes the next batch at each turn."""
    steps = cycle([model_step(model, batch, grad) for batch in batches])
    return lambda: next(steps)()


def peak(job: Job, device: str) -> int | None:
    """Run a job once; give what it takes of the card's memory (0 on a CPU), or None where it is too much."""
    if device == "cpu":
        job()
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    try:
        job()
    except torch.OutOfMemoryError:
        return None
    return torch.cuda.max_memory_allocated() - before


def difference(ours: Any, stock: Any, batch: dict[str, Any], marked: dict[str, Any]) -> float | None:
    """Return the greatest difference of our states to transformers' on the first document."""
    try:
        with torch.inference_mode():
            real = batch["attention_mask"][:1] > 0
            states = [
                model(**{name: value[:1] for name, value in features.items()}).last_hidden_state[real].float()
                for model, features in ((ours, batch), (stock, marked))
            ]
    except torch.OutOfMemoryError:
        return None
    return float((states[0] - states[1]).abs().max())


def save(rows: list[dict[str, Any]], rates: dict[str, float], options: argparse.Namespace, aloud: bool = True) -> None:
    """Write what has been measured so far."""
    given = {name: getattr(options, name) for name in ("device", "tokens", "window", "repeats")}
    record = {"options": given, "environment": environment(), "matrix_rates": rates, "rows": rows}
    write_results("longformer_lengths", record, options.output, aloud)


def page(record: dict[str, Any]) -> str:
    """Return the page of what has been measured so far."""
    options, rates = record["options"], record["matrix_rates"]
    header = ["dtype", "tokens", "documents", "pass", "ms", "transformers", "dropout .1", "transformers, dropout .1"]
    header += ["full attention", "memory, MiB", "transformers, MiB", "share of matrix rate", "difference"]
    cells = []
    for row in record["rows"]:
        seconds, peaks = row["seconds"], row["peak_bytes"]
        share, apart = row["share_of_matrix_rate"], row["difference"]
        mine = seconds.get("simlte_st")
        sides = ("transformers", "simlte_st, dropout", "transformers, dropout", "full")
        cells.append(
            [
                row["dtype"],
                f"{row['length'] // 4:,} to {row['length']:,}" if row["mixed"] else f"{row['length']:,}",
                str(row["documents"]),
                row["pass"],
                "out of memory" if mine is None else f"{1000 * statistics.median(mine):.1f}",
                *(times(seconds, peaks, side) for side in sides),
                *(f"{(peaks[side] or 0) / 2**20:,.0f}" for side in ("simlte_st", "transformers")),
                "" if share is None else f"{share:.0%}",
                "" if apart is None else f"{apart:.1e}",
            ]
        )
    product = ", ".join(f"{rate / 1e12:.2f} TFLOP/s in {dtype}" for dtype, rate in rates.items())
    return document(
        "# The Longformer by length",
        f"Milliseconds of simlte_st, window {options['window']}: medians of {options['repeats']} turns on "
        f"{options['device']}. The others, and ours with attention dropout: times as long. Share of matrix rate: what "
        "the matrix products "
        f"must take at the rate of one large product ({product}) over the time. Difference: the greatest of our states "
        "to transformers'.",
        markdown_table(header, cells),
        machines=[record["environment"]],
        command=f"python -m benchmarks.longformer_lengths --device {options['device']} --tokens {options['tokens']}",
    )


def times(seconds: dict[str, list[float]], peaks: dict[str, int | None], side: str) -> str:
    """Write another side's time as a multiple of ours."""
    if side not in peaks:
        return ""
    if side not in seconds or "simlte_st" not in seconds:
        return "out of memory"
    return f"{ratio(seconds[side], seconds['simlte_st']):.2f}x"


if __name__ == "__main__":
    main()
