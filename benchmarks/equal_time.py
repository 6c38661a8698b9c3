"""Settings of training at equal cost: what is an embedding worth after so many seconds of it?

    python -m benchmarks.equal_time --data 20newsgroups.parquet arxiv_abstracts.parquet --seconds 240 --seeds 0 1

The papers' setting against cheaper ones, from all-MiniLM-L6-v2, on documents without their
labels; a probe on a few labelled documents a class then says what the embeddings are worth. The data: parquet with
``text`` and ``label``, and ``split`` ("train" and "test") or else halves by class.

First, alone on the machine, each setting is timed over a few steps (``--calibrate`` does nothing else); that gives the
steps it has in ``--seconds``, with what it spends before the first step. The trainings themselves then count steps, so
that what else the machine does changes no result. ``--steps`` gives all the same number instead. Finished runs are kept
in the work folder: an interrupted benchmark goes on, several processes can share it (``--only``), and ``--report``
writes ``results/equal_time.json`` and ``.md`` from what is there.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.datasets import SETS
from benchmarks.labelled import read_labelled
from benchmarks.records import add_bf16, difference, dtype_of, environment, mean_deviation, write_results
from benchmarks.rivals.train import CHEAP
from simlte_st import train
from simlte_st.data import DocSplit
from simlte_st.data.document import Document
from simlte_st.evaluation import ClassificationProbeEvaluator, tfidf_few_shot
from simlte_st.evaluation.splits import sample_documents
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import read_json, write_json
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training import TrainingResult

PAPERS = "the papers' setting"
WITHOUT_MLM = {"preset": "docsplit-bert", **CHEAP}
RUNS: dict[str, dict[str, Any] | None] = {
    "base": None,
    "base, [CLS]": None,
    PAPERS: {"preset": "docsplit-bert"},
    "random, 32": WITHOUT_MLM,
    "mean, random, 32": {**WITHOUT_MLM, "view": DocSplit(unit="paragraph"), "pooling": "keep"},
}
"""Settings of :func:`simlte_st.train` by name. The second is the papers' setting without MLM and dropout, which takes a
third of the time; the last one has views by paragraphs and the base's pooling besides."""
POOLING = {"base": "keep", "base, [CLS]": "cls"}
UNTRAINED = ("TF-IDF", *POOLING)
TWINS = {"mean, random, 32": "random, 32"}
"""Settings that cost what another does."""

Posts = dict[str, list[Document]]
Scores = dict[int, np.ndarray]
"""Macro-F1 of each draw, by seed."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument(
        "--only", nargs="+", choices=list(RUNS), default=list(RUNS), metavar="RUN", help=", ".join(RUNS)
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--seconds", type=float, default=240.0, help="for each training (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="so many steps for each training instead")
    parser.add_argument("--tokens", type=int, default=128, help="tokens a view may have")
    parser.add_argument("--read", type=int, default=256, help="tokens that are read for the probe")
    parser.add_argument("--documents", type=int, default=3000, help="training documents, drawn once")
    parser.add_argument("--pool", type=int, default=1000, help="labelled documents that the probe draws from")
    parser.add_argument("--test-documents", type=int, default=1500, help="test documents, drawn once")
    parser.add_argument("--shots", type=int, default=5, help="labelled documents a class")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("equal-time.work"), help="folder of finished runs")
    parser.add_argument("--calibrate", action="store_true", help="time the settings, and nothing else")
    parser.add_argument("--report", action="store_true", help="write the table of what is finished, run nothing")
    add_bf16(parser)
    arguments = parser.parse_args(argv)
    torch.set_num_threads(arguments.threads)
    present = [path for path in arguments.data if path.exists() or path.name in SETS]
    for path in set(arguments.data) - set(present):
        print(f"Skipped: {path} is not there.")
    if arguments.report:
        report(arguments)
        return
    for path in present:
        posts = read_posts(path, arguments)
        folder = arguments.work / f"{path.stem}, {budget(vars(arguments))}"
        if arguments.steps is None:
            for name in arguments.only:
                calibrate(name, posts, folder, arguments)
        if arguments.calibrate:
            continue
        tfidf = folder / "TF-IDF-0.json"
        if not tfidf.exists():
            draws = tfidf_few_shot(*columns(posts), shots=arguments.shots).draws
            record = {"name": "TF-IDF", "seed": 0, "data": path.stem, **settings(arguments)}
            write_json(tfidf, {**record, "macro_f1": [draw.macro_f1 for draw in draws]})
        for seed in arguments.seeds:
            for name in arguments.only:
                target = folder / f"{name}-{seed}.json"
                if target.exists() or (RUNS[name] is None and seed != arguments.seeds[0]):
                    continue
                record = {"name": name, "seed": seed, "data": path.stem, **settings(arguments)}
                write_json(target, {**record, **one_run(name, seed, posts, folder, arguments)})
                print(
                    f"{path.stem}: {name}, seed {seed}: {100 * np.mean(read_json(target)['macro_f1']):.1f}", flush=True
                )


def budget(options: dict[str, Any]) -> str:
    spent = f"{options['steps']} steps" if options["steps"] else f"{options['seconds']:g} s"
    return f"{spent}, bfloat16" if options.get("bf16") else spent


def settings(arguments: argparse.Namespace) -> dict[str, Any]:
    names = (
        "seconds", "steps", "tokens", "read", "documents", "pool", "test_documents", "shots", "threads", "bf16",
    )  # fmt: skip
    found = environment(dtype_of(arguments.bf16))
    return {"options": {name: getattr(arguments, name) for name in names}, "environment": found}


def read_posts(path: Path, arguments: argparse.Namespace) -> Posts:
    """Read the labelled documents, and draw as many as are asked for."""
    parts = read_labelled(path)
    return {
        "train": sample_documents(parts["train"], arguments.documents, seed=0),
        "pool": sample_documents(parts["train"], arguments.pool, seed=0),
        "test": sample_documents(parts["test"], arguments.test_documents, seed=0),
    }


def columns(posts: Posts) -> list[list[Any]]:
    return [
        values
        for part in ("pool", "test")
        for values in ([post.text for post in posts[part]], [post.label for post in posts[part]])
    ]


def trained(
    name: str, seed: int, steps: int, posts: Posts, output: Path, arguments: argparse.Namespace
) -> TrainingResult:
    options = RUNS[name]
    assert options is not None
    return train(
        [{"id": post.id, "text": post.text} for post in posts["train"]],
        output,
        base=PACKAGED_BASE,
        max_view_length=arguments.tokens,
        max_steps=steps,
        save_steps=10_000,
        held_out=0.0,
        seed=seed,
        bf16=arguments.bf16,
        overwrite=True,
        progress=False,
        **options,
    )


def calibrate(name: str, posts: Posts, folder: Path, arguments: argparse.Namespace) -> None:
    """Time runs of one step and of three: half of the difference is a step, the rest of the first comes before it."""
    path = folder / f"{name}.cost.json"
    if path.exists() or RUNS[name] is None:
        return
    if name in TWINS:
        calibrate(TWINS[name], posts, folder, arguments)
        write_json(path, read_json(folder / f"{TWINS[name]}.cost.json"))
        return
    output = folder / f"{name}.timed"
    seconds = {steps: trained(name, 0, steps, posts, output, arguments).seconds for steps in (1, 3)}
    shutil.rmtree(output)
    step = (seconds[3] - seconds[1]) / 2
    record = {"step": step, "before": max(0.0, seconds[1] - step), "seconds": seconds, **settings(arguments)}
    write_json(path, record)
    print(f"{folder.name}: {name}: {step:.2f} s a step, {record['before']:.1f} s before", flush=True)


def one_run(name: str, seed: int, posts: Posts, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if RUNS[name] is None:
        model = load_model(PACKAGED_BASE, POOLING[name], dtype=torch.float32).model
    else:
        steps = arguments.steps
        if steps is None:
            cost = read_json(folder / f"{name}.cost.json")
            steps = max(1, int((arguments.seconds - cost["before"]) / cost["step"]))
            record["cost"] = {"step": cost["step"], "before": cost["before"]}
        output = folder / f"{name}-{seed}.model"
        result = trained(name, seed, steps, posts, output, arguments)
        losses = [line for line in result.log if "loss" in line]
        record |= {"steps": steps, "seconds": result.seconds, "loss": [losses[0], losses[-1]]}
        record["batch_size"] = result.preset.batch_size
        model = SentenceTransformer(str(output))
        shutil.rmtree(output)
    evaluator = ClassificationProbeEvaluator(
        *columns(posts), shots=arguments.shots, max_seq_length=arguments.read, write_csv=False
    )
    record["metrics"] = evaluator(model)
    record["macro_f1"] = [draw.macro_f1 for draw in evaluator.last_draws]
    return record


def report(arguments: argparse.Namespace) -> None:
    """Write the tables of what is finished."""
    records = [read_json(path) for path in sorted(arguments.work.glob("*/*-*.json"))]
    text = [
        "# Settings of training at equal cost",
        "",
        "What `simlte_st.train` is given; all else is the preset's:",
        "",
    ]
    text += [f"- {name}: {legend(options)}" for name, options in RUNS.items() if options is not None] + [""]
    for data, spent in sorted({(record["data"], budget(record["options"])) for record in records}):
        of_data = [record for record in records if record["data"] == data]
        here = [record for record in of_data if record["name"] in UNTRAINED or belongs(record, spent)]
        options = next(record for record in here if budget(record["options"]) == spent)["options"]
        text += [f"## {data}, {spent}", "", account(options, here[0]["environment"]), "", table(here), ""]
        given = [
            f"--{name.replace('_', '-')}" + ("" if value is True else f" {value:g}")
            for name, value in options.items()
            if value
        ]
        name = data if data in SETS else f"{data}.parquet"
        text += [f"    python -m benchmarks.equal_time --data {name} {' '.join(given)}", ""]
    text += overall(records)
    write_results("equal_time", text, {"runs": records})


def overall(records: list[dict[str, Any]]) -> list[str]:
    """Compare settings over the data sets that have all of those with the most common budget."""
    budgets = [budget(record["options"]) for record in records if record["name"] == PAPERS]
    if not budgets:
        return []
    spent = max(set(budgets), key=budgets.count)
    scores: dict[str, dict[str, Scores]] = {}
    for record in records:
        if record["name"] in UNTRAINED or budget(record["options"]) == spent:
            by_data = scores.setdefault(record["name"], {})
            by_data.setdefault(record["data"], {})[record["seed"]] = 100 * np.array(record["macro_f1"])
    sets = sorted(scores[PAPERS])
    rows = []
    for name in ("TF-IDF", *RUNS):
        if set(sets) <= set(scores.get(name, {})):
            of_each = [np.mean([draws.mean() for draws in scores[name][data].values()]) for data in sets]
            row = [name, f"{np.mean(of_each):.1f}"]
            for other in ("base", PAPERS):
                pairs = [paired(scores[name][data], scores[other][data]) for data in sets]
                row.append(difference(np.mean(pairs, axis=0)))
            rows.append(row)
    header = ["setting", "macro-F1", *(f"against {other} [95%]" for other in ("the base", PAPERS))]
    about = f"Means over {', '.join(sets)}; the intervals are over draws, not over data sets."
    return [f"## All of them, {spent}", "", about, "", markdown_table(header, rows), ""]


def legend(options: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value!r}`" for name, value in options.items())


def belongs(record: dict[str, Any], spent: str) -> bool:
    """Tell whether a training had a budget; so many steps are so many, whether asked for or what the time was for."""
    return spent in (budget(record["options"]), budget({**record["options"], "steps": record["steps"]}))


def account(options: dict[str, Any], machine: dict[str, Any]) -> str:
    cost = budget(options) if options["steps"] else f"{budget(options)} on {options['threads']} core"
    return (
        f"all-MiniLM-L6-v2, {cost} ({machine['device']}) for each training, {options['documents']} documents at most, "
        f"{options['tokens']} tokens a view; MLP probe on {options['shots']} documents a class, 10 draws, at most "
        f"{options['test_documents']} test documents, read at {options['read']} tokens. After ± is the standard "
        "deviation over draws and seeds; the differences are paired by draw and seed, with bootstrap intervals."
    )


def table(records: list[dict[str, Any]]) -> str:
    """Make the table of one source."""
    scores = {
        name: {record["seed"]: 100 * np.array(record["macro_f1"]) for record in records if record["name"] == name}
        for name in ("TF-IDF", *RUNS)
    }
    rows = []
    for name, by_seed in scores.items():
        if not by_seed:
            continue
        record = next(record for record in records if record["name"] == name)
        values = np.concatenate(list(by_seed.values()))
        steps = record.get("steps")
        row = [name, *(["", ""] if steps is None else [str(steps), str(steps * record["batch_size"])])]
        row += [mean_deviation(values, factor=1)]
        row += [", ".join(f"{by_seed[seed].mean():.1f}" for seed in sorted(by_seed))]
        others = (scores[other] for other in ("base", PAPERS, "random, 32"))
        rows.append(row + [difference(paired(by_seed, other)) if other else "" for other in others])
    header = ["setting", "steps", "documents", "macro-F1", "of each seed"]
    header += [f"against {other} [95%]" for other in ("the base", PAPERS, "random, 32")]
    return markdown_table(header, rows)


def paired(mine: Scores, others: Scores) -> np.ndarray:
    """Compare draw by draw, over the seeds that both have; what has one seed only stands against every seed."""
    if len(mine) == 1 or len(others) == 1:
        pairs = [one - other for one in mine.values() for other in others.values()]
    else:
        pairs = [mine[seed] - others[seed] for seed in sorted(set(mine) & set(others))]
    # Draws of one seed share what was trained: the mean over seeds first, so that draws are what varies.
    found: np.ndarray = np.mean(pairs, axis=0)
    return found


if __name__ == "__main__":
    main()
