"""Documents a second by length, the basis of ``docs/scale.md``.

    python -m benchmarks.encode_rates
    python -m benchmarks.encode_rates --device cuda --bf16 --tokens 262144

Documents consist of words of BBC News and have an exact number of tokens, special tokens included. The shipped models
encode them as ``simlte encode`` does, up to their maximum length. CPU runs report CPU time on one core, GPU runs
report wall time. Numbers are medians of several runs after one warm-up. Beside the BERT models, stock
sentence-transformers' ``encode`` takes turns with the same texts and batch size, with PyTorch's fused attention (sdpa)
and, on a GPU in bfloat16 with the package ``flash_attn``, with FlashAttention 2.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from benchmarks.datasets.bbc import packaged_corpus_path
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import compute_dtype, environment, make_parser
from benchmarks.timing import side_by_side
from simlte_st.compat import get_encoder
from simlte_st.data import read_documents
from simlte_st.models.loading import load_model, model_source
from simlte_st.models.names import OWN_ENCODERS, PACKAGED_BASE
from simlte_st.models.parts import encode_counted

STOCK = ", stock "
"""Separates a model's name and the attention of stock sentence-transformers."""


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output", "--bf16")
    parser.add_argument("--models", nargs="+", default=[PACKAGED_BASE, *OWN_ENCODERS])
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 256, 512, 1024, 2048, 4096])
    parser.add_argument("--tokens", type=int, default=8192, help="total tokens of one turn (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="number of turns")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args(argv)
    if options.device == "cpu":
        torch.set_num_threads(1)
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    rates: dict[str, dict[int, float]] = {}
    for name in options.models:
        model = load_model(name, device=options.device).model.to(compute_dtype(options.bf16))
        sides = {name: partial(encode_counted, model), **stock_sides(name, model, options)}
        for length in [each for each in options.lengths if each <= (model.max_seq_length or each)]:
            texts = texts_of(model, length, max(1, options.tokens // length))
            batch_size = max(1, min(256, 16_384 // length))
            jobs = {side: partial(encode, texts, batch_size=batch_size) for side, encode in sides.items()}
            for side, seconds in side_by_side(jobs, options.repeats, options.device, clock).items():
                rates.setdefault(side, {})[length] = len(texts) / statistics.median(seconds)
                print(f"{side}, {length} tokens: {rates[side][length]:,.2f} documents a second", flush=True)
    settings = {name: getattr(options, name) for name in ("device", "tokens", "repeats")}
    record = {"rates": rates, **settings, "environment": environment(compute_dtype(options.bf16))}
    write_results(f"encode_rates_{options.device}", record, options.output)


def stock_sides(name: str, model: SentenceTransformer, options: argparse.Namespace) -> dict[str, Callable[..., object]]:
    """Return ``encode`` of a BERT model loaded with stock sentence-transformers, by name and attention."""
    sides: dict[str, Callable[..., object]] = {}
    if get_encoder(model).config.model_type == "bert":
        flash = options.device == "cuda" and options.bf16 and find_spec("flash_attn") is not None
        if not flash:
            print("Without flash_attention_2, which needs a GPU, --bf16 and the package flash_attn.", flush=True)
        for attention in ("sdpa", *["flash_attention_2"] * flash):
            settings = {"attn_implementation": attention, "dtype": compute_dtype(options.bf16)}
            stock = SentenceTransformer(str(model_source(name)), device=options.device, model_kwargs=settings)
            stock.max_seq_length = model.max_seq_length
            sides[f"{name}{STOCK}{attention}"] = stock.encode
    return sides


def texts_of(model: SentenceTransformer, length: int, count: int) -> list[str]:
    """Make texts with exactly this many tokens, special tokens included."""
    special = model.tokenizer.num_special_tokens_to_add()
    words = (word for document in read_documents(packaged_corpus_path(), encoding="latin-1") for word in
             document.text.lower().split() if word.isalpha() and len(model.tokenizer.tokenize(word)) == 1)  # fmt: skip
    return [" ".join(next(words) for _ in range(length - special)) for _ in range(count)]


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    rates, device = record["rates"], record["device"]
    half = " --bf16" * (record["environment"]["dtype"] == "bfloat16")
    lengths = sorted({length for by_length in rates.values() for length in by_length}, key=int)
    rows = []
    for length in lengths:
        here = {name: each[length] for name, each in rates.items() if length in each}
        documents = {f"{name}, documents / s": f"{rate:,.1f}" for name, rate in here.items()}
        own = {name: rate * int(length) for name, rate in here.items() if STOCK not in name}
        tokens = {f"{name}, tokens / s": f"{rate:,.0f}" for name, rate in own.items()}
        rows.append({"tokens": f"{int(length):,}", **documents, **tokens})
    return document(
        f"# Encoding speed by length, {device}",
        explanation(__doc__),
        table(rows),
        machines=[record["environment"]],
        command=f"python -m benchmarks.encode_rates --device {device}{half} --tokens {record['tokens']} "
        f"--repeats {record['repeats']}",
    )


if __name__ == "__main__":
    main()
