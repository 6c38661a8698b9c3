"""Speed where users are, side by side in one run: encoding, the Longformer, exported models.

    python -m benchmarks.speed --shared SHARED_DATA

Encoding: the base model, and a chunk mean made of it that reads papers whole, on documents of ``20newsgroups.parquet``,
``enwiki2014.parquet`` and ``aan_papers.parquet`` (column ``text``): sentence-transformers' own class, this package's,
and the exported model through onnxruntime, in 32 bits and in 8. The Longformer: against transformers' with the same
weights, in 32 bits and in bfloat16, with attention dropout and without. Training: a step of the default, in bfloat16,
with PyTorch's fused attention and with what short views have instead of it. All on one thread, in turns, timed by the
process's own clock, so that what else the machine does counts less. Memory is what encoding adds to a process of its
own. Results go to ``results/speed.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import sentence_transformers
import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from benchmarks.longformer import SIZE, both, first_column, model_step
from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import one_thread, own_process, ratio, resident, side_by_side, spread
from simlte_st import SentenceTransformer
from simlte_st.evaluation.table import markdown_table
from simlte_st.models import passes
from simlte_st.models.conversion import convert_base
from simlte_st.models.export import export_onnx
from simlte_st.models.names import PACKAGED_BASE, find_model
from simlte_st.models.onnx_encoder import load_onnx
from simlte_st.training.config import get_preset
from simlte_st.training.dropout import set_attention_dropout, set_dropout
from simlte_st.training.fit import MOST_TOKENS, faster_attention

STOCK, OURS, ONNX, INT8 = "sentence-transformers", "simlte_st", "onnx", "onnx int8"
PLAIN = "simlte_st without oneDNN"
# What is encoded: a name, the file, how many documents in one call, and whether they are read whole, in chunks.
CASES = [
    ("posts", "20newsgroups.parquet", 200, False),
    ("posts, one batch", "20newsgroups.parquet", 32, False),
    ("Wikipedia articles", "enwiki2014.parquet", 64, False),
    ("papers", "aan_papers.parquet", 32, False),
    ("whole papers, in chunks", "aan_papers.parquet", 4, True),
]


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--part", type=float, default=1.0, help="of the documents (default: all)")
    parser.add_argument("--length", type=int, default=4096, metavar="N", help="of the Longformer's document")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="turns (default: %(default)s)")
    parser.add_argument("--peak", nargs=4, help=argparse.SUPPRESS)  # side, folder of the model, file, documents
    options = parser.parse_args(arguments)
    with one_thread():
        if options.peak:
            print(json.dumps(memory_of(*options.peak)))
            return
        found: dict[str, Any] = {
            "environment": environment(), "length": options.length, "encoding": [], "longformer": [], "training": []
        }  # fmt: skip
        with TemporaryDirectory() as folder:
            models = make_models(Path(folder))
            for name, file, documents, whole in CASES:
                texts = read(options.shared / file, max(2, round(documents * options.part)))
                found["encoding"].append(encode(name, texts, models[whole], options))
                write_results("speed", found, options.output, aloud=False)
            for row in longformer(options.length, options.repeats):
                found["longformer"].append(row)
                write_results("speed", found, options.output, aloud=False)
            for row in training(options.shared / CASES[0][1], options.repeats):
                found["training"].append(row)
                write_results("speed", found, options.output, aloud=False)
            for row, (_, file, _, whole) in zip(found["encoding"], CASES, strict=True):
                row["bytes"] = peaks(models[whole], options.shared / file, row["documents"])
        write_results("speed", found, options.output)


def make_models(folder: Path) -> dict[bool, dict[str, Path]]:
    """Make the folders of each side's model: of the base, and of a chunk mean of it."""
    base, chunks = Path(find_model(PACKAGED_BASE)), folder / "chunks"
    convert_base(PACKAGED_BASE, chunks)
    exported = {side: Path(export_onnx(str(base), folder / side, int8=side == INT8).output) for side in (ONNX, INT8)}
    whole = {STOCK: chunks, PLAIN: chunks, OURS: chunks}
    return {False: {STOCK: base, PLAIN: base, OURS: base, **exported}, True: whole}


def load(side: str, model: Path) -> Any:
    """Load a side's model in 32 bits."""
    if side in (ONNX, INT8):
        return load_onnx(model)
    kind = sentence_transformers.SentenceTransformer if side == STOCK else SentenceTransformer
    return kind(str(model), device="cpu", model_kwargs={"dtype": torch.float32})


def read(path: Path, documents: int) -> list[str]:
    """Draw documents."""
    return Random(0).sample(pq.read_table(path, columns=["text"])["text"].to_pylist(), documents)


def encode(name: str, texts: list[str], models: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    """Time what encodes documents, and compare the vectors."""
    vectors: dict[str, np.ndarray] = {}
    encoders = {side: load(side, model) for side, model in models.items()}

    def job(side: str) -> Callable[[], None]:
        def run() -> None:
            with patch.object(passes, "fast_products", nullcontext) if side == PLAIN else nullcontext():
                vectors[side] = encoders[side].encode(texts, show_progress_bar=False)

        return run

    seconds = side_by_side({side: job(side) for side in encoders}, options.repeats, clock=time.process_time)
    tokenizer = encoders[STOCK].tokenizer
    ids = tokenizer(texts, truncation=True, max_length=encoders[STOCK].max_seq_length)["input_ids"]
    return {
        "case": name,
        "documents": len(texts),
        "tokens": sum(map(len, ids)),
        "seconds": seconds,
        "difference": {side: float(np.abs(found - vectors[STOCK]).max()) for side, found in vectors.items()},
    }


def peaks(models: dict[str, Path], file: Path, documents: int) -> dict[str, int]:
    """Measure what encoding takes of memory in both classes, each in a process of its own, in bytes."""
    found = {}
    for side in (STOCK, OURS):
        command = ["benchmarks.speed", "--shared", str(file.parent)]
        command += ["--peak", side, str(models[side]), str(file), str(documents)]
        found[side] = int(own_process(command))
    return found


def memory_of(side: str, model: str, file: str, documents: str) -> int:
    """Encode once; give the bytes that this process had at most beyond those that it had with the model loaded."""
    encoder, texts = load(side, Path(model)), read(Path(file), int(documents))
    encoder.encode(["warm"], show_progress_bar=False)
    before = resident()
    encoder.encode(texts, show_progress_bar=False)
    return max(0, resident(peak=True) - before)


def longformer(length: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Time our Longformer against transformers'."""
    ids = torch.randint(1000, SIZE["vocab_size"], (1, length), generator=torch.Generator().manual_seed(0))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    marked = {**batch, "global_attention_mask": first_column(ids)}
    for dtype in (torch.float32, torch.bfloat16):
        for name, dropout in (("forward", 0.0), ("with backward", 0.0), ("with backward", 0.1)):
            grad = name != "forward"
            torch.manual_seed(0)
            stock, ours = (model.to(dtype).train(grad) for model in both(min(512, length // 4), length))
            for model in (stock, ours):
                set_attention_dropout(model, dropout)
            jobs = {"transformers": model_step(stock, marked, grad), OURS: model_step(ours, batch, grad)}
            seconds = side_by_side(jobs, repeats, clock=time.process_time)
            yield {"dtype": str(dtype)[6:], "pass": name, "dropout": dropout, "seconds": seconds}


def training(file: Path, repeats: int) -> Iterator[dict[str, Any]]:
    """Time a step of the default preset on views of some lengths, in bfloat16, with both kinds of attention."""
    preset = get_preset("docsplit-tuned")
    texts = read(file, preset.batch_size)
    for length in (64, MOST_TOKENS):
        model = load(STOCK, Path(find_model(PACKAGED_BASE))).train()
        model.max_seq_length = min(length, model.max_seq_length)
        set_dropout(model, 0.0)
        loss = MultipleNegativesRankingLoss(model, scale=preset.scale)
        optimizer = torch.optim.AdamW(model.parameters(), lr=preset.learning_rate)
        views = 2 * [model.preprocess(texts)]
        jobs = {side: partial(train_step, loss, optimizer, views, side == OURS) for side in (STOCK, OURS)}
        tokens = sum(int(view["attention_mask"].sum()) for view in views)
        yield {"length": length, "tokens": tokens, "seconds": side_by_side(jobs, repeats, clock=time.process_time)}


def train_step(loss: Any, optimizer: torch.optim.Optimizer, views: list[dict[str, Any]], in_parts: bool) -> None:
    """Train on a batch; ``in_parts`` decides the attention."""
    with faster_attention(loss.model, torch.bfloat16) if in_parts else nullcontext():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = loss([dict(view) for view in views], None)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()


def times(seconds: dict[str, list[float]], side: str, other: str) -> str:
    """Write how many times as fast as another a side is, with the lowest and the highest of one turn."""
    low, high = spread(seconds[other], seconds[side])
    return f"{ratio(seconds[other], seconds[side]):.2f}x [{low:.2f}, {high:.2f}]"


def page(found: dict[str, Any]) -> str:
    """Return the page of what has been measured so far."""
    repeats = len(next(iter(found["encoding"][0]["seconds"].values())))
    encoding = [
        [
            f"{row['case']} ({row['documents']}, {row['tokens']:,} tokens)",
            side,
            f"{row['documents'] / statistics.median(row['seconds'][side]):.1f}",
            f"{row['tokens'] / statistics.median(row['seconds'][side]):,.0f}",
            "" if side == STOCK else times(row["seconds"], side, STOCK),
            f"{row['bytes'][side] / 2**20:,.0f}" if side in row.get("bytes", {}) else "",
            "" if side == STOCK else f"{row['difference'][side]:.0e}",
        ]
        for row in found["encoding"]
        for side in row["seconds"]
    ]
    layers = [
        [
            row["dtype"],
            row["pass"],
            f"{row['dropout']:g}",
            f"{found['length'] / statistics.median(row['seconds'][OURS]):,.0f}",
            times(row["seconds"], OURS, "transformers"),
        ]
        for row in found["longformer"]
    ]
    steps = [
        [
            f"{row['length']}",
            f"{row['tokens'] / statistics.median(row['seconds'][OURS]):,.0f}",
            times(row["seconds"], OURS, STOCK),
        ]
        for row in found["training"]
    ]
    header = ["documents", "with", "documents a second", "tokens a second", "times", "memory, MiB", "difference"]
    return document(
        "# Speed",
        f"One thread; {repeats} turns side by side in one process, after one that is not counted. Seconds are "
        "the process's own, so that other work on the machine counts less. Times: of the medians, with the lowest and "
        "the highest of one turn.",
        "## Encoding",
        f"{PACKAGED_BASE} in float32; in chunks, a chunk mean of it. sentence-transformers sorts by characters and "
        "pads each 32 documents to the longest; simlte_st makes passes of like lengths, and on AMD's processors with "
        "AVX-512 computes linear layers by oneDNN: without that, beside it. Memory: what encoding adds. "
        "Difference: the greatest of any number of a vector to sentence-transformers'.",
        markdown_table(header, encoding),
        "## The Longformer",
        f"MiniLM's size, one document of {found['length']:,} tokens, against transformers' with the same weights. This "
        "process has held much memory before, and has it at hand. A fresh process asks the system for it in each step "
        "anew, and transformers' Longformer, which needs several times as much as ours, is then slower, in bfloat16 "
        "most of all: that is in [longformer.md](longformer.md), with the share of the machine's matrix rate. The "
        "whole training step is in [training.md](training.md), the quality of exported models in "
        "[export.md](export.md).",
        markdown_table(["dtype", "pass", "attention dropout", "tokens a second", "times transformers'"], layers),
        "## Training",
        f"A step of the default preset in bfloat16: {PACKAGED_BASE}, two views of each of 32 posts. PyTorch's fused "
        f"attention is slow in its backward pass there; views of up to {MOST_TOKENS} tokens go through four operations "
        "in its place.",
        markdown_table(["tokens of a view", "tokens a second", "times fused attention"], steps),
        machines=[found["environment"]],
        command="python -m benchmarks.speed --shared SHARED_DATA",
    )


if __name__ == "__main__":
    main()
