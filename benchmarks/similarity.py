"""Document similarity against people: the Lee corpus, 50 short news texts, all 1,225 pairs of them judged.

    simlte train lee_background.parquet --max-view-length 64 --bf16 --output "trained on the Lee background"
    python -m benchmarks.similarity --data folder --bf16 --model "trained on the Lee background"

The folder holds ``lee_documents.parquet`` and ``lee_similarities_50x50.json``; with ``lee_background.parquet``, 300
further texts, TF-IDF also takes its document frequencies from there. ``--model`` adds models to the base. Each finished
reader is kept in the work folder; what is finished goes to ``results/similarity.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from benchmarks.parts import Parts, readers
from benchmarks.records import add_bf16, dtype_of, environment, write_results
from simlte_st.errors import DataError
from simlte_st.evaluation import Bm25Scores, CosineScores, PairScores, TfidfScores, document_similarity, load_lee
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.names import PACKAGED_BASE


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the Lee corpus")
    parser.add_argument("--base", default=PACKAGED_BASE, help="base model (default: %(default)s)")
    parser.add_argument("--model", nargs="+", default=[], metavar="NAME", help="other models")
    parser.add_argument("--max-seq-length", type=int, default=4096, metavar="N", help="tokens to read of a text")
    parser.add_argument("--work", type=Path, default=Path("similarity.work"), help="folder of finished parts")
    add_bf16(parser)
    options = parser.parse_args(arguments)
    try:
        lee = load_lee(options.data)
    except DataError as error:
        print(f"Skipped: {error}")
        return
    words = [len(text.split()) for text in lee.texts]
    settings = {
        "documents": len(words),
        "pairs": len(lee.pairs),
        "max_seq_length": options.max_seq_length,
        "bf16": options.bf16,
    }
    parts = Parts(options.work, settings)
    kinds: dict[str, Callable[[], PairScores]] = {"TF-IDF": lambda: TfidfScores(lee.texts)}
    background = options.data / "lee_background.parquet"
    if background.exists():
        corpus = lee.texts + pq.read_table(background, columns=["text"]).column("text").to_pylist()
        kinds["TF-IDF, frequencies of the background too"] = lambda: TfidfScores(lee.texts, corpus)
    kinds["BM25"] = lambda: Bm25Scores(lee.texts)
    for name, load in readers(options.base, options.model, options.max_seq_length, dtype_of(options.bf16)).items():
        kinds[name] = lambda name=name, load=load: CosineScores(parts.embed(name, load(), lee.texts))  # type: ignore[misc]

    def measure(kind: Callable[[], PairScores]) -> dict[str, Any]:
        result = document_similarity(kind(), lee.pairs, lee.scores)
        return {"metrics": result.metrics(), "environment": environment(dtype_of(options.bf16))}

    for name, kind in kinds.items():
        parts.finish(name, lambda kind=kind: measure(kind))  # type: ignore[misc]
    records = {name: parts.finished(name) for name in kinds}
    rows = [
        [name, *(_cell(record["metrics"], key) for key in ("pearson", "spearman"))]
        for name, record in records.items()
        if record
    ]
    text = [
        "# Document similarity against people: the Lee corpus",
        "",
        f"{len(words)} texts (median {median(words):.0f} words, at most {max(words)}), {len(lee.pairs)} pairs. "
        "Correlations with 95 % bootstrap intervals over documents.",
        "",
        markdown_table(["reads", "Pearson", "Spearman"], rows),
        "",
        "    python -m benchmarks.similarity --data folder"
        + (" --bf16" if options.bf16 else "")
        + (" --model " + " ".join(f'"{Path(name).name}"' for name in options.model) if options.model else ""),
        "",
    ]
    write_results("similarity", text, {"settings": settings, "readers": records})


def _cell(metrics: dict[str, float], key: str) -> str:
    return f"{metrics[key]:.3f} [{metrics[f'{key}_low']:.3f}, {metrics[f'{key}_high']:.3f}]"


if __name__ == "__main__":
    main()
