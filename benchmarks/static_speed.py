"""Static embeddings: encoding whole documents beside model2vec, stock sentence-transformers and MiniLM, and an index.

    pip install ".[benchmarks,static,index]"
    python -m benchmarks.static_speed --shared ../shared/data

Documents have about 500 words: paragraphs of English Wikipedia (2014), drawn anew for each. The rates are of one thread
each, in seconds of the processor, which what else runs on the machine changes little; the libraries take turns, and
each turn has other documents. ``simlte encode`` reads a parquet file and writes one; the others encode texts in memory.
MiniLM reads the first 256 tokens of fewer documents. Then documents are encoded and indexed whole, in a process each,
with all cores: seconds of the clock and of the processor, and the most memory that the process held. A million is what
the last step from one number of documents to the next gives, each document at its cost.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shlex
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from sentence_transformers import SentenceTransformer

import simlte_st
from benchmarks.pages import document, explanation, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import own_process, ratio, resident, side_by_side, spread
from simlte_st.evaluation.table import markdown_table
from simlte_st.extras import require
from simlte_st.models.base import load_model
from simlte_st.models.encode import encode_documents
from simlte_st.models.names import PACKAGED_BASE, find_model
from simlte_st.search import Index

WORDS = 500
PARAGRAPH = 20  # words of the shortest paragraph that is used
MILLION = 1_000_000
OURS, WAY = "model.encode", "simlte encode"


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--model", default="simlte-static", help="static embedding (default: %(default)s)")
    parser.add_argument("--encoder", default=PACKAGED_BASE, help="(default: %(default)s)")
    parser.add_argument("--documents", type=int, default=2_000, metavar="N", help="of a turn (default: %(default)s)")
    parser.add_argument("--encoded", type=int, default=24, metavar="N", help="of a turn of the encoder")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="turns (default: %(default)s)")
    parser.add_argument("--scales", type=int, nargs="+", default=[25_000, 50_000, 100_000], metavar="N")
    parser.add_argument("--whole", choices=("encode", "index"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.whole:
        print(json.dumps(whole_way(options.whole, options.model, options.folder)))
        return
    settings = {name: value for name, value in vars(options).items() if name in _SETTINGS}
    record: dict[str, Any] = {"settings": settings, "rates": rates(options), "scales": [], "environment": environment()}
    for number in options.scales:
        record["scales"].append(scale(options, number))
        write_results("static_speed", record, options.output)


_SETTINGS = ("model", "encoder", "documents", "encoded", "repeats", "scales")


def make_texts(shared: Path, seed: int = 0) -> Iterator[str]:
    """Make documents of about :data:`WORDS` words, without end."""
    articles = pq.read_table(shared / "enwiki2014.parquet", columns=["text"]).slice(0, 12_000)["text"].to_pylist()
    lines = (line.strip() for article in articles for line in article.split("\n"))
    paragraphs = [line for line in lines if len(line.split()) >= PARAGRAPH]
    draw = random.Random(seed)
    while True:
        chosen: list[str] = []
        while sum(len(text.split()) for text in chosen) < WORDS:
            chosen.append(draw.choice(paragraphs))
        yield "\n\n".join(chosen)


def write_documents(path: Path, texts: Iterator[str], number: int) -> None:
    """Write some documents."""
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, number, 5_000):
            part = [*itertools.islice(texts, min(5_000, number - start))]
            ids = [f"d{start + place}" for place in range(len(part))]
            writer.write_table(pa.table({"id": ids, "text": part}, schema=schema))


def rates(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the documents a second of each way to encode."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    folder = find_model(options.model)
    ours, stock = load_model(folder, device="cpu").model, plain(folder)
    reader = simlte_st.SentenceTransformer(folder, device="cpu")
    other = require("model2vec", "static", "comparing").StaticModel.from_pretrained(folder)
    encoder = SentenceTransformer(find_model(options.encoder), device="cpu")
    encoder.max_seq_length = min(256, encoder.max_seq_length or 256)
    texts = make_texts(options.shared)
    turns = [[*itertools.islice(texts, options.documents)] for _ in range(options.repeats + 1)]
    with tempfile.TemporaryDirectory() as place:
        for number, turn in enumerate(turns):
            write_documents(Path(place, f"{number}.parquet"), iter(turn), len(turn))
        numbers = itertools.count()

        def write() -> None:
            source = Path(place, f"{next(numbers)}.parquet")
            encode_documents(ours, source, source.with_suffix(".vectors.parquet"), progress=False)

        jobs = {
            WAY: write,
            OURS: each_turn(reader.encode, turns),
            "model2vec": each_turn(lambda one: other.encode(one, max_length=None, use_multiprocessing=False), turns),
            "stock StaticEmbedding": each_turn(stock.encode, turns),
            f"{options.encoder}, 256 tokens": each_turn(lambda one: encoder.encode(one[: options.encoded]), turns),
        }
        seconds = side_by_side(jobs, options.repeats, clock=time.process_time)
    counts = {name: options.encoded if "256" in name else options.documents for name in jobs}
    each = {name: [value / counts[name] for value in values] for name, values in seconds.items()}
    return {
        name: {
            "documents_per_second": 1 / statistics.median(values),
            **{f"{side}_ratio": [ratio(values, each[side]), *spread(values, each[side])] for side in (WAY, OURS)},
        }
        for name, values in each.items()
    }


def plain(folder: str) -> SentenceTransformer:
    """Return the model as stock sentence-transformers has it, in float32 and without the tokenizer's limit."""
    model = load_model(folder, device="cpu").model
    stock = SentenceTransformer(modules=list(model), device="cpu")
    stock.tokenizer.no_truncation()
    return stock


def each_turn(encode: Callable[[list[str]], object], turns: list[list[str]]) -> Callable[[], object]:
    """Return a job that encodes the next documents with each call."""
    left = iter(turns)
    return lambda: encode(next(left))


def scale(options: argparse.Namespace, number: int) -> dict[str, Any]:
    """Encode and index some documents, in a process each."""
    with tempfile.TemporaryDirectory() as place:
        write_documents(Path(place, "documents.parquet"), make_texts(options.shared, seed=1), number)
        arguments = ["--shared", str(options.shared), "--model", options.model, "--folder", place]
        found = {
            what: own_process(["benchmarks.static_speed", *arguments, "--whole", what]) for what in ("encode", "index")
        }
    print(json.dumps({"documents": number, **found}), flush=True)
    return {"documents": number, **found}


def whole_way(what: str, name: str, folder: Path) -> dict[str, float]:
    """Encode or index the documents of a folder; return seconds and bytes."""
    source = folder / "documents.parquet"
    model = load_model(name, device="cpu").model
    began, computed = time.perf_counter(), time.process_time()
    if what == "encode":
        encode_documents(model, source, folder / "vectors.parquet", progress=False)
    else:
        Index.create(folder / "index", model).add(source)
    seconds, cpu = time.perf_counter() - began, time.process_time() - computed
    return {"seconds": seconds, "cpu_seconds": cpu, "peak": resident(peak=True)}


def of_a_million(scales: list[dict[str, Any]], what: str, clock: str) -> float:
    """Return the seconds of a million documents, each of the others at the cost of the last ones."""
    (few, less), (many, more) = [(0, 0.0), *((each["documents"], each[what][clock]) for each in scales)][-2:]
    return float(more + (more - less) / (many - few) * (MILLION - many))


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    settings, scales = record["settings"], record["scales"]
    sides = [
        [name, f"{each['documents_per_second']:,.0f}", *(
            "{:.2f} ({:.2f} to {:.2f})".format(*each[f"{side}_ratio"]) for side in (WAY, OURS)
        )]
        for name, each in record["rates"].items()
    ]  # fmt: skip
    rows = [
        [
            f"{each['documents']:,}",
            what,
            *(f"{each[what][clock]:,.0f}" for clock in ("seconds", "cpu_seconds")),
            f"{each['documents'] / each[what]['seconds']:,.0f}",
            f"{each[what]['peak'] / 2**20:,.0f}",
        ]
        for what in ("encode", "index")
        for each in scales
    ]
    million = [
        f"- a million documents, {what}: {of_a_million(scales, what, 'seconds') / 60:,.0f} minutes of the clock, "
        f"{of_a_million(scales, what, 'cpu_seconds') / 60:,.0f} of the processor"
        for what in ("encode", "index")
    ]
    options = [f"--{name} {' '.join(map(str, value)) if isinstance(value, list) else shlex.quote(str(value))}"
               for name, value in settings.items()]  # fmt: skip
    return document(
        "# Speed of static embeddings",
        explanation(__doc__),
        markdown_table(
            ["", "documents a second of one core", *(f"its time over that of {side} (turns)" for side in (WAY, OURS))],
            sides,
        ),
        markdown_table(["documents", "", "seconds", "of the processor", "documents a second", "peak, MiB"], rows),
        "\n".join(million),
        machines=[record["environment"]],
        command=f"python -m benchmarks.static_speed --shared ../shared/data {' '.join(options)}",
    )


if __name__ == "__main__":
    main()
