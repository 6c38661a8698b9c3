"""Does making batches starve training? Views and tokens against the training step, and with processes that load data.

    python -m benchmarks.starvation --data folder-or-file --workers 0 1 2 4

Side by side in one process on one thread, in turns, medians. First, documents a second of (a) reading and segmenting,
done once a run; (b) making batches, done in each step: views are drawn and tokenized; (c) the model's training step on
such a batch. Training never waits if (b) takes a small share of (c). Then (b) through a ``DataLoader`` with
``--workers`` processes, as the Trainer has it with ``dataloader_num_workers``: a GPU makes steps in less time than one
process makes batches. Without ``--data`` the packaged BBC News articles are used.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch.utils.data import DataLoader

from benchmarks.datasets.bbc import packaged_corpus_path
from benchmarks.pages import document, write_results
from benchmarks.records import dtype_of, environment, make_parser
from benchmarks.timing import Seconds, TrainingStep, columns_of, one_thread, side_by_side
from simlte_st.data import DocSplit, DocSplitTransform, read_documents, write_corpus
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training.batching import SeededBatchSampler
from simlte_st.training.dropout import set_dropout

READING, MAKING, STEP = "read and segment", "make batches", "training step"
CORES = 4
"""Processes that the second table is about, each with a core."""
GOALS = {"share of the step": 0.01, "documents a second": 2000}


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output", "--bf16")
    parser.add_argument("--data", help="any source of documents; default: the packaged BBC News")
    parser.add_argument("--base", default=PACKAGED_BASE, help="base model (default: %(default)s)")
    parser.add_argument("--documents", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256, help="tokens a view may have (default: %(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4], metavar="N")
    options = parser.parse_args(argv)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a process is a core, with workers or without
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        record = measure(options, folder)
    write_results("starvation", record, options.output)


def measure(options: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Time all stages; documents a second of each turn."""
    model = load_model(options.base, max_seq_length=options.tokens, dtype=torch.float32).model
    set_dropout(model, 0.0)
    model.train()
    encoding = "utf-8" if options.data else "latin-1"
    documents = list(read_documents(options.data or packaged_corpus_path(), limit=options.documents, encoding=encoding))
    views = DocSplitTransform(model=model)
    views.callback.connect()  # every pass here is the first epoch
    dataset = views.attach(documents, directory=f"{folder}/0")
    again = iter(range(1, options.rounds + 2))

    def read() -> None:
        source = options.data or packaged_corpus_path()
        stream = read_documents(source, limit=options.documents, encoding=encoding)
        count = tokenizer_counter(model.tokenizer)
        write_corpus(stream, f"{folder}/{next(again)}", view=DocSplit(), count_tokens=count)

    batches = loader(dataset, model, options.batch_size)
    step = TrainingStep(model, MultipleNegativesRankingLoss(model), options.bf16)
    columns = columns_of(next(iter(batches)))
    jobs = {READING: read, MAKING: partial(exhaust, batches), STEP: lambda: step(columns)}
    seconds = side_by_side(jobs, options.rounds)
    done = {READING: len(documents), MAKING: len(dataset), STEP: len(columns[0]["input_ids"])}
    loaders = {number: loader(dataset, model, options.batch_size, number) for number in options.workers}
    loading = side_by_side({str(number): partial(exhaust, each) for number, each in loaders.items()}, options.rounds)
    return {
        "options": {
            **{name: getattr(options, name) for name in ("documents", "batch_size", "rounds", "tokens")},
            "data": options.data and Path(str(options.data)).name,
        },
        "base": Path(options.base).name,
        "words": median(len(document.text.split()) for document in documents),
        "environment": environment(dtype_of(options.bf16)),
        "documents_per_second": {stage: rates(seconds[stage], done[stage]) for stage in jobs},
        "share_of_the_step": (median(seconds[MAKING]) / done[MAKING]) / (median(seconds[STEP]) / done[STEP]),
        "workers": {number: rates(each, len(dataset)) for number, each in loading.items()},
    }


def loader(dataset: Dataset, model: SentenceTransformer, batch_size: int, workers: int = 0) -> DataLoader[Any]:
    """Return the batches that the Trainer would get. The processes stay from one pass to the next."""
    return DataLoader(
        dataset,
        batch_sampler=SeededBatchSampler(dataset, batch_size, False),
        num_workers=workers,
        persistent_workers=workers > 0,
        collate_fn=SentenceTransformerDataCollator(preprocess_fn=model.preprocess),
    )


def exhaust(batches: DataLoader[Any]) -> None:
    for _ in batches:
        pass


def rates(seconds: Seconds, documents: int) -> list[float]:
    return [documents / each for each in seconds]


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    found = {stage: median(values) for stage, values in record["documents_per_second"].items()}
    stages = [
        [stage, f"{value:.1f}", f"{1000 / value:.2f}", f"{found[STEP] / value:.2%}"] for stage, value in found.items()
    ]
    machine, settings = record["environment"], record["options"]
    lines = []
    for number, values in record["workers"].items():
        at_once = min(max(1, int(number)), machine["cores"])
        each = median(values) / at_once
        lines.append([number, f"{median(values):,.0f}", str(at_once), f"{each:,.0f}", f"{CORES * each:,.0f}"])
    return document(
        "# Making batches against training",
        f"{record['base']}, {settings['tokens']} tokens a view, batches of {settings['batch_size']}, "
        f"{settings['documents']} documents (median {record['words']:.0f} words), {machine['dtype']}, one thread of "
        f"{machine['device']}; medians of {settings['rounds']} rounds in one process. Reading and segmenting is done "
        "once a run; drawing views and tokenizing them in each step. The goal is a share of "
        f"{GOALS['share of the step']:.0%} of the step at most: it is {record['share_of_the_step']:.2%}.",
        markdown_table(["stage", "documents a second", "ms a document", "of the step"], stages),
        f"The same batches through a `DataLoader` with processes of its own; the machine has {machine['cores']} cores. "
        f"The last column is {CORES} times what a process makes that has a core to itself; the goal is "
        f"{GOALS['documents a second']:,}.",
        markdown_table(
            ["workers", "documents a second", "at once", "each", f"{CORES} workers on {CORES} cores, scaled"], lines
        ),
        command="python -m benchmarks.starvation"
        + (f" --data {settings['data']}" if settings["data"] else "")
        + f" --tokens {settings['tokens']} --workers {' '.join(record['workers'])}",
    )


if __name__ == "__main__":
    main()
