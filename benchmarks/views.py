"""Views compared on the same footing: what does each do to an embedding model that is good already?

From one base, with one budget (steps, batch, tokens a view), each view trains a model on the training posts of
20 Newsgroups without their labels; a probe on a few labelled posts a class then says what the embeddings are worth.

    python -m benchmarks.views --data 20newsgroups.parquet

The data: one row a post, columns ``text``, ``label`` and ``split`` ("train" or "test"). Each finished run is kept in
the work folder, so that an interrupted benchmark goes on where it stopped and several processes can share the work
(``--only``). ``--report`` writes ``results/views.json`` and ``results/views.md`` from what is finished.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.labelled import read_labelled
from benchmarks.parts import Parts
from benchmarks.records import add_bf16, difference, dtype_of, environment, mean_deviation, write_results
from benchmarks.rivals.train import CONTRASTIVE
from simlte_st import train
from simlte_st.data import Crop, DocSplit, Identity
from simlte_st.data.document import Document
from simlte_st.evaluation import ClassificationProbeEvaluator, tfidf_few_shot
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE

# Everything that a run does not name is the papers', without MLM and dropout, with the base's pooling: one for all.
RUNS: dict[str, dict[str, Any] | None] = {
    "base": None,
    "Identity (SimCSE)": {"view": Identity(), "dropout": 0.1},  # nothing but dropout tells its views apart
    "Crop (Contriever)": {"view": Crop()},
    "DocSplit, sentences": {"view": DocSplit()},
    "DocSplit, sentences, spread": {"view": DocSplit(window="spread")},
    "DocSplit, paragraphs": {"view": DocSplit(unit="paragraph")},
    "DocSplit, paragraphs, spread": {"view": DocSplit(unit="paragraph", window="spread")},
    "DocSplit, blocks of 2 to 12": {"view": DocSplit(unit="block")},
    "DocSplit, the papers' setting": {
        "view": DocSplit(),
        "pooling": "cls",
        "mlm_weight": 0.1,
        "dropout": 0.1,
        "warmup": 1e-9,
    },
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="20 Newsgroups as parquet: text, label, split")
    parser.add_argument(
        "--only", nargs="+", choices=list(RUNS), default=list(RUNS), metavar="RUN", help=", ".join(RUNS)
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128, help="tokens a view may have")
    parser.add_argument("--test-posts", type=int, default=2000, help="test posts, drawn once")
    parser.add_argument("--work", type=Path, default=Path("views.work"), help="folder of finished runs")
    parser.add_argument("--report", action="store_true", help="write the table of what is finished, run nothing")
    add_bf16(parser)
    arguments = parser.parse_args(argv)
    if not arguments.data.exists():
        raise SystemExit(f"Skipped: {arguments.data} is not there.")
    names = ("steps", "batch_size", "tokens", "test_posts", "bf16")
    parts = Parts(arguments.work, {name: getattr(arguments, name) for name in names})
    posts = read_posts(arguments.data, arguments.test_posts)
    if arguments.report:
        report(parts, posts)
        return
    for seed in arguments.seeds:
        for name in arguments.only:
            if not (name == "base" and seed != arguments.seeds[0]):
                parts.finish(f"{name}-{seed}", lambda name=name, seed=seed: one_run(name, seed, posts, arguments))  # type: ignore[misc]


def read_posts(path: Path, test_posts: int) -> dict[str, list[Document]]:
    posts = read_labelled(path)
    chosen = np.random.default_rng(0).permutation(len(posts["test"]))[:test_posts]
    return {"train": posts["train"], "test": [posts["test"][index] for index in sorted(chosen)]}


def columns(posts: dict[str, list[Document]]) -> list[list[Any]]:
    return [[getattr(post, key) for post in posts[part]] for part in ("train", "test") for key in ("text", "label")]


def one_run(name: str, seed: int, posts: dict[str, list[Document]], arguments: argparse.Namespace) -> dict[str, Any]:
    settings = RUNS[name]
    dtype = dtype_of(arguments.bf16)
    record: dict[str, Any] = {"name": name, "seed": seed, "settings": repr(settings), "environment": environment(dtype)}
    began = time.perf_counter()
    if settings is None:
        model = load_model(PACKAGED_BASE, dtype=torch.float32).model
    else:
        output = arguments.work / f"{name}-{seed}.model"
        result = train(
            [{"id": str(index), "text": post.text} for index, post in enumerate(posts["train"])],
            output,
            base=PACKAGED_BASE,
            preset=CONTRASTIVE,
            batch_size=arguments.batch_size,
            max_view_length=arguments.tokens,
            max_steps=arguments.steps,
            held_out=0.0,
            seed=seed,
            bf16=arguments.bf16,
            overwrite=True,
            **{"pooling": "keep", **settings},
        )
        losses = [line for line in result.log if "loss" in line]
        record["loss"] = {"first": losses[0], "last": losses[-1]}
        record["coverage"] = result.coverage.share
        model = SentenceTransformer(str(output))
        shutil.rmtree(output)
    record["seconds"] = time.perf_counter() - began
    evaluator = ClassificationProbeEvaluator(*columns(posts), shots=5, max_seq_length=256, write_csv=False)
    record["metrics"] = evaluator(model)
    record["macro_f1"] = [draw.macro_f1 for draw in evaluator.last_draws]
    record["accuracy"] = [draw.accuracy for draw in evaluator.last_draws]
    return record


def report(parts: Parts, posts: dict[str, list[Document]]) -> None:
    options, tfidf, records = parts.settings, tfidf_few_shot(*columns(posts)), list(parts.every().values())
    scores = {name: np.array([r["macro_f1"] for r in records if r["name"] == name]) for name in RUNS}
    scores = {name: 100 * values for name, values in scores.items() if len(values)}
    rows = [["TF-IDF + logistic regression", *_row(100 * np.array([[draw.macro_f1 for draw in tfidf.draws]]), scores)]]
    rows += [[name, *_row(values, scores)] for name, values in scores.items()]
    header = ["views", "seeds", "5-shot macro-F1", "against the base [95%]", "against Crop [95%]"]
    text = [
        "# Views on 20 Newsgroups, from a base that is a sentence encoder already",
        "",
        f"all-MiniLM-L6-v2, {options['steps']} steps of {options['batch_size']} documents, {options['tokens']} tokens "
        "a view, read at 256 tokens; MLP probe on 5 posts a class, 10 draws, "
        f"{options['test_posts']} test posts. After ± is the standard deviation over draws (and seeds); the "
        "differences are paired draw by draw, with bootstrap intervals.",
        "",
        markdown_table(header, rows),
        "",
        "    python -m benchmarks.views --data 20newsgroups.parquet",
        "    python -m benchmarks.views --data 20newsgroups.parquet --report",
        "",
    ]
    record = {"options": options, "environment": environment(dtype_of(options["bf16"])), "tfidf": tfidf.metrics()}
    write_results("views", text, {**record, "runs": records})


def _row(values: np.ndarray, scores: dict[str, np.ndarray]) -> list[str]:
    cells = [str(len(values)), mean_deviation(values, factor=1)]
    for reference in ("base", "Crop (Contriever)"):
        if reference not in scores:
            cells.append("")
            continue
        # Paired by draw: the same posts; over seeds first, so that the draws are what varies.
        cells.append(difference(values.mean(axis=0) - scores[reference].mean(axis=0)))
    return cells


if __name__ == "__main__":
    main()
