"""The papers' experiments as one grid: every system on every data set in every experiment, at a scale.

    python -m benchmarks.paper --scale cpu --shared data --work paper.work

Systems are trained once a seed, from one base on one corpus with one budget; each data set is embedded once a system,
and all experiments are made from these embeddings. What is finished stays in the work folder: an interrupted run goes
on with the same command, several processes can share the folder, and systems, seeds, data sets and experiments can be
added (``--only``, ``--seeds``, ``--data``, ``--experiments``; ``--list`` names them). A number that other settings
would change is refused, not mixed in.

Data sets are looked for in the folder ``--shared`` under the names that ``--list`` prints, at ``--path NAME=PATH``, in
an installed package (bbc), or on the Hub. What is not there is skipped and listed. ``--report`` writes
``results/paper.json``, ``paper.md`` and figures of what is finished, as every run does at its end; ``--earlier
paper.json`` adds what an earlier page has of the same settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.grid import sets, tiny
from benchmarks.grid.cells import Grid
from benchmarks.grid.engine import EXPERIMENTS, common_settings, keep_common, plan, run
from benchmarks.grid.models import Base, Corpus, Models
from benchmarks.grid.page import report
from benchmarks.grid.scales import SCALES, Scale
from benchmarks.grid.systems import GROUPS, SYSTEMS, System, chosen_systems
from benchmarks.grid.work import Work
from benchmarks.records import RESULTS, add_options, dtype_of
from simlte_st.compat import quiet_transformers
from simlte_st.errors import SimlteError

OVERRIDES = (
    "base", "corpus_documents", "steps", "batch_size", "tokens", "read", "pooling", "learning_rate", "bf16",
    "train_documents", "test_documents", "draws", "head",
)  # fmt: skip
"""Settings of a scale that the command line can replace."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--scale", choices=list(SCALES), default="cpu")
    made.add_argument("--shared", type=Path, metavar="FOLDER", help="folder of data sets and corpus")
    made.add_argument("--path", nargs="+", default=[], metavar="NAME=PATH", help="where single data sets are")
    made.add_argument("--corpus", type=Path, help="documents to train on (default: enwiki2014.parquet in --shared)")
    made.add_argument("--work", type=Path, default=Path("paper.work"), help="folder of what is finished")
    made.add_argument("--only", nargs="+", metavar="SYSTEM", help=f"systems, or groups: {', '.join(GROUPS)}")
    made.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS, metavar="NAME")
    made.add_argument("--data", nargs="+", choices=sets.ALL, default=sets.ALL, metavar="NAME")
    made.add_argument("--seeds", type=int, nargs="+", help="trainings of each trained system")
    made.add_argument("--threads", type=int)
    made.add_argument("--trust-remote-code", action="store_true", help="run code that repositories of the Hub bring")
    made.add_argument("--report", action="store_true", help="write the page of what is finished, run nothing")
    made.add_argument("--earlier", type=Path, metavar="FILE", help="a paper.json, whose cells are added")
    made.add_argument("--results", type=Path, default=RESULTS, help=argparse.SUPPRESS)
    made.add_argument("--list", action="store_true", help="print all names and stop")
    own = made.add_argument_group("settings of the scale, to replace")
    own.add_argument("--base", help="the model that all begin with: a name or a folder")
    own.add_argument("--corpus-documents", type=int, help="documents of the corpus, drawn once")
    own.add_argument("--steps", type=int)
    own.add_argument("--batch-size", type=int)
    own.add_argument("--tokens", type=int, help="most tokens of a view")
    own.add_argument("--read", type=int, help="tokens read of a text when it is embedded")
    own.add_argument("--pooling", choices=["cls", "mean"])
    own.add_argument("--learning-rate", type=float)
    own.add_argument("--train-documents", type=int, help="of each data set, drawn once")
    own.add_argument("--test-documents", type=int, help="likewise")
    own.add_argument("--draws", type=int, help="of the few-shot experiment")
    own.add_argument("--head", choices=["mlp", "logistic"], help="the probe")
    add_options(own, "--bf16", help="train and embed in bfloat16 (default: float32)")
    return made


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(argv)
    if arguments.list:
        print(f"systems: {', '.join(SYSTEMS)}\nexperiments: {', '.join(EXPERIMENTS)}")
        print("data sets, and their files in --shared:")
        print("\n".join(f"    {name}: {sets.SHARED.get(name, '')}" for name in sets.ALL))
        return
    work = Work(arguments.work, dtype_of(bool(arguments.bf16)))
    if arguments.report:
        print(report(work, arguments.results, arguments.earlier))
        return
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    scale = scale_of(arguments)
    if not scale.base:
        arguments.shared, base = tiny.make(arguments.work / "made")
        scale = replace(scale, base=str(base))
    systems = chosen_systems(scale, arguments.only)
    with quiet_transformers():
        execute(arguments, scale, systems, work)


def execute(arguments: argparse.Namespace, scale: Scale, systems: Sequence[System], work: Work) -> None:
    """Make what is missing, and the page."""
    try:
        grid = make_grid(arguments, scale, work)
        keep_common(work, common_settings(grid, overrides_of(arguments)))
        cells = list(plan(grid, systems, arguments.seeds or scale.seeds, arguments.experiments))
        run(grid, cells)
        report(work, arguments.results, arguments.earlier)
    except SimlteError as error:
        raise SystemExit(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit("Interrupted: the same command goes on.") from None


def scale_of(arguments: argparse.Namespace) -> Scale:
    """Return the scale with what the command line replaces."""
    given = {name: getattr(arguments, name) for name in OVERRIDES if getattr(arguments, name) is not None}
    return replace(SCALES[arguments.scale], **given)


def overrides_of(arguments: argparse.Namespace) -> list[str]:
    """Return the options that replace settings of the scale, without places on this machine."""
    given = {name: getattr(arguments, name) for name in OVERRIDES if getattr(arguments, name) not in (None, False)}
    return [
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {Path(str(value)).name}")
        for name, value in given.items()
    ]


def make_grid(arguments: argparse.Namespace, scale: Scale, work: Work) -> Grid:
    """Find base, corpus and data sets; what is not there is recorded."""
    corpus = arguments.corpus or (arguments.shared / sets.CORPUS if arguments.shared else None)
    if corpus is not None and not corpus.exists():
        print(f"There is no {corpus}: nothing will be trained.")
        corpus = None
    models = Models(
        work,
        scale,
        Base(scale.base),
        None if corpus is None else Corpus(corpus, scale.corpus_documents),
        arguments.trust_remote_code,
    )
    given = {}
    for item in arguments.path:
        name, equals, path = item.partition("=")
        if not equals:
            raise SystemExit(f"--path {item}: write NAME=PATH, such as bbc=folder.")
        given[name] = Path(path)
    places = sets.places(arguments.shared, given)
    data = {}
    for name in arguments.data:
        try:
            data[name] = sets.load(name, places.get(name), scale, work.folder / "data")
        except SimlteError as error:
            work.skip(f"data {name}", str(error))
        else:
            work.unskip(f"data {name}")
            sets.keep_description(work, data[name])
    return Grid(scale, work, models, data, places)


if __name__ == "__main__":
    main()
