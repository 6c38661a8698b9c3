"""The papers' experiments: every system on every data set, at a chosen scale.

    python -m benchmarks.paper --scale cpu --shared data --work paper.work

All systems train from the same base, on the same corpus and budget, once per seed. Each system embeds each data set
once for all experiments. The work folder keeps finished results and checkpoints: the same command resumes an
interrupted run, and ``--only``, ``--seeds``, ``--data`` and ``--experiments`` add systems, seeds, data sets and
experiments. A folder with other settings is an error. Ctrl-C or SIGTERM writes a checkpoint and exits with status 0,
so ``timeout -s TERM 500`` before the command limits its time. All systems of a seed come before the next seed.
Training and embedding use a GPU if there is one.

``--shared`` holds the data sets under the names in ``benchmarks/grid/sets.py``; missing ones are skipped. ``--report``
writes ``results/paper.json`` and ``paper.md`` from the finished cells, as each run does at its end.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.grid import sets
from benchmarks.grid.experiments import EXPERIMENTS, Cell, plan
from benchmarks.grid.models import Models
from benchmarks.grid.page import gains
from benchmarks.grid.results import Results, collect_record
from benchmarks.grid.systems import GROUPS, SCALES, Scale, select_systems
from benchmarks.grid.work import SettingsClash, Work, differences
from benchmarks.pages import write_results
from benchmarks.records import add_options, compute_dtype, make_parser
from simlte_st.errors import SimlteError
from simlte_st.files import read_json, write_json

NUMBERS = {
    "corpus_documents": "documents of the corpus, drawn once",
    "steps": "training steps; beyond one pass over the corpus, each pass draws new views",
    "batch_size": "documents per step",
    "tokens": "maximum tokens of a view",
    "train_documents": "training documents per data set, drawn once",
    "test_documents": "test documents per data set, drawn once",
}
OVERRIDES = ("base", *NUMBERS, "bf16")
"""Settings of a scale that are options too."""


def make_paper_parser() -> argparse.ArgumentParser:
    parser = make_parser(__doc__, "--results")
    parser.add_argument("--scale", choices=list(SCALES), default="cpu")
    parser.add_argument("--shared", type=Path, metavar="FOLDER", help="folder of data sets and corpus")
    parser.add_argument("--corpus", type=Path, help="documents to train on (default: enwiki2014.parquet in --shared)")
    parser.add_argument("--work", type=Path, default=Path("paper.work"), help="folder of finished parts")
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", help=f"systems or groups: {', '.join(GROUPS)}")
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS, metavar="NAME")
    parser.add_argument("--data", nargs="+", choices=sets.ALL, default=sets.ALL, metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="+", help="training runs of each trained system")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--report", action="store_true", help="only write the page, from finished results")
    overrides = parser.add_argument_group("overrides of the scale's settings")
    overrides.add_argument("--base", help="model that all systems start from: a name or a folder")
    for name, about in NUMBERS.items():
        overrides.add_argument(f"--{name.replace('_', '-')}", type=int, help=about)
    add_options(overrides, "--bf16", help="train and embed in bfloat16 (default: float32)")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    options = make_paper_parser().parse_args(argv)
    if options.threads:
        torch.set_num_threads(options.threads)
    overrides = {name: getattr(options, name) for name in OVERRIDES if getattr(options, name) not in (None, False)}
    work = Work(options.work, compute_dtype(options.bf16))
    if not options.report:
        run_experiments(options, replace(SCALES[options.scale], **overrides), work, overrides)
    record = collect_record(work)
    record["gains"] = gains(Results(record["results"]), record["settings"])
    write_results("paper", record, options.results, verbose=options.report)


def run_experiments(options: argparse.Namespace, scale: Scale, work: Work, overrides: dict[str, object]) -> None:
    """Compute missing results."""
    cells: list[Cell] = []
    try:
        systems = select_systems(options.only)
        models = Models(work, scale, options.corpus or (options.shared / sets.CORPUS if options.shared else None))
        words = [f"--{name.replace('_', '-')}" + ("" if value is True else f" {Path(str(value)).name}")
                 for name, value in overrides.items()]  # fmt: skip
        keep_settings(work, {**models.settings, "overrides": words})
        loaded = sets.load_text_sets(options.data, options.shared, scale, work.folder / "data")
        data = {text_set.name: text_set for text_set in loaded}
        cells += plan(models, data, systems, options.seeds or scale.seeds, options.experiments)
        for name, text_set, make in cells:
            try:
                work.finish_aloud(name, {**models.settings, "data": text_set.identity}, make)
            except SimlteError as error:
                print(f"    skipped: {error}", flush=True)
    except KeyboardInterrupt:
        unfinished = [name for name, *_ in cells if not work.path(name).exists()]
        missing = f" with {len(unfinished)} of {len(cells)} results left" if cells else ""
        print(f"Stopped{missing}; the same command continues.", flush=True)
        raise SystemExit(0) from None


def keep_settings(work: Work, settings: dict[str, object]) -> None:
    """Store the settings of a work folder, or compare them with those stored earlier."""
    path = work.folder / "grid.json"
    if path.exists():
        saved = read_json(path)["settings"]
        different = [line for line in differences(saved, settings) if not line.startswith("overrides ")]
        if different:
            raise SettingsClash(f"{work.folder} has other settings: {'; '.join(different)}. Pass another --work.")
    else:
        write_json(path, {"settings": settings})


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop as with Ctrl-C
    main()
