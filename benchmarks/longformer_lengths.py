"""The Longformer at lengths from 512 to 16,384 tokens, against transformers', full attention, and a band as a mask.

    python -m benchmarks.longformer_lengths --device cuda --dtype bfloat16 --repeats 20

Each length has a batch of the same number of tokens. Four whole models of MiniLM's size: ours, transformers'
Longformer, BERT with full attention through SDPA, and the same BERT with the window as a dense mask. And the attention
alone: how fast ours works off the pairs it attends to, against how fast SDPA works off all pairs. What a side cannot do
for want of memory is said in the table.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import BertConfig, BertModel

from benchmarks.longformer import SIZE, both, first_column, model_step, step
from benchmarks.longformer_cost import attended_pairs, encoder_operations
from benchmarks.records import RESULTS, environment
from benchmarks.timing import matrix_rate, side_by_side
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import write_json
from simlte_st.longformer.blocked import blocked_attention
from simlte_st.longformer.packing import pack_batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--tokens", type=int, default=65536, help="tokens of a batch (default: %(default)s)")
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder (default: %(default)s)")
    options = parser.parse_args()
    rate = matrix_rate(getattr(torch, options.dtype), options.device, options.repeats)
    rows: list[dict[str, Any]] = []
    for length in options.lengths:
        for grad in (False, True):
            rows.append(measure(length, grad, options, rate))
            print(rows[-1], flush=True)
            write(rows, options, rate)


def measure(length: int, grad: bool, options: argparse.Namespace, rate: float) -> dict[str, Any]:
    """Measure all sides at one length."""
    documents = max(1, options.tokens // length)
    device, dtype = options.device, getattr(torch, options.dtype)
    torch.manual_seed(0)
    stock, ours = (torch.nn.Module.to(model, device=device, dtype=dtype) for model in both(options.window, length))
    config = BertConfig(**SIZE, max_position_embeddings=length)
    bert = torch.nn.Module.to(BertModel(config, add_pooling_layer=False).eval(), device=device, dtype=dtype)
    ids = torch.randint(1000, SIZE["vocab_size"], (documents, length), device=device)
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    place = torch.arange(length, device=device)
    band = ((place[:, None] - place).abs() <= options.window // 2) | (place == 0) | (place[:, None] == 0)
    sides: dict[str, Callable[[], object]] = {
        "simlte_st": model_step(ours, batch, grad),
        "transformers": model_step(stock, {**batch, "global_attention_mask": first_column(ids)}, grad),
        "full": model_step(bert, batch, grad),
        "band": model_step(bert, {**batch, "attention_mask": band.expand(documents, 1, -1, -1)}, grad),
        **attention_alone(length, documents, grad, options),
    }
    seconds: dict[str, float | None] = {}
    fitting = {}
    for name, job in sides.items():
        try:
            job()
            fitting[name] = job
        except torch.OutOfMemoryError:
            seconds[name] = None
            torch.cuda.empty_cache()
    seconds |= {name: statistics.median(each) for name, each in side_by_side(fitting, options.repeats, device).items()}
    work = encoder_operations([length] * documents, options.window, SIZE) * (3 if grad else 1)
    mine = seconds["simlte_st"]
    pairs = attended_pairs(length, options.window) / length**2
    alone, plain = seconds["windowed attention"], seconds["full attention"]
    return {
        "length": length,
        "documents": documents,
        "pass": "forward + backward" if grad else "forward",
        "seconds": seconds,
        "share_of_matrix_rate": None if mine is None else work / rate / mine,
        "rate_per_pair_against_sdpa": None if alone is None or plain is None else plain * pairs / alone,
    }


def attention_alone(
    length: int, documents: int, grad: bool, options: argparse.Namespace
) -> dict[str, Callable[[], object]]:
    """Make the jobs of attention without projections: ours in windows, SDPA over everything."""
    device, dtype = options.device, getattr(torch, options.dtype)
    heads = SIZE["num_attention_heads"]
    head = SIZE["hidden_size"] // heads
    packing = pack_batch(torch.ones(documents, length, dtype=torch.bool), cls=True, device=torch.device(device))
    inputs = torch.randn(3, documents * length, heads, head, device=device, dtype=dtype)

    def windowed(x: torch.Tensor) -> torch.Tensor:
        return blocked_attention(x[0], x[1], x[2], packing, options.window)

    def full(x: torch.Tensor) -> torch.Tensor:
        batched = x.view(3, documents, length, heads, head).transpose(2, 3)
        return functional.scaled_dot_product_attention(*batched)

    return {"windowed attention": step(windowed, inputs, grad), "full attention": step(full, inputs, grad)}


def write(rows: list[dict[str, Any]], options: argparse.Namespace, rate: float) -> None:
    """Write what has been measured so far."""
    found = environment()
    header = ["tokens", "documents", "pass", "simlte_st, ms", "transformers", "full SDPA", "band SDPA"]
    cells = [
        [
            f"{row['length']:,}",
            str(row["documents"]),
            row["pass"],
            milliseconds(row["seconds"]["simlte_st"]),
            *(times(row["seconds"], name) for name in ("transformers", "full", "band")),
            share(row["share_of_matrix_rate"]),
            share(row["rate_per_pair_against_sdpa"]),
        ]
        for row in rows
    ]
    text = [
        "# The Longformer by length",
        "",
        f"MiniLM's size (6 layers, 384 hidden, 12 heads), window {options.window}, {options.dtype}, {found['device']}; "
        f"torch {found['torch']}, transformers {found['transformers']}. Medians of {options.repeats} turns, side by "
        "side in one process. Other models: times the milliseconds of simlte_st. Share of matrix rate: what the matrix "
        f"products must take at the rate of one large product ({rate / 1e12:,.2f} TFLOP/s here) over the time. Rate "
        "per pair: attended pairs a second of the attention alone, against SDPA over all pairs.",
        "",
        markdown_table([*header, "share of matrix rate", "rate per pair"], cells),
        "",
        f"    python -m benchmarks.longformer_lengths --device {options.device} --dtype {options.dtype} "
        f"--tokens {options.tokens} --repeats {options.repeats}",
        "",
    ]
    options.output.mkdir(parents=True, exist_ok=True)
    record = {"environment": found, "matrix_rate_gflops": rate / 1e9, "rows": rows}
    write_json(options.output / "longformer_lengths.json", record)
    (options.output / "longformer_lengths.md").write_text("\n".join(text), encoding="utf-8")


def milliseconds(value: float | None) -> str:
    """Format a time."""
    return "out of memory" if value is None else f"{1000 * value:.1f}"


def times(seconds: dict[str, float | None], name: str) -> str:
    """Format another side's time as a multiple of ours."""
    other, mine = seconds[name], seconds["simlte_st"]
    return "out of memory" if other is None or mine is None else f"{other / mine:.2f}x"


def share(value: float | None) -> str:
    """Format a share."""
    return "" if value is None else f"{value:.0%}"


if __name__ == "__main__":
    main()
