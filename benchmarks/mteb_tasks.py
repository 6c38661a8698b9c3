"""The papers' data sets as tasks of mteb, and mteb's own long documents.

    python -m benchmarks.mteb_tasks --tasks bbc aan lee --path aan=aan-folder lee=lee-folder

``--tasks`` takes names of tasks, data sets or kinds (``--list`` prints them), and names of tasks of mteb, whose data
comes from the Hub: ``LongEmbed`` stands for its six. The base is read truncated, as far as it is made for, and in
chunks (``--max-seq-length``); ``--model`` adds others. Each finished task of a model is kept in the work folder, so
that an interrupted benchmark goes on where it stopped; what is finished goes to ``results/mteb_tasks.json`` and
``.md``. Data that is not there is skipped with a message.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mteb
from mteb import AbsTask
from sentence_transformers import SentenceTransformer

from benchmarks.parts import Parts, readers
from benchmarks.records import add_bf16, dtype_of, environment, write_results
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.tasks import MAIN_SCORES, TASKS, LocalTask, evaluate, paper_tasks

LONG = "LongEmbed"
"""What mteb calls its six tasks of long documents (Zhu et al., 2024)."""

SCORES = {
    "Classification": ("f1", "accuracy"),
    "Clustering": ("v_measure", "v_measure_std"),
    "Retrieval": ("ndcg_at_10", "recall_at_10", "recall_at_100", "mrr_at_1000"),
    "PairClassification": ("max_ap", "max_f1", "max_accuracy"),
    "STS": ("cosine_spearman", "cosine_pearson"),
}
"""What is kept of a task's scores, by kind, beside its main score."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", metavar="NAME", help="default: all of the papers' data sets")
    parser.add_argument("--path", nargs="+", default=[], metavar="DATA=PATH", help="where data sets are")
    parser.add_argument("--base", default=PACKAGED_BASE, help="base model (default: %(default)s)")
    parser.add_argument("--model", nargs="+", default=[], metavar="NAME", help="other models")
    parser.add_argument("--max-seq-length", type=int, default=4096, metavar="N", help="tokens to read of a text")
    parser.add_argument("--max-documents", type=int, default=2048, metavar="N", help="test documents of a task")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--work", type=Path, default=Path("mteb-tasks.work"), help="folder of finished parts")
    add_bf16(parser)
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join([*TASKS, LONG, *(task.metadata.name for task in mteb.get_benchmark(LONG).tasks)]))
        return
    try:
        tasks = chosen(options)
    except ConfigurationError as error:
        raise SystemExit(str(error)) from error
    settings = {
        "max_seq_length": options.max_seq_length,
        "max_documents": options.max_documents,
        "seed": options.seed,
        "bf16": options.bf16,
        "mteb": version("mteb"),
    }
    parts = Parts(options.work, settings)
    models = readers(options.base, options.model, options.max_seq_length, dtype_of(options.bf16))
    skipped: set[str] = set()
    for name, load in models.items():
        run(parts, name, load, [task for task in tasks if task.metadata.name not in skipped], options, skipped)
    report(parts, list(models), tasks, settings)


def chosen(options: argparse.Namespace) -> list[AbsTask]:
    paths = {}
    for item in options.path:
        data, equals, path = item.partition("=")
        if not equals:
            raise SystemExit(f"--path {item}: write DATA=PATH, such as bbc=folder.")
        paths[data] = path
    known = {*TASKS, *MAIN_SCORES, *(task.data_set for task in TASKS.values())}
    ours = [name for name in options.tasks or TASKS if name in known]
    made: list[AbsTask] = []
    if ours:
        made += paper_tasks(ours, paths=paths, max_documents=options.max_documents, seed=options.seed)
    for name in options.tasks or ():
        if name == LONG:
            made += mteb.get_benchmark(LONG).tasks
        elif name not in known:
            try:
                made.append(mteb.get_task(name, languages=["eng"]))
            except (KeyError, ValueError) as error:  # no such task; none of its texts are English
                raise SystemExit(f"mteb {mteb.__version__} has no English task {name!r}: {error}") from error
    return made


def run(
    parts: Parts,
    name: str,
    load: Callable[[], SentenceTransformer],
    tasks: Sequence[AbsTask],
    options: argparse.Namespace,
    skipped: set[str],
) -> None:
    """Run the tasks that are not finished, loading the model for the first of them."""
    loaded: list[SentenceTransformer] = []
    for task in tasks:
        part = f"{name}, {task.metadata.name}"
        if parts.finished(part) is not None:
            continue
        try:
            task.load_data()
        except (DataError, OSError) as error:  # OSError: a task of mteb without the Hub
            print(f"Skipped {task.metadata.name}: {error}", flush=True)
            skipped.add(task.metadata.name)
            continue
        if not loaded:
            loaded.append(load())
        parts.finish(part, lambda task=task: measure(loaded[0], task, options.batch_size))  # type: ignore[misc]
        task.unload_data()


def measure(model: SentenceTransformer, task: AbsTask, batch_size: int) -> dict[str, Any]:
    size = texts(task) if isinstance(task, LocalTask) else {}
    began = time.perf_counter()
    result = evaluate(model, task, batch_size=batch_size).task_results[0]
    kept = dict.fromkeys((task.metadata.main_score, *SCORES.get(task.metadata.type, ())))
    scores = {}
    for split, subsets in result.scores.items():
        scores[split] = {key: statistics.mean(subset[key] for subset in subsets) for key in kept if key in subsets[0]}
        draws = [draw["f1"] for subset in subsets for draw in subset.get("scores_per_experiment", ())]
        if draws:
            scores[split]["f1_std"] = statistics.pstdev(draws)
    return {
        "kind": task.metadata.type,
        "main_score": task.metadata.main_score,
        "main": statistics.mean(split[task.metadata.main_score] for split in scores.values()),
        "scores": scores,
        "texts": size,
        "tokens": model.max_seq_length,
        "seconds": time.perf_counter() - began,
        "environment": environment(next(model.parameters()).dtype),
    }


def texts(task: LocalTask) -> dict[str, Any]:
    """Number and median length in words of the texts that a task compares."""
    assert task.dataset is not None
    data = task.dataset["default"]["test"] if task.metadata.type == "Retrieval" else task.dataset["test"]
    columns = {
        "Retrieval": lambda: [data["corpus"]["text"], data["queries"]["text"]],
        "Classification": lambda: [data["text"]],
        "Clustering": lambda: [data["sentences"]],
    }
    found = columns.get(task.metadata.type, lambda: [data["sentence1"], data["sentence2"]])()
    words = [len(text.split()) for column in found for text in column]
    return {"texts": len(words), "words_median": statistics.median(words)}


def report(parts: Parts, models: Sequence[str], tasks: Sequence[AbsTask], settings: dict[str, Any]) -> None:
    names = [task.metadata.name for task in tasks]
    records = {
        name: {model: record for model in models if (record := parts.finished(f"{model}, {name}")) is not None}
        for name in names
    }
    records = {name: record for name, record in records.items() if record}
    if not records:
        print("Nothing is finished: no results are written.")
        return
    rows = []
    for name, by_model in records.items():
        first = next(iter(by_model.values()))
        size = first["texts"]
        about = [
            name,
            first["main_score"],
            f"{size.get('texts', '')}",
            f"{size.get('words_median', 0):.0f}" if size else "",
        ]
        rows.append(about + [f"{100 * by_model[model]['main']:.1f}" if model in by_model else "" for model in models])
    text = [
        "# Tasks of mteb over the papers' data sets",
        "",
        f"Main score of each task, in percent; mteb {settings['mteb']}, at most {settings['max_documents']} test "
        f"documents a task, texts read up to {settings['max_seq_length']} tokens (truncated: as far as the model is "
        "made for). Texts and median words are those that are tested on.",
        "",
        markdown_table(["task", "score", "texts", "words", *models], rows),
        "",
        f"    python -m benchmarks.mteb_tasks --tasks {' '.join(records)} --path ... --max-seq-length "
        f"{settings['max_seq_length']} --max-documents {settings['max_documents']}",
        "",
    ]
    write_results("mteb_tasks", text, {"settings": settings, "tasks": records})


if __name__ == "__main__":
    main()
