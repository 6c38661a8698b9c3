"""Encoding speed by document length, the basis of ``docs/scale.md``.

    python -m benchmarks.encode_rates
    python -m benchmarks.encode_rates --device cuda --bf16 --tokens 262144

Documents consist of words from BBC News and have an exact number of tokens, special tokens included. The shipped models
encode them as ``simlte encode`` does, up to their maximum length. CPU runs report CPU time on one core, GPU runs wall
time. Numbers are medians of several turns after a warm-up. Stock sentence-transformers' ``encode`` takes turns with the
BERT models, on the same texts and batch size, with PyTorch's fused attention (sdpa) and, on a GPU in bfloat16 with the
package ``flash_attn``, with FlashAttention 2.
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
"""Separates a model's name from the attention of stock sentence-transformers."""


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
        for length in [limit for limit in options.lengths if limit <= (model.max_seq_length or limit)]:
            texts = make_texts(model, length, max(1, options.tokens // length))
            batch_size = max(1, min(256, 16_384 // length))
            jobs = {side: partial(encode, texts, batch_size=batch_size) for side, encode in sides.items()}
            for side, seconds in side_by_side(jobs, options.repeats, options.device, clock).items():
                rates.setdefault(side, {})[length] = len(texts) / statistics.median(seconds)
                print(f"{side}, {length} tokens: {rates[side][length]:,.2f} documents a second", flush=True)
    settings = {name: getattr(options, name) for name in ("device", "tokens", "repeats")}
    record = {"rates": rates, **settings, "environment": environment(compute_dtype(options.bf16))}
    write_results(f"encode_rates_{options.device}", record, options.output)


def stock_sides(name: str, model: SentenceTransformer, options: argparse.Namespace) -> dict[str, Callable[..., object]]:
    """Return ``encode`` of a BERT model in stock sentence-transformers, by name and attention."""
    sides: dict[str, Callable[..., object]] = {}
    if get_encoder(model).config.model_type == "bert":
        flash = options.device == "cuda" and options.bf16 and find_spec("flash_attn") is not None
        if not flash:
            print("Skipped flash_attention_2, which needs a GPU, --bf16 and the package flash_attn.", flush=True)
        for attention in ("sdpa", *["flash_attention_2"] * flash):
            settings = {"attn_implementation": attention, "dtype": compute_dtype(options.bf16)}
            stock = SentenceTransformer(str(model_source(name)), device=options.device, model_kwargs=settings)
            stock.max_seq_length = model.max_seq_length
            sides[f"{name}{STOCK}{attention}"] = stock.encode
    return sides


def make_texts(model: SentenceTransformer, length: int, count: int) -> list[str]:
    """Make texts with exactly ``length`` tokens, special tokens included."""
    special = model.tokenizer.num_special_tokens_to_add()
    articles = read_documents(packaged_corpus_path(), encoding="latin-1")
    words = (word for article in articles for word in article.text.lower().split() if word.isalpha())
    words = (word for word in words if len(model.tokenizer.tokenize(word)) == 1)
    return [" ".join(next(words) for _ in range(length - special)) for _ in range(count)]


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    rates, device = record["rates"], record["device"]
    bf16 = " --bf16" * (record["environment"]["dtype"] == "bfloat16")
    lengths = sorted({length for by_length in rates.values() for length in by_length}, key=int)
    rows = []
    for length in lengths:
        rates_at_length = {name: reader_rates[length] for name, reader_rates in rates.items() if length in reader_rates}
        documents = {f"{name}, documents / s": f"{rate:,.1f}" for name, rate in rates_at_length.items()}
        token_rates = {name: rate * int(length) for name, rate in rates_at_length.items() if STOCK not in name}
        tokens = {f"{name}, tokens / s": f"{rate:,.0f}" for name, rate in token_rates.items()}
        rows.append({"tokens": f"{int(length):,}", **documents, **tokens})
    return document(
        f"# Encoding speed by length, {device}",
        explanation(__doc__),
        table(rows),
        machines=[record["environment"]],
        command=f"python -m benchmarks.encode_rates --device {device}{bf16} --tokens {record['tokens']} "
        f"--repeats {record['repeats']}",
    )


if __name__ == "__main__":
    main()
