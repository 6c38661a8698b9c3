"""Reliability of the verdict: a bank of encoders with label-free measures and labelled outcomes.

    python -m benchmarks.verdict --shared data --work verdict.work --bf16

Each recipe of ``benchmarks/bank/recipes.py`` adapts all-MiniLM-L6-v2 to half of each data set, without labels. Its
encoders (after a third of the steps, at the end, and averaged with the base) are judged on the other half: by the
verdict's label-free measures and by labels. The work folder keeps finished parts; ``--report`` writes the pages
``verdict`` and ``recipe`` from it, together with the encoders of an earlier page (``--earlier results/verdict.json``).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.bank.judge import judge, judge_words, merge_earlier
from benchmarks.bank.make import Bank
from benchmarks.bank.page import write_pages
from benchmarks.bank.recipes import RECIPES
from benchmarks.bank.sets import FILES, SAMPLES, display_name, load_sets
from benchmarks.grid.work import Work
from benchmarks.records import compute_dtype, environment, make_parser, round_floats
from simlte_st.files import read_json, write_json
from simlte_st.models.names import PACKAGED_BASE


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--results", "--bf16")
    parser.add_argument("--work", type=Path, default=Path("verdict.work"), help="folder of finished parts")
    parser.add_argument("--data", nargs="+", choices=list(SAMPLES), default=list(FILES), metavar="NAME")
    parser.add_argument("--base", default=PACKAGED_BASE, metavar="MODEL", help="model to adapt (default: %(default)s)")
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES), metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=30, help="steps of each training (default: %(default)s)")
    parser.add_argument("--train-documents", type=int, default=600, help="per set (default: %(default)s)")
    parser.add_argument("--held-out", type=int, default=300, help="documents per set (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="only write the pages, from finished results")
    parser.add_argument("--earlier", type=Path, metavar="FILE", help="verdict.json with encoders to add if missing")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(arguments.threads)
    loaded = load_sets(arguments.shared, arguments.data, arguments.train_documents, arguments.held_out)
    sets = {data.name: data for data in loaded}
    work = Work(arguments.work, compute_dtype(arguments.bf16))
    bank = Bank(work, sets, arguments.steps, arguments.bf16, arguments.base)
    if not arguments.report:
        for name in sets:
            bank.make(name, arguments.recipes, arguments.seeds)
    titles = {name: display_name(name, arguments.base) for name in sets if bank.find(name, "base", 0)}
    judged: dict[str, list[dict[str, Any]]] = {title: judge(bank, name) for name, title in titles.items()}
    words = {title: judge_words(bank, name) for name, title in titles.items()}
    sizes = {titles[name]: {"train": len(sets[name].train), "held_out": len(sets[name].held)} for name in titles}
    settings = {"steps": bank.steps, "sets": sizes, "environment": environment(work.dtype)}
    if arguments.earlier:
        earlier = read_json(arguments.earlier)
        judged = merge_earlier(judged, earlier["judged"])
        words = read_json(arguments.earlier.with_name("recipe.json"))["words"] | words
        settings |= {"sets": earlier["sets"] | settings["sets"], "environment": earlier["environment"]}
    write_json(arguments.results / "verdict.json", round_floats({**settings, "judged": judged}))
    write_json(arguments.results / "recipe.json", {**settings, "words": words})
    write_pages(judged, words, settings, arguments.results)


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # hide notes on small classes
    main()
