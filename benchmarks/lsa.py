"""What a latent semantic analysis (LSA) is worth, and on which documents it should be fitted.

    python -m benchmarks.lsa --shared SHARED_DATA

For eight sets with classes: a classifier with five labelled documents a class, and one with half of the documents, C of
both by cross-validation on what they learn from. On the vectors of all-MiniLM-L6-v2, reading in chunks; with an LSA
appended, fitted on the documents that are judged (as a user has it) or on others; and on the LSA by itself. Unshrunk:
256 singular vectors scaled by the square root of their size alone, as this package did before.

Intervals are over sets (bootstrap): what a next set will show, and not how well these few are known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.bank.outcomes import FEW, FULL, probes
from benchmarks.bank.sets import BankSet, load_sets
from benchmarks.grid.work import Work
from benchmarks.pages import document, explanation, write_results
from benchmarks.records import dtype_of, environment, make_parser
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.evaluation import bootstrap_interval
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.lsa import lengthened
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.modules import LatentSemanticAnalysis, latent_semantic_analysis

SETS = ("sotu", "fakenews", "bbc", "ag_news", "arxiv", "20news", "brown", "movie_reviews")
HALVES = 6
ENCODER = "the encoder"
FITTED = {
    "of the same documents": ("held", False),
    "of other documents": ("train", False),
    "of the same, unshrunk": ("held", True),
    "of others, unshrunk": ("train", True),
}
"""Which documents an LSA is fitted on, and whether it is the one of before."""


def main() -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--bf16")
    parser.add_argument("--documents", type=int, default=200, metavar="N", help="judged, and others, of each set")
    parser.add_argument("--tokens", type=int, default=2048, metavar="N", help="read of a document")
    parser.add_argument("--work", type=Path, default=Path("lsa.work"), help="folder of what is finished")
    options = parser.parse_args()
    settings = {name: getattr(options, name) for name in ("documents", "tokens", "bf16")}
    work, model = Work(options.work, dtype_of(options.bf16)), None
    results: dict[str, Any] = {}
    for data in load_sets(options.shared, list(SETS), options.documents, options.documents):
        model = model or to_chunk_mean(load_model(PACKAGED_BASE, dtype=work.dtype).model, options.tokens)
        cell = work.finish(f"sets/{data.name}", settings, lambda data=data, model=model: judge(data, model))
        results[data.name] = cell["result"]
        found = environment(work.dtype)
        record = {"settings": settings, **found, "sets": results}
        write_results("lsa", record, options.output, aloud=False)


def judge(data: BankSet, model: Any) -> dict[str, Any]:
    """Return macro-F1 of both classifiers for each row of the table, and how many documents were judged."""
    texts = [document.text for document in data.held]
    own = model.encode(texts, batch_size=16, show_progress_bar=False, convert_to_numpy=True).astype(np.float32)
    rows = {ENCODER: own}
    for name, (part, unshrunk) in FITTED.items():
        scaling = (lambda sizes, count: 1 / np.sqrt(sizes)) if unshrunk else latent_semantic_analysis.scaling
        with patch.object(latent_semantic_analysis, "scaling", scaling):
            analysis = LatentSemanticAnalysis.fit(model, getattr(data, part))
        both = lengthened(model, analysis, texts, own)
        rows[f"with LSA {name}"] = both
        rows[f"LSA by itself, {name}"] = both[:, own.shape[1] :]
    return {"documents": len(texts), "fitted": len(data.train), "scores": {n: scores(data, x) for n, x in rows.items()}}


def scores(data: BankSet, vectors: np.ndarray) -> list[float]:
    """Return macro-F1 with few and with all labels, means over divisions of the documents and draws."""
    found = [probes(data, vectors, outcome, inverse_l2=None, halves=HALVES) for outcome in (FEW, FULL)]
    return [float(np.mean([result.macro_f1 for _, result in each])) for each in found]


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    settings, results = record["settings"], record["sets"]
    names = list(next(iter(results.values()))["scores"])
    header = ["macro-F1, 5 labels a class / all", *(f"{name} ({each['documents']})" for name, each in results.items())]
    table = [
        [name, *(" / ".join(f"{100 * value:.1f}" for value in each["scores"][name]) for each in results.values())]
        for name in names
    ]
    changes = []
    for name in names[1:]:
        cells = []
        for outcome in range(2):
            by_set = [each["scores"][name][outcome] - each["scores"][ENCODER][outcome] for each in results.values()]
            low, high = bootstrap_interval(by_set) if len(by_set) > 1 else (np.nan, np.nan)
            cells.append(f"{100 * np.mean(by_set):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]")
        changes.append([name, *cells])
    return document(
        "# Latent semantic analysis",
        explanation(__doc__),
        f"{settings['documents']} documents judged at most, and as many others; of each {settings['tokens']:,} "
        "tokens read.",
        markdown_table(header, table),
        "Differences to the encoder, means over sets with 95% intervals over sets:",
        markdown_table(["against the encoder", "5 a class", "all labels"], changes),
        machines=[{name: value for name, value in record.items() if name not in ("settings", "sets")}],
    )


if __name__ == "__main__":
    main()
