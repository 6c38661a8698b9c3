"""The Star Transformer's time and memory by length, beside full attention and our Longformer's windows.

    python -m benchmarks.star_transformer

Each side reads the same random token embeddings of one document, of MiniLM's width (384, 12 heads), and gives one
vector: the Star Transformer in its two rounds; two layers of full attention (torch's, with its fused kernel) and their
mean; two attention layers of our Longformer, in windows of 512, and their mean. None has a feed-forward layer. What is
compared takes turns in one process; memory is the peak that a process of its own reaches beyond what it had when the
side stood, in a forward and backward pass.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.figures import drawn_figure
from benchmarks.longformer import SIZE, both, step
from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import own_process, ratio, resident, side_by_side, spread
from simlte_st.evaluation.table import markdown_table
from simlte_st.longformer.packing import pack_batch
from simlte_st.modules import StarTransformer

LAYERS = 2
WIDTH, HEADS = SIZE["hidden_size"], SIZE["num_attention_heads"]
SIDES = ("Star Transformer", "full attention", "Longformer")
PASSES = {"forward": False, "forward + backward": True}


def make_side(name: str, length: int, window: int) -> Callable[[Tensor], Tensor]:
    """Make a function from token embeddings ``[1, length, 384]`` to a vector ``[1, 384]``."""
    torch.manual_seed(0)
    mask = torch.ones(1, length, dtype=torch.bool)
    if name == "Star Transformer":
        star = StarTransformer(WIDTH, heads=HEADS, rounds=LAYERS)
        return lambda x: star.pool(x, mask)[0]
    if name == "full attention":
        layers = nn.ModuleList(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(LAYERS))

        def full(x: Tensor) -> Tensor:
            for layer in layers:
                x = layer(x, x, x, need_weights=False)[0]
            return x.mean(dim=1)

        return full
    _, longformer = both(window, window)
    windows = [layer.attention.self for layer in longformer.encoder.layer[:LAYERS]]
    packing = pack_batch(mask, cls=True, device=torch.device("cpu"))

    def windowed(x: Tensor) -> Tensor:
        rows = packing.pack(x)
        for layer in windows:
            rows = layer(rows, packing, "sdpa")
        return rows[:length].mean(dim=0, keepdim=True)

    return windowed


def peak(name: str, length: int, window: int) -> int:
    """Measure the peak of a forward and backward pass, in bytes: the first of this process."""
    side, hidden = make_side(name, length, window), torch.randn(1, length, WIDTH)
    step(make_side(name, 64, window), torch.randn(1, 64, WIDTH), True)()  # what the libraries allocate once
    before = resident()
    step(side, hidden, True)()
    return max(0, resident(peak=True) - before)


def measure(length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure all sides at one length."""
    hidden = torch.randn(1, length, WIDTH)
    sides = {name: make_side(name, length, options.window) for name in SIDES}
    seconds = {
        title: side_by_side({name: step(side, hidden, grad) for name, side in sides.items()}, options.repeats)
        for title, grad in PASSES.items()
    }
    memory = {}
    for name in SIDES:
        command = ["benchmarks.star_transformer", "--peak", name, "--lengths", str(length)]
        command += ["--window", str(options.window), "--threads", str(options.threads)]
        memory[name] = int(own_process(command))
    return {"length": length, "seconds": seconds, "bytes": memory}


def page(record: dict[str, Any]) -> str:
    """Return tables of all lengths."""
    rows, blocks = record["rows"], []
    repeats = len(next(iter(rows[0]["seconds"]["forward"].values())))
    for title in PASSES:
        table = []
        for row in rows:
            mine, *others = (row["seconds"][title][name] for name in SIDES)
            median = statistics.median(mine)
            cells = [f"{row['length']:,}", f"{1000 * median:,.1f}", f"{1e6 * median / row['length']:.1f}"]
            for other in others:
                low, high = spread(other, mine)
                cells.append(f"{ratio(other, mine):.2f}x ({low:.2f} to {high:.2f})")
            table.append(cells)
        header = ["tokens", f"{SIDES[0]}, ms", "microseconds a token", *SIDES[1:]]
        blocks += [f"## Time, {title}", markdown_table(header, table)]
    table = [[f"{row['length']:,}", *(f"{row['bytes'][name] / 2**20:,.0f}" for name in SIDES)] for row in rows]
    return document(
        "# The Star Transformer by length",
        f"One document, width {WIDTH}, {HEADS} heads, float32: the Star Transformer in {LAYERS} rounds; {LAYERS} "
        f"layers of full attention; {LAYERS} attention layers of our Longformer, windows of {record['window']}. "
        f"Medians of {repeats} turns, side by side in one process. The others' columns are times the Star "
        "Transformer's, with the lowest and highest of one turn.",
        *blocks,
        "## Peak memory, forward + backward, MiB",
        markdown_table(["tokens", *SIDES], table),
        "![time and memory](star_transformer.svg)",
        machines=[record["environment"]],
        command=f"python -m benchmarks.star_transformer --repeats {repeats}",
    )


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw time and memory of a training step over the length."""
    lengths = [row["length"] for row in rows]
    with drawn_figure(path, (7.4, 3.2)) as figure:
        left, right = figure.subplots(1, 2)
        for number, (name, marker) in enumerate(zip(SIDES, "os^", strict=True)):
            times = [1000 * statistics.median(row["seconds"]["forward + backward"][name]) for row in rows]
            left.plot(lengths, times, f"{marker}-", color=f"C{number}", label=name)
            right.plot(lengths, [row["bytes"][name] / 2**20 for row in rows], f"{marker}-", color=f"C{number}")
        for axes, title in ((left, "time, ms"), (right, "peak memory, MiB")):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xlabel("tokens")
            axes.set_title(f"forward + backward: {title}", fontsize=9)
        left.legend(fontsize=7)
        figure.tight_layout()


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--results")
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[2**power for power in range(7, 15)], help="default: 128 to 16384"
    )
    parser.add_argument("--window", type=int, default=512, help="of the Longformer (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--peak", choices=SIDES, help=argparse.SUPPRESS)  # a process for one side
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    if options.peak:
        print(peak(options.peak, options.lengths[0], options.window))
        return
    rows = []
    for length in options.lengths:
        rows.append(measure(length, options))
        print(f"{length} tokens: measured", flush=True)
    draw(rows, options.results / "star_transformer.svg")
    record = {"environment": environment(), "window": options.window, "rows": rows}
    write_results("star_transformer", record, options.results)


if __name__ == "__main__":
    main()
