"""Documents a second by length, the basis of ``docs/scale.md``.

    python -m benchmarks.encode_rates
    python -m benchmarks.encode_rates --device cuda --bf16 --tokens 262144

Documents consist of words of BBC News and have an exact number of tokens, special tokens included. The shipped models
encode them as ``simlte encode`` does, up to their maximum length. CPU runs report CPU time on one core, GPU runs
report wall time. Numbers are medians of several runs after one warm-up.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from benchmarks.datasets.bbc import packaged_corpus_path
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import dtype_of, environment, make_parser
from benchmarks.timing import side_by_side
from simlte_st.data import read_documents
from simlte_st.models.loading import load_model
from simlte_st.models.names import OWN_ENCODERS, PACKAGED_BASE
from simlte_st.models.parts import encode_counted


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
    rates: dict[str, dict[int, float]] = {}
    for name in options.models:
        model = load_model(name, device=options.device).model.to(dtype_of(options.bf16))
        lengths = [length for length in options.lengths if length <= (model.max_seq_length or length)]
        rates[name] = {length: rate(model, length, options) for length in lengths}
    settings = {name: getattr(options, name) for name in ("device", "tokens", "repeats")}
    record = {"rates": rates, **settings, "environment": environment(dtype_of(options.bf16))}
    write_results(f"encode_rates_{options.device}", record, options.output)


def rate(model: SentenceTransformer, length: int, options: argparse.Namespace) -> float:
    """Measure documents a second at one length."""
    texts = texts_of(model, length, max(1, options.tokens // length))
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    batch_size = max(1, min(256, 16_384 // length))
    jobs = {"encode": lambda: encode_counted(model, texts, batch_size)}
    found = len(texts) / statistics.median(side_by_side(jobs, options.repeats, options.device, clock)["encode"])
    print(f"{length} tokens: {found:,.2f} documents a second", flush=True)
    return found


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
    return document(
        f"# Encoding speed by length, {device}",
        explanation(__doc__),
        table(
            {
                "tokens": f"{int(length):,}",
                **{f"{name}, documents / s": f"{each[length]:,.1f}" for name, each in rates.items() if length in each},
                **{
                    f"{name}, tokens / s": f"{each[length] * int(length):,.0f}"
                    for name, each in rates.items()
                    if length in each
                },
            }
            for length in lengths
        ),
        machines=[record["environment"]],
        command=f"python -m benchmarks.encode_rates --device {device}{half} --tokens {record['tokens']} "
        f"--repeats {record['repeats']}",
    )


if __name__ == "__main__":
    main()
