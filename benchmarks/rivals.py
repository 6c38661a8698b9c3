"""DocSplit and its rivals on the same footing: one base, one corpus, one budget, and a probe on a few labelled texts.

    python -m benchmarks.rivals --data documents.parquet --base BASE
    python -m benchmarks.rivals --data documents.parquet --base BASE --report

The data: one row a document, columns ``text``, ``label`` and ``split`` ("train" or "test"). Each rival is trained on
the training documents without their labels; encoders that need no training stand beside them. Models of the Hub that
cannot be had here are skipped, and the report says so. Each finished run is kept in the work folder, so that an
interrupted benchmark goes on where it stopped and several processes can share the work (``--rivals``, ``--encoders``).
``--report`` writes ``results/rivals.json`` and ``results/rivals.md`` from what is finished.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer

from benchmarks.records import RESULTS, environment
from simlte_st.errors import MissingExtraError, ModelError
from simlte_st.evaluation import FewShotProbeEvaluator, bootstrap_interval, tfidf_few_shot
from simlte_st.evaluation.encoding import reading_at_most
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import read_json, write_json
from simlte_st.packaged import PACKAGED_BASE
from simlte_st.rivals import ENCODERS, RIVALS, ModelEncoder, load_encoder, train_rival

PROBED = [name for name, entry in ENCODERS.items() if not entry.ranks_only]
SETTINGS = (
    "data",
    "base",
    "steps",
    "batch_size",
    "tokens",
    "read",
    "learning_rate",
    "pooling",
    "test",
    "shots",
    "draws",
    "head",
)
REFERENCES = ("base-mean", "simcse-long")


def main(command: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="documents as parquet: text, label, split")
    parser.add_argument(
        "--data-name", default="", help="name of the benchmark, to mark models that have seen it: 20news"
    )
    parser.add_argument("--base", default=PACKAGED_BASE, help="the model that all begin with")
    parser.add_argument("--rivals", nargs="*", choices=list(RIVALS), default=list(RIVALS), help=", ".join(RIVALS))
    parser.add_argument("--encoders", nargs="*", choices=PROBED, default=PROBED, help=", ".join(PROBED))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch-size", type=int, default=32, help="a multiple of 8, for Contrastive Tension")
    parser.add_argument("--tokens", type=int, default=128, help="tokens of a text in training")
    parser.add_argument(
        "--read", type=int, default=256, help="tokens of a text in the probe; chunk-mean reads it whole"
    )
    parser.add_argument("--learning-rate", type=float, help="for all; without it the preset's")
    parser.add_argument("--pooling", choices=["cls", "mean", "keep"], help="for all rivals; without it the preset's")
    parser.add_argument("--test", type=int, default=2000, help="test documents, drawn once")
    parser.add_argument("--shots", type=int, default=5, help="labelled documents a class")
    parser.add_argument("--head", choices=["mlp", "logistic"], default="mlp", help="the probe")
    parser.add_argument("--draws", type=int, default=10, help="draws of these documents")
    parser.add_argument("--work", type=Path, default=Path("rivals.work"), help="folder of finished runs")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that repositories of the Hub bring")
    parser.add_argument("--report", action="store_true", help="write the tables of what is finished, run nothing")
    arguments = parser.parse_args(command)
    if not arguments.data.exists():
        raise SystemExit(f"Skipped: {arguments.data} is not there.")
    keep_settings(arguments)
    if arguments.report:
        report(arguments)
        return
    documents = read_documents(arguments.data, arguments.test)
    for name in arguments.encoders:
        finish(arguments.work / f"{name}.json", name, lambda name=name: probe_encoder(name, documents, arguments))
    for seed in arguments.seeds:
        for name in arguments.rivals:
            finish(
                arguments.work / f"{name}-{seed}.json",
                f"{name}, seed {seed}",
                lambda name=name, seed=seed: probe_rival(name, seed, documents, arguments),
            )


def keep_settings(arguments: argparse.Namespace) -> None:
    """Refuse a work folder whose runs had other settings."""
    settings = {name: getattr(arguments, name) for name in SETTINGS}
    settings |= {"data": arguments.data.name, "base": base_name(arguments.base)}
    path = arguments.work / "settings.json"
    if path.exists() and read_json(path) != settings:
        raise SystemExit(f"{arguments.work} holds runs of other settings, {read_json(path)}: give another --work.")
    if not path.exists():
        write_json(path, settings)


def base_name(base: str) -> str:
    """Name a base without its place on this machine."""
    return Path(base).name if Path(base).is_dir() else base


def finish(path: Path, what: str, job: Any) -> None:
    """Do a job that is not done, and keep its record. What was skipped is tried again."""
    if path.exists() and "skipped" not in read_json(path):
        return
    print(what, flush=True)
    try:
        record = job()
    except (ModelError, MissingExtraError) as error:
        record = {"skipped": str(error)}
        print(f"    Skipped: {error}", flush=True)
    write_json(path, {**record, "environment": environment()})


def read_documents(path: Path, test: int) -> list[list[Any]]:
    """Read texts and labels: of all training documents, and of a number of test documents drawn once."""
    table = pq.read_table(path, columns=["text", "label", "split"]).to_pylist()
    rows = {part: [row for row in table if row["split"] == part and row["text"].strip()] for part in ("train", "test")}
    chosen = np.random.default_rng(0).permutation(len(rows["test"]))[:test]
    rows["test"] = [rows["test"][index] for index in sorted(chosen)]
    return [[row[key] for row in rows[part]] for part in ("train", "test") for key in ("text", "label")]


def probe(model: SentenceTransformer, documents: list[list[Any]], arguments: argparse.Namespace) -> dict[str, Any]:
    evaluator = FewShotProbeEvaluator(
        *documents,
        head=arguments.head,
        shots=arguments.shots,
        draws=arguments.draws,
        max_seq_length=None,
        write_csv=False,
    )
    began = time.perf_counter()
    metrics = evaluator(model)
    return {
        "metrics": metrics,
        "macro_f1": [draw.macro_f1 for draw in evaluator.last_draws],
        "accuracy": [draw.accuracy for draw in evaluator.last_draws],
        "probe_seconds": time.perf_counter() - began,
    }


def probe_encoder(name: str, documents: list[list[Any]], arguments: argparse.Namespace) -> dict[str, Any]:
    if name == "tfidf":
        result = tfidf_few_shot(*documents, shots=arguments.shots, draws=arguments.draws)
        scores = {key: [getattr(draw, key) for draw in result.draws] for key in ("macro_f1", "accuracy")}
        return {"name": name, "metrics": result.metrics(), **scores}
    encoder = load_encoder(
        name,
        base=arguments.base,
        max_seq_length=arguments.read,
        trust_remote_code=arguments.trust_remote_code,
    )
    assert isinstance(encoder, ModelEncoder)  # what else there is has no vectors, or was dealt with above
    contaminated = arguments.data_name in ENCODERS[name].contaminated
    return {"name": name, "contaminated": contaminated, **probe(encoder.model, documents, arguments)}


def probe_rival(name: str, seed: int, documents: list[list[Any]], arguments: argparse.Namespace) -> dict[str, Any]:
    output = arguments.work / f"{name}-{seed}.model"
    rows = [{"id": str(index), "text": text} for index, text in enumerate(documents[0])]
    record = train_rival(
        name,
        rows,
        arguments.base,
        output,
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        max_seq_length=arguments.tokens,
        learning_rate=arguments.learning_rate,
        pooling=arguments.pooling,
        seed=seed,
        overwrite=True,
    )
    model = SentenceTransformer(str(output))
    with reading_at_most(model, arguments.read):
        scores = probe(model, documents, arguments)
    shutil.rmtree(output)
    training = {**record.to_dict(), "base": base_name(arguments.base)}
    return {"name": name, "training": training, **scores}


def report(arguments: argparse.Namespace) -> None:
    settings = read_json(arguments.work / "settings.json")
    files = [path for path in sorted(arguments.work.glob("*.json")) if path.name != "settings.json"]
    records = {path.stem: read_json(path) for path in files}
    skipped = {name: record["skipped"] for name, record in records.items() if "skipped" in record}
    done = [record for record in records.values() if "skipped" not in record]
    scores = {
        name: 100 * np.array([record["macro_f1"] for record in done if record["name"] == name])
        for name in [*ENCODERS, *RIVALS]
        if any(record["name"] == name for record in done)
    }
    if not done:
        raise SystemExit(f"Nothing is finished in {arguments.work}.")
    seen = {record["name"] for record in done if record.get("contaminated")}
    header = ["", "seeds", "macro-F1", *(f"against {_title(reference)} [95%]" for reference in REFERENCES)]
    rows = [_row(name, values, scores, seen) for name, values in scores.items()]
    text = [
        f"# Rivals on {settings['data']}",
        "",
        f"{settings['base']}, {settings['steps']} steps of {settings['batch_size']} documents, {settings['tokens']} "
        f"tokens a text, read at {settings['read']} tokens (mean over chunks: whole); probe ({settings['head']}) on "
        f"{settings['shots']} documents a class, {settings['draws']} draws. After ± is the standard deviation over "
        "draws (and seeds); differences are paired draw by draw, with bootstrap intervals.",
        "",
        markdown_table(header, rows),
        "",
    ]
    if seen:
        text += ["(c) Contaminated: it was trained on these texts, and its number means nothing.", ""]
    text += cost_table([record for record in done if "training" in record])
    if skipped:
        text += ["Skipped:", "", *(f"- {name}: {reason}" for name, reason in skipped.items()), ""]
    text += [f"    python -m benchmarks.rivals --data {settings['data']} --base {settings['base']}", ""]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "rivals.md").write_text("\n".join(text), encoding="utf-8")
    write_json(RESULTS / "rivals.json", {"settings": settings, "runs": records})
    print("\n".join(text))


def _title(name: str) -> str:
    return RIVALS[name].title if name in RIVALS else ENCODERS[name].title


def _row(name: str, values: np.ndarray, scores: dict[str, np.ndarray], seen: set[str]) -> list[str]:
    mark = " (c)" if name in seen else ""
    cells = [_title(name) + mark, str(len(values)), f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"]
    for reference in REFERENCES:
        if reference not in scores or reference == name or name in seen:
            cells.append("")
            continue
        # Paired by draw: the same documents; over seeds first, so that the draws are what varies.
        difference = values.mean(axis=0) - scores[reference].mean(axis=0)
        low, high = bootstrap_interval(difference)
        cells.append(f"{difference.mean():+.1f} [{low:+.1f}, {high:+.1f}]")
    return cells


def cost_table(records: list[dict[str, Any]]) -> list[str]:
    """What each rival's training cost: the budget is one, the work is not."""
    if not records:
        return []
    rows = []
    for name in RIVALS:
        runs = [record["training"] for record in records if record["name"] == name]
        if runs:
            numbers = [np.mean([run[key] for run in runs]) for key in ("encoder_tokens", "decoder_tokens")]
            seconds = np.mean([run["seconds"] for run in runs])
            rows.append([_title(name), *(f"{number / 1e3:,.0f}" for number in numbers), f"{seconds:.0f}"])
            rows[-1].append(runs[0]["passes"])
    header = ["", "encoder tokens (k)", "decoder tokens (k)", "seconds", "what a document costs in a step"]
    return ["Cost of a training run; tokens are those that went through, padding not counted:", "",
            markdown_table(header, rows), ""]  # fmt: skip


if __name__ == "__main__":
    main()
