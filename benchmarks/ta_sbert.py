"""TA-SBERT: base form conversion, token attention and the reconstruction loss, trained on natural language inference.

    python -m benchmarks.ta_sbert --shared data --bases models/minilm-mlm all-MiniLM-L6-v2 --bf16

Trains the six rows of the paper's Tables 3 and 4 from each base, on pairs of SNLI, and measures them on sentence
similarity and the tasks of SentEval, beside the untrained base and TF-IDF; then the sweeps over the learning rate
(Figure 9) and the weight of the reconstruction (Figure 6) from the first base, and what base form conversion changes
and costs. What is finished stays in the work folder: an interrupted run goes on with the same command, and several
processes can share the folder. ``--parts`` and ``--seeds`` choose; ``--report`` writes ``results/ta_sbert.json``,
``.md`` and the figures of what is finished, as every run does at its end.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from benchmarks.grid.models import Base
from benchmarks.grid.work import Work
from benchmarks.nli.conversion import SETS, conversion
from benchmarks.nli.page import report
from benchmarks.nli.tasks import (
    SENTEVAL,
    STS,
    Labelled,
    Pairs,
    load_labelled,
    load_pairs,
    similarity,
    tfidf_similarity,
    tfidf_transfer,
    transfer,
)
from benchmarks.nli.training import NLI, ROWS, Row, classify, load_inference, make_model, train
from benchmarks.records import dtype_of, make_parser
from simlte_st.compat import quiet_transformers
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path

PARTS = ("conversion", "baselines", "rows", "rates", "weights")
RATES = (2e-5, 1e-4, 3e-4)
"""Learning rates of Figure 9 here: the paper's, and those that a training of a few hundred steps can do with."""

WEIGHTS = (0.001, 0.005, 0.017, 0.02, 0.1)
"""Weights of Figure 6, whose range is .001 to .02, and one beyond."""


Cell = tuple[str, Mapping[str, Any], Callable[[], Mapping[str, Any]]]
"""A cell's name, what decides it beside the settings of all, and what makes it."""


@dataclass(frozen=True)
class Bench:
    """What all cells share.

    Attributes:
        work: The folder of what is finished.
        shared: The folder of the data sets.
        options: The command line.
    """

    work: Work
    shared: Path
    options: argparse.Namespace

    @cached_property
    def nli(self) -> dict[str, Any]:
        """Pairs to train on and pairs to test on."""
        return {
            "train": load_inference(self.shared, "dev", self.options.pairs),
            "test": load_inference(self.shared, "test", self.options.test_pairs),
        }

    @cached_property
    def sts(self) -> dict[str, Pairs]:
        """The sets of sentence similarity."""
        return {name: load_pairs(self.shared, name, self.options.sts_pairs) for name in STS}

    @cached_property
    def senteval(self) -> dict[str, Labelled]:
        """The tasks of SentEval."""
        return {name: load_labelled(self.shared, name, self.options.transfer_texts) for name in SENTEVAL}

    @property
    def settings(self) -> dict[str, Any]:
        """What decides every number."""
        names = ("pairs", "test_pairs", "sts_pairs", "transfer_texts", "bf16")
        return {name: getattr(self.options, name) for name in names}

    def measure(self, model: SentenceTransformer) -> dict[str, Any]:
        """Measure a model on everything."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.options.bf16):
            embed = partial(model.encode, batch_size=64, show_progress_bar=False)
            return {
                "sts": {name: similarity(model, pairs) for name, pairs in self.sts.items()},
                "senteval": {name: transfer(embed, task) for name, task in self.senteval.items()},
            }

    def tfidf(self) -> dict[str, Any]:
        """Measure TF-IDF on everything."""
        return {
            "sts": {name: tfidf_similarity(pairs) for name, pairs in self.sts.items()},
            "senteval": {name: tfidf_transfer(task) for name, task in self.senteval.items()},
        }

    def untrained(self, base: str) -> dict[str, Any]:
        """Measure the mean of a base as it is."""
        return self.measure(make_model(base, Row()).eval())

    def trained(self, base: str, row: Row, seed: int, learning_rate: float, whole: bool) -> dict[str, Any]:
        """Train a row and measure it: on everything, or on NLI and STSb only."""
        model, softmax = train(base, row, self.nli["train"], seed, learning_rate, self.options.bf16)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.options.bf16):
            most = len(self.nli["test"].labels)
            pairs = {part: data.begin(most) for part, data in self.nli.items()}
            found: dict[str, Any] = {part: classify(model, softmax, data) for part, data in pairs.items()}
            if not whole:
                return {"nli": found, "sts": {"STSb": similarity(model, self.sts["STSb"])}}
        return {"nli": found, **self.measure(model)}

    def make(self, parts: Sequence[str]) -> None:
        """Make what is missing of some parts."""
        steps = {
            "conversion": self.conversion,
            "baselines": self.baselines,
            "rates": self.rates,
            "weights": self.weights,
            "rows": self.rows,
        }
        for part in PARTS:
            if part in parts:
                for name, settings, make in steps[part]():
                    self.work.finish_aloud(name, {**self.settings, **settings}, make)

    def conversion(self) -> Iterator[Cell]:
        """What base form conversion changes, and costs."""
        model = make_model(self.places[0], Row())
        for name, file in SETS.items():
            path = self.shared / f"{file}.parquet"
            if path.exists():
                yield f"conversion/{name}", {"base": self.bases[0]}, partial(conversion, path, model)

    def baselines(self) -> Iterator[Cell]:
        """TF-IDF, and each base as it is."""
        yield "baselines/TF-IDF", {}, self.tfidf
        for base, place in zip(self.bases, self.places, strict=True):
            yield f"baselines/{base['name']}", {"base": base}, partial(self.untrained, place)

    def rows(self) -> Iterator[Cell]:
        """Tables 3 and 4."""
        rate = self.options.learning_rate
        for base, place in zip(self.bases, self.places, strict=True):
            for seed in self.options.seeds:
                for name, row in ROWS.items():
                    yield self.cell("rows", f"{base['name']}/{name}", base, place, row, seed, rate, True)

    def rates(self) -> Iterator[Cell]:
        """Figure 9: the plain model, with the reconstruction loss and without, at several learning rates."""
        for seed in self.options.seeds[: self.options.sweep_seeds]:
            for rate in RATES:
                for name in ("none", "recon"):
                    row = Row(weight=ROWS["+ att + recon"].weight if name == "recon" else 0.0)
                    yield self.cell("rates", f"{rate:g}/{name}", self.bases[0], self.places[0], row, seed, rate, False)

    def weights(self) -> Iterator[Cell]:
        """Figure 6: the weight of the reconstruction."""
        rate = self.options.learning_rate
        for seed in self.options.seeds[: self.options.sweep_seeds]:
            for weight in WEIGHTS:
                row = replace(ROWS["+ form + att + recon"], weight=weight)
                yield self.cell("weights", f"{weight:g}", self.bases[0], self.places[0], row, seed, rate, False)

    def cell(
        self, part: str, name: str, base: Mapping[str, Any], place: str, row: Row, seed: int, rate: float, whole: bool
    ) -> Cell:
        """Describe a training."""
        settings = {"base": base, "row": asdict(row), "seed": seed, "learning_rate": rate}
        return f"{part}/{name}-{seed}", settings, partial(self.trained, place, row, seed, rate, whole)

    @cached_property
    def places(self) -> list[str]:
        """Where the bases are."""
        return [os.fspath(packaged_base_path()) if name == PACKAGED_BASE else name for name in self.options.bases]

    @cached_property
    def bases(self) -> list[dict[str, Any]]:
        """What the bases are, without their places on this machine."""
        return [Base(name).identity for name in self.options.bases]


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--results", "--bf16")
    parser.add_argument("--bases", nargs="+", default=[PACKAGED_BASE], metavar="MODEL", help="default: %(default)s")
    parser.add_argument("--work", type=Path, default=Path("ta_sbert.work"), help="folder of what is finished")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)), help="trainings of each row")
    parser.add_argument("--sweep-seeds", type=int, default=1, help="how many of the seeds the sweeps have")
    parser.add_argument("--pairs", type=int, help="to train on, drawn once (default: all)")
    parser.add_argument("--test-pairs", type=int, default=1000, help="of SNLI, to test on (default: %(default)s)")
    parser.add_argument("--sts-pairs", type=int, help="of each set of sentence similarity, drawn once (default: all)")
    parser.add_argument("--transfer-texts", type=int, help="of each task of SentEval, drawn once (default: all)")
    parser.add_argument("--learning-rate", type=float, default=2e-5, help="of the encoder (default: %(default)s)")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--report", action="store_true", help="write the page of what is finished, train nothing")
    options = parser.parse_args(argv)
    if not (options.shared / NLI).exists():
        print(f"Skipped: there is no {NLI} in {options.shared}.")
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    work = Work(options.work, dtype_of(options.bf16))
    if not options.report:
        with quiet_transformers():
            try:
                Bench(work, options.shared, options).make(options.parts)
            except KeyboardInterrupt:
                raise SystemExit("Interrupted: the same command goes on.") from None
    report(work, options.shared, options.results)


if __name__ == "__main__":
    main()
