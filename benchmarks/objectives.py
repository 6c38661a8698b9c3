"""Objectives on the same footing, from one raw language model: is DocSplit better than SimCSE, and by how much?

    python -m benchmarks.objectives --base bert-small --corpus enwiki2014.parquet \
        --data 20newsgroups.parquet arxiv_abstracts.parquet:10 --seeds 0 1 2

From one base (a folder, such as ``benchmarks.pretrain_mlm`` makes), on one corpus, with one budget (steps, batch,
tokens a view) and everything else from the papers' preset, each objective trains a model; probes on labelled documents,
few of them and all, then say what its embeddings are worth. The data: parquet with ``text`` and ``label``, and
``split`` ("train" and "test") or else halves by class; a number behind the colon is the examples a class of the
few-shot probe (the papers have 5, and 10 for FakeNews and arXiv).

Models and finished probes are kept in the work folder: an interrupted benchmark goes on, several processes can share it
(``--only``, ``--seeds``), data sets can be added, and ``--report`` writes ``results/objectives.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.pretrain_mlm import ACCOUNT
from benchmarks.records import RESULTS, environment
from benchmarks.relative_gain import gain_interval, papers_gain, relative_gain
from simlte_st import train
from simlte_st.base_models import load_base
from simlte_st.data import Crop, Duplicate
from simlte_st.data.document import Document
from simlte_st.evaluation import few_shot_probe, fit_probe, tfidf_few_shot, tfidf_probe
from simlte_st.evaluation.encoding import encode_texts
from simlte_st.evaluation.splits import sample_documents, split_by_label
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import read_json, write_json

SIMCSE = "SimCSE"
DOCSPLIT = "DocSplit"
TFIDF = "TF-IDF"
BASES = {"base, [CLS]": "cls", "base, mean": "mean"}
OBJECTIVES: dict[str, dict[str, Any]] = {
    SIMCSE: {"view": Duplicate(), "mlm_weight": 0.0, "dropout": 0.1},  # nothing but dropout tells its views apart
    "SimCSE, with MLM": {"view": Duplicate(), "dropout": 0.1},
    "Crop (Contriever)": {"view": Crop(), "mlm_weight": 0.0, "pooling": "mean"},
    "DocSplit, without MLM": {"mlm_weight": 0.0},
    DOCSPLIT: {},
}
"""What each objective changes in the papers' preset. With MLM or without: so that the two differ in one thing only."""
KINDS = ("few-shot", "full")


@dataclass(frozen=True)
class Labelled:
    """A labelled data set: documents to learn from and to score on, and the few-shot probe's examples a class."""

    name: str
    train: list[Document]
    test: list[Document]
    shots: int

    def columns(self) -> list[list[Any]]:
        """Give texts and labels to learn from, then those to score on."""
        parts = (self.train, self.test)
        return [
            values
            for part in parts
            for values in ([document.text for document in part], [document.label for document in part])
        ]


def main(argv: Sequence[str] | None = None) -> None:
    names = [*BASES, *OBJECTIVES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="folder of the language model to begin with")
    parser.add_argument("--corpus", type=Path, required=True, help="documents to train on")
    parser.add_argument("--limit", type=int, help="use no more than so many of them")
    parser.add_argument("--data", nargs="+", required=True, metavar="PATH[:SHOTS]", help="labelled documents")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="RUN", help=", ".join(names))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=36)
    parser.add_argument("--tokens", type=int, default=128, help="tokens a view may have")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--read", type=int, default=512, help="tokens that are read for the probes, if the base can")
    parser.add_argument("--train-documents", type=int, default=100_000, help="of each data set, drawn once")
    parser.add_argument("--test-documents", type=int, default=100_000, help="likewise")
    parser.add_argument("--draws", type=int, default=10, help="draws of the few-shot probe")
    parser.add_argument("--head", choices=["mlp", "logistic"], default="mlp")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--work", type=Path, default=Path("objectives.work"), help="folder of models and probes")
    parser.add_argument("--results", type=Path, default=RESULTS, help=argparse.SUPPRESS)
    parser.add_argument("--report", action="store_true", help="write the tables of what is finished, run nothing")
    arguments = parser.parse_args(argv)
    if arguments.report:
        report(arguments.work, arguments.results)
        return
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    for path in (arguments.base, arguments.corpus):
        if not path.exists():
            raise SystemExit(f"Skipped: {path} is not there.")
    keep_settings(arguments)
    data = read_all(arguments)
    runs = [(name, 0) for name in BASES] + [(name, seed) for seed in arguments.seeds for name in OBJECTIVES]
    for name, seed in [(TFIDF, 0), *(run for run in runs if run[0] in arguments.only)]:
        missing = [each for each in data if not probe_path(arguments, each, name, seed).exists()]
        if not missing:
            continue
        model: Any = None
        if name in BASES:
            model = load_base(arguments.base, BASES[name]).model
        elif name in OBJECTIVES:
            model = load_base(trained(name, seed, arguments)).model
        for each in missing:
            record(arguments, each, name, seed, model)


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Collect what must be the same for all runs that are compared."""
    weights = arguments.base / "model.safetensors"
    names = (
        "limit", "steps", "batch_size", "tokens", "learning_rate", "read", "train_documents", "test_documents",
        "draws", "head",
    )  # fmt: skip
    account = arguments.base / ACCOUNT
    made = read_json(account) if account.exists() else None
    return {
        "base": {
            "name": arguments.base.name,
            "sha256": hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else None,
            "pretrained": made
            and {
                **made["settings"],
                "tokens_seen": made["tokens_seen"],
                "perplexity": made["pieces"][-1].get("perplexity"),
            },
        },
        "corpus": arguments.corpus.name,
        **{name: getattr(arguments, name) for name in names},
    }


def keep_settings(arguments: argparse.Namespace) -> None:
    path = arguments.work / "settings.json"
    settings = settings_of(arguments)
    if not path.exists():
        write_json(path, settings)
    saved = read_json(path)
    different = [name for name in settings if saved.get(name) != settings[name]]
    if different:
        raise SystemExit(f"{arguments.work} holds runs with other {', '.join(different)}: choose another --work.")


def read_all(arguments: argparse.Namespace) -> list[Labelled]:
    found = []
    for given in arguments.data:
        name, _, shots = given.rpartition(":") if given.rpartition(":")[2].isdigit() else (given, "", "5")
        path = Path(name)
        if path.exists():
            found.append(read_labelled(path, int(shots), arguments.train_documents, arguments.test_documents))
        else:
            print(f"Skipped: {path} is not there.")
    if not found:
        raise SystemExit("There are no labelled documents to measure on.")
    return found


def read_labelled(path: Path, shots: int, most_train: int, most_test: int) -> Labelled:
    """Read labelled documents, divide them where they are not, and draw as many as are asked for."""
    table = pq.read_table(path)
    splits = table["split"].to_pylist() if "split" in table.column_names else ["all"] * len(table)
    texts, labels = table["text"].to_pylist(), table["label"].to_pylist()
    parts: dict[str, list[Document]] = {"train": [], "test": [], "all": []}
    for number, (text, label, split) in enumerate(zip(texts, labels, splits, strict=True)):
        if text.strip() and split in parts:
            parts[split].append(Document(str(number), text, label=str(label)))
    if parts["all"]:
        parts["train"], parts["test"] = split_by_label(parts["all"], 0.5, seed=0)
    train_part, test_part = (
        sample_documents(parts[part], most, seed=0) for part, most in (("train", most_train), ("test", most_test))
    )
    return Labelled(path.stem, train_part, test_part, shots)


def probe_path(arguments: argparse.Namespace, data: Labelled, name: str, seed: int) -> Path:
    return Path(arguments.work) / "probes" / f"{data.name}-{data.shots}" / f"{name}-{seed}.json"


def record(arguments: argparse.Namespace, data: Labelled, name: str, seed: int, model: Any) -> None:
    """Probe a model, or TF-IDF where there is none, and keep what comes out."""
    began = time.perf_counter()
    found = tfidf_scores(data, arguments) if model is None else scores(model, data, arguments)
    few, full = (100 * np.mean(found[kind]) for kind in KINDS)
    write_json(
        probe_path(arguments, data, name, seed),
        {
            "data": data.name,
            "shots": data.shots,
            "documents": {"train": len(data.train), "test": len(data.test)},
            "name": name,
            "seed": seed,
            **found,
            "probe_seconds": round(time.perf_counter() - began, 1),
            "environment": environment(),
        },
    )
    print(f"{data.name}: {name}, seed {seed}: macro-F1 {few:.1f} few-shot, {full:.1f} full", flush=True)


def trained(name: str, seed: int, arguments: argparse.Namespace) -> Path:
    """Train a model, or find the one that was; go on with one that was interrupted."""
    output: Path = arguments.work / "models" / f"{name}-{seed}"
    if output.exists():
        return output
    print(f"{name}, seed {seed}", flush=True)
    result = train(
        str(arguments.corpus),
        output,
        base=arguments.base,
        preset="docsplit-bert",
        limit=arguments.limit,
        batch_size=arguments.batch_size,
        max_seq_length=arguments.tokens,
        max_steps=arguments.steps,
        learning_rate=arguments.learning_rate,
        held_out=0.0,
        seed=seed,
        resume=(output.with_name(f"{output.name}.run") / "settings.json").exists(),
        **OBJECTIVES[name],
    )
    if result.interrupted:
        raise SystemExit("Interrupted: the same command goes on.")
    return output


def scores(model: Any, data: Labelled, arguments: argparse.Namespace) -> dict[str, Any]:
    """Probe a model: macro-F1 of each draw, and of all training documents."""
    train_texts, train_labels, test_texts, test_labels = data.columns()
    rows = encode_texts(
        model,
        train_texts + test_texts,
        batch_size=32,
        max_seq_length=arguments.read,
        show_progress_bar=False,
        truncate_dim=None,
    )
    train_x, test_x = rows[: len(train_texts)], rows[len(train_texts) :]
    few = few_shot_probe(
        train_x,
        train_labels,
        test_x,
        test_labels,
        shots=data.shots,
        draws=arguments.draws,
        head=arguments.head,
    )
    full = fit_probe(train_x, train_labels, test_x, test_labels, head=arguments.head)
    return {"few-shot": [draw.macro_f1 for draw in few.draws], "full": [full.macro_f1]}


def tfidf_scores(data: Labelled, arguments: argparse.Namespace) -> dict[str, Any]:
    few = tfidf_few_shot(*data.columns(), shots=data.shots, draws=arguments.draws)
    return {
        "few-shot": [draw.macro_f1 for draw in few.draws],
        "full": [tfidf_probe(*data.columns()).macro_f1],
    }


def report(work: Path, results: Path) -> None:
    """Write the tables of what is finished."""
    records = [read_json(path) for path in sorted(work.glob("probes/*/*.json"))]
    if not records:
        raise SystemExit(f"There are no finished runs in {work}.")
    settings = read_json(work / "settings.json")
    sets = sorted({f"{each['data']}, {each['shots']} shots" for each in records})
    gains = {name: {kind: gain_of(records, name, kind) for kind in KINDS} for name in OBJECTIVES if name != SIMCSE}
    text = ["# Objectives from one raw language model", "", account(settings, records), ""]
    text += ["Mean relative gain in macro-F1 over SimCSE, over the data sets:", "", gain_table(gains), ""]
    for kind in KINDS:
        text += [f"Macro-F1, {kind}:", "", score_table(records, sets, kind), ""]
    results.mkdir(parents=True, exist_ok=True)
    (results / "objectives.md").write_text("\n".join(text), encoding="utf-8")
    write_json(results / "objectives.json", {"settings": settings, "gains": gains, "runs": records})
    print("\n".join(text))


def account(settings: dict[str, Any], records: Sequence[dict[str, Any]]) -> str:
    base = settings["base"]
    made = base["pretrained"]
    what = base["name"]
    if made:
        what = (
            f"a BERT of {made['layers']} layers and {made['hidden']} dimensions, pretrained by MLM on "
            f"{made['tokens_seen']:,} tokens of {made['corpus']}"
        )
        what += "" if made["perplexity"] is None else f" (held-out perplexity {made['perplexity']:.1f})"
    return (
        f"The base: {what}. Each objective: {settings['steps']} steps of {settings['batch_size']} documents of "
        f"{settings['corpus']}, {settings['tokens']} tokens a view, learning rate {settings['learning_rate']:g}; the "
        "other settings are the papers'. Equal steps are not equal time: MLM is a second pass. Probes: "
        f"{settings['head']} head, read at {settings['read']} tokens at most, {settings['draws']} few-shot draws; "
        "after ± is the standard deviation over seeds and draws. The intervals are a 95% bootstrap over both, "
        "in pairs; with one seed they leave out what another training would change. "
        f"Device: {records[0]['environment']['device']}."
    )


def gain_of(records: Sequence[dict[str, Any]], name: str, kind: str) -> dict[str, Any] | None:
    """Compare with SimCSE on the data sets and seeds that both have."""
    found: dict[str, dict[tuple[str, int], dict[int, list[float]]]] = {name: {}, SIMCSE: {}}
    for each in records:
        if each["name"] in found:
            found[each["name"]].setdefault((each["data"], each["shots"]), {})[each["seed"]] = each[kind]
    sets = sorted(set(found[name]) & set(found[SIMCSE]))
    of_each = [set(found[each][data]) for each in found for data in sets]
    seeds = sorted(set.intersection(*of_each)) if of_each else []
    if not seeds:
        return None
    ours, theirs = (
        {f"{data}-{shots}": [found[each][data, shots][seed] for seed in seeds] for data, shots in sets}
        for each in (name, SIMCSE)
    )
    return {
        "gain": relative_gain(ours, theirs),
        "interval": gain_interval(ours, theirs),
        "seeds": seeds,
        "of_each": {data: relative_gain({data: ours[data]}, {data: theirs[data]}) for data in ours},
    }


def gain_table(gains: dict[str, dict[str, Any]]) -> str:
    rows = [[name, *(_gain(kinds[kind]) for kind in KINDS), _seeds(kinds["full"])] for name, kinds in gains.items()]
    rows.append(["DocSplit, as the papers print it", *(f"{100 * papers_gain(kind):+.1f}%" for kind in KINDS), ""])
    return markdown_table(["objective", "few-shot [95%]", "full [95%]", "seeds"], rows)


def _gain(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    interval = found["interval"]
    between = "" if interval is None else f" [{100 * interval[0]:+.1f}, {100 * interval[1]:+.1f}]"
    return f"{100 * found['gain']:+.1f}%{between}"


def _seeds(found: dict[str, Any] | None) -> str:
    return "" if found is None else str(len(found["seeds"]))


def score_table(records: Sequence[dict[str, Any]], sets: Sequence[str], kind: str) -> str:
    """Make a table of means over seeds and draws, a column a data set."""
    rows = []
    for name in (TFIDF, *BASES, *OBJECTIVES):
        row = [name]
        for data in sets:
            here = [r[kind] for r in records if r["name"] == name and f"{r['data']}, {r['shots']} shots" == data]
            values = 100 * np.concatenate(here) if here else np.array([])
            spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
            row.append(f"{values.mean():.1f}{spread}" if len(values) else "")
        if any(row[1:]):
            rows.append(row)
    return markdown_table([f"{kind} macro-F1", *sets], rows)


if __name__ == "__main__":
    main()
