"""Long documents with all-MiniLM-L6-v2, untrained: read the beginning, read in chunks, or become a Longformer.

    python -m benchmarks.chunk_mean --data labelled-documents.parquet

Cost: documents of ``--tokens`` tokens, one at a time, forward and forward + backward; all ways to read take turns in
one process, several rounds, medians. Quality, with ``--data`` (columns ``text`` and ``label``, long documents): a probe
on a few labelled documents a class, half of the documents for training and half for testing; the same draws for all,
so that they are compared in pairs. A document is read up to ``--tokens`` tokens here too.

Each finished part is kept in the work folder, so that an interrupted benchmark goes on where it stopped and parts can
be run one by one (``--only``, ``--skip-cost``). What is finished goes to ``results/chunk_mean.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from transformers import AutoTokenizer

from benchmarks.records import RESULTS, environment
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.data.document import Document
from simlte_st.evaluation import ClassificationProbeEvaluator, bootstrap_interval, tfidf_few_shot
from simlte_st.evaluation.splits import sample_documents, split_by_label
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import read_json, write_json
from simlte_st.longformer import convert_to_longformer
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path
from simlte_st.training.dropout import set_dropout


def beginning(tokens: int) -> SentenceTransformer:
    return load_model(PACKAGED_BASE, max_seq_length=tokens).model


def longformer(tokens: int, window: int = 512) -> SentenceTransformer:
    path = packaged_base_path()
    converted = convert_to_longformer(str(path), max_length=tokens, attention_window=window)
    with tempfile.TemporaryDirectory() as folder:
        converted.save_pretrained(folder)
        AutoTokenizer.from_pretrained(path, model_max_length=tokens).save_pretrained(folder)
        transformer = Transformer(folder)
    return SentenceTransformer(modules=[transformer, Pooling(transformer.get_embedding_dimension()), Normalize()])


REFERENCE = "ChunkMean, chunks of 256"
READERS: dict[str, Callable[[int], SentenceTransformer]] = {
    "first 256 tokens": lambda tokens: beginning(min(256, tokens)),
    "first 512 tokens": lambda tokens: beginning(min(512, tokens)),
    REFERENCE: lambda tokens: to_chunk_mean(beginning(256), max_length=tokens),
    "ChunkMean, chunks of 512": lambda tokens: to_chunk_mean(beginning(512), max_length=tokens),
    "Longformer, window 512": longformer,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="labelled long documents as parquet: text, label")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens to read of a document; at least 512")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--limit", type=int, default=1000, help="documents of --data, drawn once")
    parser.add_argument("--shots", type=int, default=5, help="labelled documents a class")
    parser.add_argument("--only", nargs="+", choices=list(READERS), default=list(READERS), metavar="READER")
    parser.add_argument("--skip-cost", action="store_true")
    parser.add_argument("--work", type=Path, default=Path("chunk-mean.work"), help="folder of finished parts")
    arguments = parser.parse_args()
    cost = arguments.work / "cost.json"
    if cost.exists() and read_json(cost)["tokens"] != arguments.tokens:
        raise SystemExit(f"{arguments.work} holds results of other settings: give another --work.")
    if not arguments.skip_cost and not cost.exists():
        write_json(cost, measure_cost(arguments.tokens, arguments.repeats))
    if arguments.data is None or not arguments.data.exists():
        print(f"Quality skipped: {arguments.data or '--data'} is not there.")
    else:
        measure_quality(arguments)
    report(arguments)


def measure_cost(tokens: int, repeats: int) -> dict[str, Any]:
    models = {name: make(tokens) for name, make in READERS.items()}
    for model in models.values():
        set_dropout(model, 0.0)
    generator = torch.Generator().manual_seed(0)
    seconds: dict[str, dict[str, list[float]]] = {name: {"forward": [], "forward + backward": []} for name in models}
    for number in range(repeats + 1):
        ids = torch.randint(1000, 30000, (1, tokens), generator=generator)
        for name, model in models.items():
            read = min(tokens, model.max_seq_length or tokens)
            cut = ids[:, :read].clone()
            cut[:, 0], cut[:, -1] = model.tokenizer.cls_token_id, model.tokenizer.sep_token_id
            with torch.no_grad():
                forward = timed(model, cut, backward=False)
            both = timed(model, cut, backward=True)
            if number:  # the first round warms up
                seconds[name]["forward"].append(forward)
                seconds[name]["forward + backward"].append(both)
        print(f"cost: round {number} of {repeats}", flush=True)
    return {"tokens": tokens, "repeats": repeats, "seconds_per_document": seconds, "environment": environment()}


def timed(model: SentenceTransformer, ids: torch.Tensor, backward: bool) -> float:
    features = {"input_ids": ids.to(model.device), "attention_mask": torch.ones_like(ids, device=model.device)}
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    began = time.perf_counter()
    embedding = model(features)["sentence_embedding"]
    if backward:
        embedding.sum().backward()
        model.zero_grad()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


def measure_quality(arguments: argparse.Namespace) -> None:
    rows = pq.read_table(arguments.data, columns=["text", "label"]).to_pylist()
    classes = [str(row["label"]) for row in rows]
    documents = [
        Document(str(number), row["text"], str(row["label"]))
        for number, row in enumerate(rows)
        if row["text"].strip() and classes.count(str(row["label"])) > 1
    ]
    chosen = sample_documents(documents, arguments.limit, seed=0)
    # A class of which the sample has a single document cannot be divided.
    counts = [document.label for document in chosen]
    chosen = [document for document in chosen if counts.count(document.label) > 1]
    train, test = split_by_label(chosen, test_share=0.5, seed=0)
    columns = [[getattr(row, key) for row in part] for part in (train, test) for key in ("text", "label")]
    settings = {
        "data": arguments.data.name,
        "limit": arguments.limit,
        "documents": len(chosen),
        "classes": len({row.label for row in chosen}),
        "words": statistics.median(len(row.text.split()) for row in chosen),
        "tokens": arguments.tokens,
        "shots": arguments.shots,
    }
    tfidf = arguments.work / "TF-IDF.json"
    if tfidf.exists() and {name: read_json(tfidf)[name] for name in settings} != settings:
        raise SystemExit(f"{arguments.work} holds results of other settings: give another --work.")
    if not tfidf.exists():
        draws = tfidf_few_shot(*columns, shots=arguments.shots).draws
        write_json(tfidf, {**settings, "macro_f1": [draw.macro_f1 for draw in draws]})
    for name in arguments.only:
        path = arguments.work / f"{name}.json"
        if path.exists():
            continue
        model = READERS[name](arguments.tokens)
        evaluator = ClassificationProbeEvaluator(
            *columns, shots=arguments.shots, max_seq_length=None, batch_size=4, write_csv=False
        )
        began = time.perf_counter()
        metrics = evaluator(model)
        record = {
            **settings,
            "seconds": time.perf_counter() - began,
            "metrics": metrics,
            "macro_f1": [draw.macro_f1 for draw in evaluator.last_draws],
            "environment": environment(),
        }
        write_json(path, record)
        print(f"{name}: macro-F1 {100 * metrics['macro_f1_mean']:.1f}", flush=True)


def report(arguments: argparse.Namespace) -> None:
    record = {path.stem: read_json(path) for path in sorted(arguments.work.glob("*.json"))}
    text = ["# Long documents with all-MiniLM-L6-v2, untrained", ""]
    if "cost" in record:
        cost = record["cost"]
        text += [
            f"Seconds a document of {cost['tokens']} tokens, one at a time, {cost['environment']['threads']} thread(s) "
            f"on {cost['environment']['device']}; medians of {cost['repeats']} rounds in which all took turns. The "
            f"ratio is the median of the rounds' ratios to {REFERENCE}.",
            "",
            cost_table(cost["seconds_per_document"]),
            "",
        ]
    finished = {name: record[name] for name in ("TF-IDF", *READERS) if name in record}
    if finished:
        settings = next(iter(finished.values()))
        text += [
            f"MLP probe on {settings['shots']} documents a class, 10 draws; {settings['documents']} documents "
            f"({settings['data']}, {settings['classes']} classes, median {settings['words']:.0f} words), half of them "
            f"for testing; read up to {settings['tokens']} tokens. After ± is the standard deviation over draws; the "
            "differences are paired draw by draw, with bootstrap intervals.",
            "",
            quality_table({name: np.array(part["macro_f1"]) for name, part in finished.items()}),
            "",
        ]
    command = "python -m benchmarks.chunk_mean"
    if "cost" in record:
        command += f" --repeats {record['cost']['repeats']} --tokens {record['cost']['tokens']}"
    if finished:
        command += f" --data {settings['data']} --limit {settings['limit']} --shots {settings['shots']}"
    text += [f"    {command}", ""]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "chunk_mean.md").write_text("\n".join(text), encoding="utf-8")
    write_json(RESULTS / "chunk_mean.json", record)
    print("\n".join(text))


def cost_table(seconds: dict[str, dict[str, list[float]]]) -> str:
    rows = []
    for name, kinds in seconds.items():
        row = [name]
        for kind, values in kinds.items():
            ratios = [mine / theirs for mine, theirs in zip(values, seconds[REFERENCE][kind], strict=True)]
            row += [f"{statistics.median(values):.2f}", f"{statistics.median(ratios):.2f}"]
        rows.append(row)
    return markdown_table(["reads", "forward", "ratio", "forward + backward", "ratio"], rows)


def quality_table(scores: dict[str, np.ndarray]) -> str:
    rows = []
    for name, values in scores.items():
        row = [name, f"{100 * values.mean():.1f} ± {100 * values.std(ddof=1):.1f}"]
        for reference in ("first 256 tokens", "Longformer, window 512"):
            if reference in scores:
                difference = 100 * (values - scores[reference])
                low, high = bootstrap_interval(difference)
                row.append(f"{difference.mean():+.1f} [{low:+.1f}, {high:+.1f}]")
            else:
                row.append("")
        rows.append(row)
    return markdown_table(["reads", "macro-F1", "against the first 256 tokens [95%]", "against Longformer [95%]"], rows)


if __name__ == "__main__":
    main()
