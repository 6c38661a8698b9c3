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
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from transformers import AutoTokenizer

from benchmarks.parts import Parts
from benchmarks.records import add_bf16, difference, dtype_of, environment, mean_deviation, write_results
from benchmarks.timing import side_by_side
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.data import read_documents
from simlte_st.data.document import Document
from simlte_st.evaluation import ClassificationProbeEvaluator, tfidf_few_shot
from simlte_st.evaluation.splits import sample_documents, split_by_label
from simlte_st.evaluation.table import markdown_table
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


KINDS = ("forward", "forward + backward")
REFERENCE = "ChunkMean, chunks of 256"
READERS: dict[str, Callable[[int], SentenceTransformer]] = {
    "first 256 tokens": lambda tokens: beginning(min(256, tokens)),
    "first 512 tokens": lambda tokens: beginning(min(512, tokens)),
    REFERENCE: lambda tokens: to_chunk_mean(beginning(256), max_length=tokens),
    "ChunkMean, chunks of 512": lambda tokens: to_chunk_mean(beginning(512), max_length=tokens),
    "Longformer, window 512": longformer,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="labelled long documents as parquet: text, label")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens to read of a document; at least 512")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--limit", type=int, default=1000, help="documents of --data, drawn once")
    parser.add_argument("--shots", type=int, default=5, help="labelled documents a class")
    parser.add_argument("--only", nargs="+", choices=list(READERS), default=list(READERS), metavar="READER")
    parser.add_argument("--skip-cost", action="store_true")
    parser.add_argument("--work", type=Path, default=Path("chunk-mean.work"), help="folder of finished parts")
    add_bf16(parser)
    arguments = parser.parse_args(argv)
    costs = Parts(arguments.work / "cost", {"tokens": arguments.tokens, "bf16": arguments.bf16})
    if not arguments.skip_cost:
        dtype = dtype_of(arguments.bf16)
        costs.finish("cost", lambda: measure_cost(arguments.tokens, arguments.repeats, dtype))
    quality = None
    if arguments.data is None or not arguments.data.exists():
        print(f"Quality skipped: {arguments.data or '--data'} is not there.")
    else:
        quality = measure_quality(arguments)
    report(costs.finished("cost"), quality)


def measure_cost(tokens: int, repeats: int, dtype: torch.dtype) -> dict[str, Any]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ids = torch.randint(1000, 30000, (1, tokens), generator=torch.Generator().manual_seed(0))
    jobs: dict[str, Callable[[], object]] = {}
    for name, make in READERS.items():
        model = make(tokens).to(device, dtype)
        set_dropout(model, 0.0)
        cut = ids[:, : min(tokens, model.max_seq_length or tokens)].clone()
        cut[:, 0], cut[:, -1] = model.tokenizer.cls_token_id, model.tokenizer.sep_token_id
        for kind in KINDS:
            jobs[f"{name}: {kind}"] = partial(read_document, model, cut.to(device), kind == KINDS[1])
    seconds = side_by_side(jobs, repeats, device)
    by_reader = {name: {kind: seconds[f"{name}: {kind}"] for kind in KINDS} for name in READERS}
    return {"tokens": tokens, "repeats": repeats, "seconds_per_document": by_reader, "environment": environment(dtype)}


def read_document(model: SentenceTransformer, ids: torch.Tensor, backward: bool) -> None:
    with torch.set_grad_enabled(backward):
        embedding = model({"input_ids": ids, "attention_mask": torch.ones_like(ids)})["sentence_embedding"]
    if backward:
        embedding.sum().backward()
        model.zero_grad()


def measure_quality(arguments: argparse.Namespace) -> Parts:
    labelled = list(read_documents(arguments.data, label_column="label"))
    chosen = sample_documents(repeated(labelled), arguments.limit, seed=0)
    chosen = repeated(chosen)  # a class of which the sample has a single document cannot be divided
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
        "bf16": arguments.bf16,
    }
    parts = Parts(arguments.work / "quality", settings)

    def tfidf() -> dict[str, Any]:
        return {"macro_f1": [draw.macro_f1 for draw in tfidf_few_shot(*columns, shots=arguments.shots).draws]}

    def measure(name: str) -> dict[str, Any]:
        dtype = dtype_of(arguments.bf16)
        model = READERS[name](arguments.tokens).to(dtype)
        evaluator = ClassificationProbeEvaluator(
            *columns, shots=arguments.shots, max_seq_length=None, batch_size=4, write_csv=False
        )
        began = time.perf_counter()
        metrics = evaluator(model)
        return {
            "seconds": time.perf_counter() - began,
            "metrics": metrics,
            "macro_f1": [draw.macro_f1 for draw in evaluator.last_draws],
            "environment": environment(dtype),
        }

    parts.finish("TF-IDF", tfidf)
    for name in arguments.only:
        parts.finish(name, partial(measure, name))
    return parts


def repeated(documents: list[Document]) -> list[Document]:
    """Leave out documents whose class has no other."""
    counts = Counter(document.label for document in documents)
    return [document for document in documents if counts[document.label] > 1]


def report(cost: dict[str, Any] | None, quality: Parts | None) -> None:
    text = ["# Long documents with all-MiniLM-L6-v2, untrained", ""]
    command, record = "python -m benchmarks.chunk_mean", {} if cost is None else {"cost": cost}
    if cost is not None:
        text += [
            f"Seconds a document of {cost['tokens']} tokens, one at a time, {cost['environment']['threads']} thread(s) "
            f"on {cost['environment']['device']}; medians of {cost['repeats']} rounds in which all took turns. The "
            f"ratio is the median of the rounds' ratios to {REFERENCE}.",
            "",
            cost_table(cost["seconds_per_document"]),
            "",
        ]
        command += f" --repeats {cost['repeats']} --tokens {cost['tokens']}"
    if quality is not None:
        settings, finished = quality.settings, quality.every()
        record |= {name: {**settings, **part} for name, part in finished.items()}
        scores = {name: np.array(finished[name]["macro_f1"]) for name in ("TF-IDF", *READERS) if name in finished}
        text += [
            f"MLP probe on {settings['shots']} documents a class, 10 draws; {settings['documents']} documents "
            f"({settings['data']}, {settings['classes']} classes, median {settings['words']:.0f} words), half of them "
            f"for testing; read up to {settings['tokens']} tokens. After ± is the standard deviation over draws; the "
            "differences are paired draw by draw, with bootstrap intervals.",
            "",
            quality_table(scores),
            "",
        ]
        command += f" --data {settings['data']} --limit {settings['limit']} --shots {settings['shots']}"
    write_results("chunk_mean", [*text, f"    {command}", ""], record)


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
        row = [name, mean_deviation(values)]
        for reference in ("first 256 tokens", "Longformer, window 512"):
            if reference in scores:
                row.append(difference(100 * (values - scores[reference])))
            else:
                row.append("")
        rows.append(row)
    return markdown_table(["reads", "macro-F1", "against the first 256 tokens [95%]", "against Longformer [95%]"], rows)


if __name__ == "__main__":
    main()
