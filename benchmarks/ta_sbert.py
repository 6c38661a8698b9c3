"""TA-SBERT: base form conversion, token attention and reconstruction loss, trained on natural language inference.

    python -m benchmarks.ta_sbert --shared data --bases models/minilm-mlm all-MiniLM-L6-v2 --bf16

Trains the six rows of the paper's Tables 3 and 4 from each base on SNLI, and evaluates them on sentence similarity and
SentEval, beside the untrained base and TF-IDF. The work folder keeps finished parts, so the same command resumes an
interrupted run. Results go to ``results/ta_sbert.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from benchmarks.grid.models import identify_base
from benchmarks.grid.work import Work
from benchmarks.nli import tasks
from benchmarks.nli.tasks import SENTEVAL, STS
from benchmarks.nli.training import ROWS, InferencePairs, PaperRow, load_inference, make_model, train_row
from benchmarks.pages import write_results
from benchmarks.records import compute_dtype, environments, make_parser
from simlte_st.models.names import PACKAGED_BASE


class NliBenchmark:
    """The data and evaluation of all training runs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    @cached_property
    def nli(self) -> InferencePairs:
        """The training pairs."""
        return load_inference(self.options.shared, self.options.pairs)

    @cached_property
    def sts(self) -> dict[str, tasks.ScoredPairs]:
        """The sentence similarity sets."""
        return {name: tasks.load_pairs(self.options.shared, name, self.options.sts_pairs) for name in STS}

    @cached_property
    def senteval(self) -> dict[str, tasks.TransferTask]:
        """The SentEval tasks."""
        return {name: tasks.load_labelled(self.options.shared, name, self.options.transfer_texts) for name in SENTEVAL}

    def measure(self, model: SentenceTransformer) -> dict[str, Any]:
        """Evaluate a model on all sets and tasks."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.options.bf16):
            embed = partial(model.encode, batch_size=64, show_progress_bar=False)
            return {
                "sts": {name: tasks.similarity(model, pairs) for name, pairs in self.sts.items()},
                "senteval": {name: tasks.transfer_accuracy(embed, task) for name, task in self.senteval.items()},
            }

    def tfidf(self) -> dict[str, Any]:
        """Evaluate TF-IDF on all sets and tasks."""
        return {
            "sts": {name: tasks.tfidf_similarity(pairs) for name, pairs in self.sts.items()},
            "senteval": {name: tasks.tfidf_transfer_accuracy(task) for name, task in self.senteval.items()},
        }

    def measure_untrained(self, base: str) -> dict[str, Any]:
        """Evaluate a base."""
        return self.measure(make_model(base, PaperRow()).eval())

    def train_and_measure(self, base: str, row: PaperRow, seed: int) -> dict[str, Any]:
        """Train and evaluate a row."""
        return self.measure(train_row(base, row, self.nli, seed, self.options.learning_rate, self.options.bf16))


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--results", "--bf16")
    parser.add_argument("--bases", nargs="+", default=[PACKAGED_BASE], metavar="MODEL", help="default: %(default)s")
    parser.add_argument("--work", type=Path, default=Path("ta_sbert.work"), help="folder of finished parts")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)), help="seeds of each row")
    parser.add_argument("--pairs", type=int, help="training pairs, drawn once (default: all)")
    parser.add_argument("--sts-pairs", type=int, help="pairs per set of sentence similarity, drawn once (default: all)")
    parser.add_argument("--transfer-texts", type=int, help="examples per SentEval task, drawn once (default: all)")
    parser.add_argument("--learning-rate", type=float, default=2e-5, help="of the encoder (default: %(default)s)")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args(argv)
    if options.threads:
        torch.set_num_threads(options.threads)
    work, bench = Work(options.work, compute_dtype(options.bf16)), NliBenchmark(options)
    names = ("pairs", "sts_pairs", "transfer_texts", "bf16", "learning_rate")
    settings = {name: getattr(options, name) for name in names}
    work.finish_aloud("baselines/TF-IDF", settings, bench.tfidf)
    for base in options.bases:
        identity = identify_base(base)
        base_settings, title = {**settings, "base": identity}, identity["name"]
        work.finish_aloud(f"baselines/{title}", base_settings, partial(bench.measure_untrained, base))
        for seed in options.seeds:
            for name, row in ROWS.items():
                job = partial(bench.train_and_measure, base, row, seed)
                work.finish_aloud(f"rows/{title}/{name}-{seed}", {**base_settings, "row": asdict(row)}, job)
    cells = {str(path.with_suffix("")): cell for part in ("*/*", "rows/*/*") for path, cell in work.cells(part)}
    results = {name: cell["result"] | {"settings": cell["settings"]} for name, cell in sorted(cells.items())}
    write_results("ta_sbert", {"results": results, "environments": environments(cells.values())}, options.results)


if __name__ == "__main__":
    main()
