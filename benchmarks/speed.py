"""Speed where users are, side by side in one run: encoding, exported models, the Longformer.

    python -m benchmarks.speed --shared SHARED_DATA

Encoding: the base model in float32, and a chunk mean made of it that reads papers whole, on documents of
``20newsgroups.parquet``, ``enwiki2014.parquet`` and ``aan_papers.parquet`` (column ``text``): sentence-transformers'
own class, which sorts by characters and pads each 32 documents to the longest; this package's, which makes passes of
like lengths, and on AMD's processors with AVX-512 computes linear layers by oneDNN: without that, beside it; and the
exported model through onnxruntime, in 32 bits and in 8. The Longformer: against transformers' with the same weights.

All on one thread, in turns, timed by the process's own clock, so that what else the machine does counts less. Times:
of the medians, with the lowest and the highest of one turn. Difference: the greatest of any number of a vector to
sentence-transformers'.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import sentence_transformers
import torch

from benchmarks.longformer import SIZE, both, first_column, model_step
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import one_thread, ratio, side_by_side, spread
from simlte_st import SentenceTransformer
from simlte_st.models import passes
from simlte_st.models.conversion import convert_base
from simlte_st.models.export import export_model, load_onnx
from simlte_st.models.names import PACKAGED_BASE, find_model
from simlte_st.training.load_model import set_attention_dropout

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
    options = parser.parse_args(arguments)
    with one_thread(), TemporaryDirectory() as folder:
        models = make_models(Path(folder))
        encoding = [
            encode(
                name, read(options.shared / file, max(2, round(count * options.part))), models[whole], options.repeats
            )
            for name, file, count, whole in CASES
        ]
        longer = list(longformer(options.length, options.repeats))
        found = {"environment": environment(), "length": options.length, "encoding": encoding, "longformer": longer}
        write_results("speed", found, options.output)


def make_models(folder: Path) -> dict[bool, dict[str, Path]]:
    """Make the folders of each side's model: of the base, and of a chunk mean of it."""
    base, chunks = Path(find_model(PACKAGED_BASE)), folder / "chunks"
    convert_base(PACKAGED_BASE, chunks)
    dtypes = {ONNX: "float32", INT8: "int8"}
    exported = {side: export_model(str(base), folder / side, dtype=each).output for side, each in dtypes.items()}
    return {whole: dict.fromkeys((STOCK, PLAIN, OURS), chunks if whole else base) | ({} if whole else exported)
            for whole in (False, True)}  # fmt: skip


def load(side: str, model: Path) -> Any:
    """Load a side's model in 32 bits."""
    if side in (ONNX, INT8):
        return load_onnx(model)
    kind = sentence_transformers.SentenceTransformer if side == STOCK else SentenceTransformer
    return kind(str(model), device="cpu", model_kwargs={"dtype": torch.float32})


def read(path: Path, documents: int) -> list[str]:
    """Draw documents."""
    return Random(0).sample(pq.read_table(path, columns=["text"])["text"].to_pylist(), documents)


def encode(name: str, texts: list[str], models: dict[str, Path], repeats: int) -> dict[str, Any]:
    """Time what encodes documents, and compare the vectors."""
    vectors: dict[str, np.ndarray] = {}
    encoders = {side: load(side, model) for side, model in models.items()}

    def job(side: str) -> Callable[[], None]:
        def run() -> None:
            with patch.object(passes, "fast_products", nullcontext) if side == PLAIN else nullcontext():
                vectors[side] = encoders[side].encode(texts, show_progress_bar=False)

        return run

    seconds = side_by_side({side: job(side) for side in encoders}, repeats, clock=time.process_time)
    tokenizer = encoders[STOCK].tokenizer
    ids = tokenizer(texts, truncation=True, max_length=encoders[STOCK].max_seq_length)["input_ids"]
    return {
        "case": name,
        "documents": len(texts),
        "tokens": sum(map(len, ids)),
        "seconds": seconds,
        "difference": {side: float(np.abs(found - vectors[STOCK]).max()) for side, found in vectors.items()},
    }


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


def times(seconds: dict[str, list[float]], side: str, other: str) -> str:
    """Write how many times as fast as another a side is, with the lowest and the highest of one turn."""
    low, high = spread(seconds[other], seconds[side])
    return f"{ratio(seconds[other], seconds[side]):.2f}x [{low:.2f}, {high:.2f}]"


def page(found: dict[str, Any]) -> str:
    """Return the page of the results."""
    return document(
        "# Speed",
        explanation(__doc__),
        "## Encoding",
        table(
            {
                "documents": f"{row['case']} ({row['documents']}, {row['tokens']:,} tokens)",
                "with": side,
                "documents a second": f"{row['documents'] / statistics.median(seconds):.1f}",
                "tokens a second": f"{row['tokens'] / statistics.median(seconds):,.0f}",
                "times": "" if side == STOCK else times(row["seconds"], side, STOCK),
                "difference": "" if side == STOCK else f"{row['difference'][side]:.0e}",
            }
            for row in found["encoding"]
            for side, seconds in row["seconds"].items()
        ),
        "## The Longformer",
        f"MiniLM's size, one document of {found['length']:,} tokens, against transformers' with the same weights. This "
        "process has held much memory before, and has it at hand. A fresh process asks the system for it in each step "
        "anew, and transformers' Longformer, which needs several times as much as ours, is then slower, in bfloat16 "
        "most of all: that is in [longformer.md](longformer.md). The whole training step is in "
        "[training.md](training.md).",
        table(
            {
                "dtype": row["dtype"],
                "pass": row["pass"],
                "attention dropout": f"{row['dropout']:g}",
                "tokens a second": f"{found['length'] / statistics.median(row['seconds'][OURS]):,.0f}",
                "times transformers'": times(row["seconds"], OURS, "transformers"),
            }
            for row in found["longformer"]
        ),
        machines=[found["environment"]],
        command="python -m benchmarks.speed --shared SHARED_DATA",
    )


if __name__ == "__main__":
    main()
