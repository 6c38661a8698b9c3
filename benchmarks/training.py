"""The training step against what a user would put together today, side by side.

    python -m benchmarks.training --data 20newsgroups.parquet enwiki2014.parquet

Both sides train all-MiniLM-L6-v2 on the same documents with the papers' loss (contrastive + 0.1 MLM on masked copies of
both views, fp32, AdamW, no dropout). The obvious composition: views as texts, tokenized in the loop, stock
``MultipleNegativesRankingLoss``, ``AutoModelForMaskedLM`` with all logits, random batches. This package: views cut
from token ids, both views in one pass, logits at masked positions, batches of like lengths.
Each turn trains on one batch of either side; documents a second are over all turns. Memory is the peak of a process of
its own beyond what it had when the model stood. ``--large`` adds gradient caching: one batch of so many documents,
tokens a second against batches of ``--batch-size``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling

from benchmarks.longformer import resident
from benchmarks.records import RESULTS, environment
from simlte_st.base_models import load_base, set_dropout
from simlte_st.data import PunktSegmenter, SegmentedDocument, TokenCollator, TokenPreprocessor, read_documents
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.sentences import segment_documents, tokenizer_counter
from simlte_st.data.token_cache import tokenize_corpus
from simlte_st.data.views import DocSplit, draw_views
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import write_json
from simlte_st.limits import view_budget
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.packaged import PACKAGED_BASE, packaged_base_path
from simlte_st.quiet import quiet_transformers
from simlte_st.training.batching import TokenBudgetBatchSampler
from simlte_st.training.batching.token_rows import TokenRows, TokenViewLengths

SIDES = ("obvious", "simlte_st")


class Step:
    """One training step of a side, in its parts.

    Attributes:
        documents: Documents trained on so far.
        tokens: Tokens of their views, padding not counted.
        outside: Seconds spent on making batches.
        seconds: Seconds of all steps.
    """

    def __init__(self, batches: Iterator[Any], loss: Callable[[Any], torch.Tensor], model: torch.nn.Module) -> None:
        self.batches, self.loss = batches, loss
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
        self.documents = self.tokens = 0
        self.outside = self.seconds = 0.0

    def __call__(self) -> None:
        """Train on the next batch."""
        began = time.perf_counter()
        columns = next(self.batches)
        made = time.perf_counter()
        self.loss(columns).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.seconds += time.perf_counter() - began
        self.outside += made - began
        self.documents += len(columns[0]["input_ids"])
        self.tokens += sum(int(column["attention_mask"].sum()) for column in columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="SOURCE")
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512], help="tokens a view may have")
    parser.add_argument("--documents", type=int, default=1500, help="documents of each source")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--large", type=int, help="documents of the large batch; left out where not given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder (default: %(default)s)")
    parser.add_argument("--peak", choices=SIDES, help=argparse.SUPPRESS)  # one side's process
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    for source in options.data:
        documents = segmented(source, options.documents)
        for length in options.lengths:
            if options.peak:
                step = make_side(options.peak, documents, length, options.batch_size)
                before = resident()
                for _ in range(3):
                    step()
                print(json.dumps({"bytes": resident(peak=True) - before}))
                return
            rows.append(measure(source, documents, length, options))
            print(rows[-1], flush=True)
            write(rows, options)


def segmented(source: str, limit: int) -> list[SegmentedDocument]:
    """Read and segment documents that make two views."""
    read = list(read_documents(source, limit=limit))
    cut = PunktSegmenter.installed() or PunktSegmenter.learn(document.text for document in read)
    tokenizer = load_base(PACKAGED_BASE).model.tokenizer
    return [
        document
        for document in segment_documents(read, cut, tokenizer_counter(tokenizer))
        if DocSplit().accepts(document)
    ]


def measure(
    source: str, documents: list[SegmentedDocument], length: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Measure both sides in turns, then the memory of each, then the large batch."""
    steps = {side: make_side(side, documents, length, options.batch_size) for side in SIDES}
    for turn in range(options.repeats + 1):
        for step in steps.values():
            step()
            if turn == 0:  # does not count
                step.documents = step.tokens = 0
                step.outside = step.seconds = 0.0
    rate = {side: step.documents / step.seconds for side, step in steps.items()}
    peaks = {}
    for side in SIDES:
        command = [
            sys.executable, "-m", "benchmarks.training", "--data", source, "--lengths", str(length), "--documents",
            str(options.documents), "--batch-size", str(options.batch_size), "--threads", str(options.threads),
            "--peak", side,
        ]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks[side] = int(json.loads(run.stdout.splitlines()[-1])["bytes"])
    row = {
        "source": Path(source).name,
        "tokens": length,
        "documents_per_second": rate,
        "speedup": rate["simlte_st"] / rate["obvious"],
        "share_outside_model": {side: step.outside / step.seconds for side, step in steps.items()},
        "peak_bytes": peaks,
        "memory": peaks["simlte_st"] / peaks["obvious"],
    }
    if options.large:
        row["large_batch"] = large_batch(documents, length, options)
    return row


def large_batch(documents: list[SegmentedDocument], length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Compare tokens a second of one large batch through gradient caching with those of small batches."""
    small = make_side("simlte_st", documents, length, options.batch_size)
    large = make_side("simlte_st", documents, length, options.large, mini_batch=2 * options.batch_size)
    small()
    rates: dict[str, list[float]] = {"small": [], "large": []}
    for _ in range(3):
        for name, step, count in (("small", small, options.large // options.batch_size // 4), ("large", large, 1)):
            step.tokens, step.seconds = 0, 0.0
            for _ in range(max(1, count)):
                step()
            rates[name].append(step.tokens / step.seconds)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {"documents": options.large, "tokens_per_second": medians, "ratio": medians["large"] / medians["small"]}


def make_side(
    side: str, documents: list[SegmentedDocument], length: int, batch_size: int, mini_batch: int | None = None
) -> Step:
    """Set up a side: its model, its batches without end, its loss."""
    torch.manual_seed(0)
    model = load_base(PACKAGED_BASE, max_seq_length=length, dtype=torch.float32).model
    set_dropout(model, 0.0)
    model.train()
    budget = view_budget(model)
    if side == "obvious":
        with quiet_transformers():
            masked_lm = AutoModelForMaskedLM.from_pretrained(packaged_base_path())
        masked_lm.bert = model[0].auto_model
        masked_lm.tie_weights()
        set_dropout(masked_lm.train(), 0.0)
        contrastive = MultipleNegativesRankingLoss(model)
        mask = DataCollatorForLanguageModeling(model.tokenizer, mlm_probability=0.15)

        def texts() -> Iterator[Any]:
            generator = torch.Generator().manual_seed(0)
            while True:
                order = torch.randperm(len(documents), generator=generator).tolist()
                for start in range(0, len(order) - batch_size + 1, batch_size):
                    chosen = [documents[number] for number in order[start : start + batch_size]]
                    pairs = [draw_views(document, DocSplit(), budget=budget) for document in chosen]
                    yield [
                        model.preprocess([getattr(pair, name) for pair in pairs if pair is not None])
                        for name in ("anchor", "positive")
                    ]

        def loss(columns: Any) -> torch.Tensor:
            total = contrastive([dict(column) for column in columns], None)
            for column in columns:
                ids, labels = mask.torch_mask_tokens(column["input_ids"].clone())
                masked = masked_lm(input_ids=ids, attention_mask=column["attention_mask"], labels=labels)
                total = total + 0.1 / len(columns) * masked.loss
            return total

        return Step(texts(), loss, masked_lm)

    folder = tempfile.mkdtemp()  # gone with the machine's temporary files
    corpus = tokenize_corpus(
        (_Text(document.id, " ".join(document.sentences)) for document in documents),
        model.tokenizer,
        segmenter=PunktSegmenter.installed() or PunktSegmenter.learn(" ".join(d.sentences) for d in documents),
        directory=folder,
    )
    drawer = PairDrawer(DocSplit(), 0, budget)
    rows = TokenRows(corpus, corpus.usable(DocSplit())[0])
    lengths = TokenViewLengths(rows, drawer)
    collator = TokenCollator(preprocess_fn=TokenPreprocessor(model), corpus=corpus, drawer=drawer)
    cached = None
    if mini_batch is not None:
        cached = CachedMultipleNegativesRankingMLMLoss(model, mini_batch_size=mini_batch)
    combined = cached or MultipleNegativesRankingMLMLoss(model)
    # The tokens that random batches of so many documents pad to hold more documents where little is padded; what is
    # compared is documents a second, so the same number of documents on average.
    mean = float(lengths(0).sum()) / len(rows)
    sampler = TokenBudgetBatchSampler(
        rows,
        batch_size,
        False,
        lengths=lengths,
        batch_tokens=max(2 * length * 2, int(1.15 * mean * batch_size)),
        seed=0,
    )
    dataset = corpus.dataset(rows.rows)

    def ids() -> Iterator[Any]:
        if mini_batch is not None:
            while True:
                yield _columns(collator([dataset[number] for number in range(min(batch_size, len(dataset)))]))
        for batch in cycle(list(sampler)):
            yield _columns(collator([dataset[int(number)] for number in batch]))

    def both(columns: Any) -> torch.Tensor:
        terms = combined(columns, None)
        return torch.stack(list(terms.values())).sum() if isinstance(terms, dict) else terms

    return Step(ids(), both, torch.nn.ModuleList([model, combined]))


class _Text:
    """A document, as the reader gives them."""

    def __init__(self, name: str, text: str) -> None:
        self.id, self.text = name, text


def _columns(features: dict[str, Any]) -> list[dict[str, Any]]:
    """Part a batch into its columns, as the Trainer does."""
    return [
        {key.removeprefix(f"{name}_"): value for key, value in features.items() if key.startswith(f"{name}_")}
        for name in ("anchor", "positive")
    ]


def write(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Write what has been measured so far."""
    found = environment()
    header = [
        "documents",
        "tokens a view",
        "obvious, doc/s",
        "simlte_st, doc/s",
        "times",
        "memory",
        "outside the model",
    ]
    cells = [
        [
            row["source"],
            str(row["tokens"]),
            f"{row['documents_per_second']['obvious']:.2f}",
            f"{row['documents_per_second']['simlte_st']:.2f}",
            f"{row['speedup']:.2f}x",
            f"{row['memory']:.2f}x",
            f"{row['share_outside_model']['simlte_st']:.1%}",
        ]
        for row in rows
    ]
    text = [
        "# The training step",
        "",
        f"all-MiniLM-L6-v2, {options.batch_size} documents a batch, contrastive + MLM, fp32, {options.threads} threads "
        f"on {found['device']}; {options.repeats} turns of either side in one process. Memory: peak of a step against "
        "the obvious composition's.",
        "",
        markdown_table(header, cells),
        "",
    ]
    for row in rows:
        if "large_batch" in row:
            large = row["large_batch"]
            text += [
                f"{row['source']}, {row['tokens']} tokens: a batch of {large['documents']:,} through gradient caching "
                f"has {large['ratio']:.2f} times the tokens a second of batches of {options.batch_size}.",
                "",
            ]
    names = " ".join(Path(source).name for source in options.data)
    text += [f"    python -m benchmarks.training --data {names} --repeats {options.repeats}", ""]
    options.output.mkdir(parents=True, exist_ok=True)
    write_json(options.output / "training.json", {"environment": found, "rows": rows})
    (options.output / "training.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
