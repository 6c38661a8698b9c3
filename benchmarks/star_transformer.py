"""Time and memory of the Star Transformer by length, compared with full attention.

    python -m benchmarks.star_transformer

Both sides pool the same random token embeddings of one document, of MiniLM's width (384, 12 heads), into one vector:
the Star Transformer in two rounds, and the mean after two layers of full attention (torch's fused kernel). Neither has
a feed-forward layer. The sides take turns in one process. Memory is the peak increase of a separate process in a
forward and backward pass.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import process_memory, ratio, ratio_range, run_module, side_by_side
from simlte_st.evaluation.table import markdown_table
from simlte_st.modules import StarTransformer

LAYERS, WIDTH, HEADS = 2, 384, 12
SIDES = ("Star Transformer", "full attention")
PASSES = {"forward": False, "forward + backward": True}


def make_side(name: str, length: int) -> Callable[[Tensor], Tensor]:
    """Return a function from token embeddings ``[1, length, 384]`` to a vector ``[1, 384]``."""
    torch.manual_seed(0)
    if name == "Star Transformer":
        star, mask = StarTransformer(WIDTH, heads=HEADS, rounds=LAYERS), torch.ones(1, length, dtype=torch.bool)
        return lambda x: star.pool(x, mask)[0]
    layers = nn.ModuleList(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(LAYERS))

    def full(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x, x, x, need_weights=False)[0]
        return x.mean(dim=1)

    return full


def make_step(name: str, length: int, grad: bool) -> Callable[[], None]:
    """Make a job that runs a side's forward pass and, with ``grad``, its backward pass."""
    side, hidden = make_side(name, length), torch.randn(1, length, WIDTH)

    def job() -> None:
        inputs = hidden.clone().requires_grad_(grad)
        with torch.set_grad_enabled(grad):
            output = side(inputs)
        if grad:
            output.square().mean().backward()

    return job


def peak_increase(name: str, length: int) -> int:
    """Measure the peak memory in bytes of a forward and backward pass; needs a process of its own."""
    job = make_step(name, length, True)
    make_step(name, 64, True)()  # the libraries' one-time allocations
    before = process_memory()
    job()
    return max(0, process_memory(peak=True) - before)


def measure_length(length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure both sides at a length."""
    seconds = {
        title: side_by_side({name: make_step(name, length, grad) for name in SIDES}, options.repeats)
        for title, grad in PASSES.items()
    }
    settings = {"lengths": length, "threads": options.threads}
    peaks = {name: run_module("benchmarks.star_transformer", peak=name, **settings) for name in SIDES}
    return {"length": length, "seconds": seconds, "bytes": peaks}


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    rows, blocks = record["rows"], []
    repeats = len(next(iter(rows[0]["seconds"]["forward"].values())))
    for title in PASSES:
        cells = []
        for row in rows:
            ours, full = (row["seconds"][title][name] for name in SIDES)
            low, high = ratio_range(full, ours)
            median = statistics.median(ours)
            times = [f"{1000 * median:,.1f}", f"{1e6 * median / row['length']:.1f}"]
            cells.append([f"{row['length']:,}", *times, f"{ratio(full, ours):.2f}x ({low:.2f} to {high:.2f})"])
        header = ["tokens", f"{SIDES[0]}, ms", "microseconds a token", SIDES[1]]
        blocks += [f"## Time, {title}", markdown_table(header, cells)]
    peaks = [[f"{row['length']:,}", *(f"{row['bytes'][name] / 2**20:,.0f}" for name in SIDES)] for row in rows]
    return document(
        "# The Star Transformer by length",
        f"One document, width {WIDTH}, {HEADS} heads, float32: the Star Transformer with {LAYERS} "
        f"rounds, and {LAYERS} layers of full attention. Medians of {repeats} turns, side by side in one "
        "process. Full attention's time is given as a multiple of the Star Transformer's, with the lowest and "
        "highest of a turn.",
        *blocks,
        "## Peak memory, forward + backward, MiB",
        markdown_table(["tokens", *SIDES], peaks),
        machines=[record["environment"]],
        command=f"python -m benchmarks.star_transformer --repeats {repeats}",
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--results")
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[2**power for power in range(7, 15)], help="default: 128 to 16384"
    )
    parser.add_argument("--repeats", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--peak", choices=SIDES, help=argparse.SUPPRESS)  # in a side's own process
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    if options.peak:
        print(peak_increase(options.peak, options.lengths[0]))
        return
    rows = [measure_length(length, options) for length in options.lengths]
    write_results("star_transformer", {"environment": environment(), "rows": rows}, options.results)


if __name__ == "__main__":
    main()
