"""Speed of encoding, exported models and the Longformer, side by side in one run.

    python -m benchmarks.speed --shared SHARED_DATA

Encoding: the base in float32, and its mean over chunks for whole papers, on documents in ``20newsgroups.parquet``,
``enwiki2014.parquet`` and ``aan_papers.parquet`` (column ``text``). The sides are sentence-transformers' class, which
sorts by characters and pads each batch of 32 documents; this package's class, which batches texts of similar length
and uses oneDNN for linear layers on AMD processors with AVX-512 (also shown without oneDNN); and the model exported to
onnxruntime, in 32 and 8 bits. The Longformer is compared with transformers' with the same weights.

Static: the shipped model with 256 dimensions on whole documents. This package's class reads token by token if further
modules follow, and otherwise word by word, with an empty (cold) or filled (warm) cache of words. model2vec drops
unknown tokens. ``--static`` measures only this part and keeps the rest of the page.

All sides take turns on one thread and are timed in CPU time, so that other work on the machine matters less. Ratios
compare medians; their range is over turns. Difference is the largest absolute difference from sentence-transformers'
embeddings.
"""

from __future__ import annotations

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
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow.parquet as pq
import sentence_transformers
import torch
from model2vec import StaticModel

from benchmarks.longformer import SIZE, first_column, make_longformers, model_step
from benchmarks.pages import RESULTS, document, explanation, table, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import ratio, ratio_range, side_by_side
from simlte_st import SentenceTransformer, load_onnx
from simlte_st.compat import readable_length, reserved_tokens
from simlte_st.files import read_json
from simlte_st.models import passes, static
from simlte_st.models.conversion import convert_base
from simlte_st.models.export import export_model
from simlte_st.models.names import PACKAGED_BASE, find_model
from simlte_st.training.prepare_model import set_attention_dropout
from simlte_st.words import tokens

STOCK, OURS, ONNX, INT8 = "sentence-transformers", "simlte_st", "onnx", "onnx int8"
PLAIN = "simlte_st without oneDNN"
# Name, file, number of documents per call, and whether to read whole documents in chunks.
CASES = [
    ("posts", "20newsgroups.parquet", 200, False),
    ("posts, one batch", "20newsgroups.parquet", 32, False),
    ("Wikipedia articles", "enwiki2014.parquet", 64, False),
    ("papers", "aan_papers.parquet", 32, False),
    ("whole papers, in chunks", "aan_papers.parquet", 4, True),
]
STATIC_MODEL = "simlte-static"
STATIC_CASES = [("papers", "aan_papers.parquet", 100), ("Wikipedia articles", "enwiki2014.parquet", 1000)]


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--part", type=float, default=1.0, help="share of the documents (default: all)")
    parser.add_argument("--length", type=int, default=4096, metavar="N", help="tokens of the Longformer's document")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="number of turns (default: %(default)s)")
    parser.add_argument("--static", action="store_true", help="measure only static models, and keep the other results")
    options = parser.parse_args(arguments)

    def texts(file: str, count: int) -> list[str]:
        return draw_texts(options.shared / file, max(2, round(count * options.part)))

    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        turns, sides = options.repeats, static_sides(Path(folder, "static"))
        words = [time_encoders(name, texts(*case), sides, turns) for name, *case in STATIC_CASES]
        if options.static:
            record = read_json((options.output or RESULTS) / "speed.json") | {"static": words}
        else:
            models = export_models(Path(folder))
            record = {
                "environment": environment(),
                "length": options.length,
                "encoding": [
                    time_encoders(name, texts(*case), models[chunked], turns) for name, *case, chunked in CASES
                ],
                "static": words,
                "longformer": list(time_longformer(options.length, turns)),
            }
        write_results("speed", record, options.output)


def export_models(folder: Path) -> dict[bool, dict[str, Path]]:
    """Return each side's model folder, for truncated documents (False) and whole documents in chunks (True)."""
    base, chunks = Path(find_model(PACKAGED_BASE)), folder / "chunks"
    convert_base(PACKAGED_BASE, chunks)
    dtypes = {ONNX: "float32", INT8: "int8"}
    exported = {side: export_model(str(base), folder / side, dtype=dtype).output for side, dtype in dtypes.items()}
    sides = (STOCK, PLAIN, OURS)
    return {False: dict.fromkeys(sides, base) | exported, True: dict.fromkeys(sides, chunks)}


def load_side(side: str, model: Path) -> Any:
    """Load a side's model in float32."""
    if side in (ONNX, INT8):
        return load_onnx(model)
    library = sentence_transformers.SentenceTransformer if side == STOCK else SentenceTransformer
    loaded = library(str(model), device="cpu", model_kwargs={"dtype": torch.float32})
    return PatchedModel(loaded, passes, "fast_products", lambda: nullcontext) if side == PLAIN else loaded


def draw_texts(path: Path, documents: int) -> list[str]:
    """Draw texts from a file."""
    texts = pq.read_table(path, columns=["text"])["text"].to_pylist()
    return Random(0).sample(texts, min(documents, len(texts)))


class PatchedModel:
    """A model that encodes with an attribute replaced by the result of ``make``."""

    def __init__(self, model: Any, owner: Any, name: str, make: Callable[[], Any]) -> None:
        self.model, self.change = model, lambda: patch.object(owner, name, new_callable=make)

    def encode(self, texts: list[str], **options: Any) -> Any:
        """Encode with the patch applied."""
        with self.change():
            return self.model.encode(texts, **options)


def static_sides(folder: Path) -> dict[str, Any]:
    """Load the shipped static model with each library."""
    shipped = SentenceTransformer(STATIC_MODEL, device="cpu")
    stock = sentence_transformers.SentenceTransformer(modules=[*shipped], device="cpu")
    stock.save_pretrained(str(folder))
    ours, theirs = SentenceTransformer(folder, device="cpu"), StaticModel.from_pretrained(folder, normalize=True)
    theirs.max_length = None  # its default is 512 tokens
    return {
        STOCK: stock,
        "model2vec": theirs,
        f"{OURS}, by tokens": PatchedModel(ours, static, "adds_up", lambda: lambda _: False),
        f"{OURS}, cold": PatchedModel(ours, tokens, "_CACHES", WeakKeyDictionary),
        f"{OURS}, warm": ours,
    }


def time_encoders(name: str, texts: list[str], models: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Time encoders, and compare their vectors."""
    vectors: dict[str, np.ndarray] = {}
    encoders = {side: load_side(side, model) if isinstance(model, Path) else model for side, model in models.items()}

    def encode(side: str) -> None:
        vectors[side] = encoders[side].encode(texts, show_progress_bar=False)

    seconds = side_by_side({side: partial(encode, side) for side in encoders}, repeats, clock=time.process_time)
    stock, special = encoders[STOCK], reserved_tokens(encoders[STOCK], "")
    lengths = [length + special for length in tokens.count_tokens(stock.tokenizer, texts)]
    return {
        "case": name,
        "documents": len(texts),
        "words": sum(len(text.split()) for text in texts),
        "tokens": sum(min(length, readable_length(stock) or length) for length in lengths),
        "seconds": seconds,
        "difference": {side: float(np.abs(rows - vectors[STOCK]).max()) for side, rows in vectors.items()},
    }


def time_longformer(length: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Time our Longformer and transformers'."""
    ids = torch.randint(1000, SIZE["vocab_size"], (1, length), generator=torch.Generator().manual_seed(0))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    marked = {**batch, "global_attention_mask": first_column(ids)}
    for dtype in (torch.float32, torch.bfloat16):
        for name, dropout in (("forward", 0.0), ("with backward", 0.0), ("with backward", 0.1)):
            grad = name != "forward"
            torch.manual_seed(0)
            stock, ours = (model.to(dtype).train(grad) for model in make_longformers(min(512, length // 4), length))
            for model in (stock, ours):
                set_attention_dropout(model, dropout)
            jobs = {"transformers": model_step(stock, marked, grad), OURS: model_step(ours, batch, grad)}
            seconds = side_by_side(jobs, repeats, clock=time.process_time)
            yield {"dtype": str(dtype)[6:], "pass": name, "dropout": dropout, "seconds": seconds}


def format_speedup(seconds: dict[str, list[float]], side: str, baseline: str) -> str:
    """Format a side's speedup over another, with its range over turns."""
    low, high = ratio_range(seconds[baseline], seconds[side])
    return f"{ratio(seconds[baseline], seconds[side]):.2f}x [{low:.2f}, {high:.2f}]"


def rate_table(rows: list[dict[str, Any]], unit: str) -> str:
    """Tabulate documents and tokens (or words) per second."""
    return table(
        {
            "documents": f"{row['case']} ({row['documents']}, {row[unit]:,} {unit})",
            "with": side,
            "documents a second": f"{row['documents'] / statistics.median(seconds):.1f}",
            f"{unit} a second": f"{row[unit] / statistics.median(seconds):,.0f}",
            "speedup": "" if side == STOCK else format_speedup(row["seconds"], side, STOCK),
            "difference": "" if side == STOCK else f"{row['difference'][side]:.0e}",
        }
        for row in rows
        for side, seconds in row["seconds"].items()
    )


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    return document(
        "# Speed",
        explanation(__doc__),
        "## Encoding",
        rate_table(record["encoding"], "tokens"),
        "## Static models",
        rate_table(record["static"], "words"),
        "## The Longformer",
        f"A model of MiniLM's size on one document of {record['length']:,} tokens, against transformers' with the "
        "same weights. This process already holds enough memory. A fresh process requests memory from the "
        "system in each step, which slows down transformers' Longformer, because it needs several times as "
        "much as ours, especially in bfloat16: see [longformer.md](longformer.md). The whole training "
        "step is in [training.md](training.md).",
        table(
            {
                "dtype": row["dtype"],
                "pass": row["pass"],
                "attention dropout": f"{row['dropout']:g}",
                "tokens a second": f"{record['length'] / statistics.median(row['seconds'][OURS]):,.0f}",
                "speedup": format_speedup(row["seconds"], OURS, "transformers"),
            }
            for row in record["longformer"]
        ),
        machines=[record["environment"]],
        command="python -m benchmarks.speed --shared SHARED_DATA",
    )


if __name__ == "__main__":
    main()
