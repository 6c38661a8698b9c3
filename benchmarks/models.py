"""Document embeddings side by side: words, a short reader, and three ways to read whole documents.

    python -m benchmarks.models --shared SHARED_DATA

Rows: TF-IDF, LSA and BM25; all-MiniLM-L6-v2, which reads 256 tokens, and its mean over chunks of up to 4,096; the
shipped models; and each model with an LSA of the set's documents, fitted without labels. ``benchmarks.verdict``
measures training on the documents.

Sets: the labelled sets of ``benchmarks/bank/sets.py``, held-out documents only; all AAN papers and their citations;
and the test part of STS-B, to check short texts. Finished parts stay in the work folder. ``--timing`` measures speed
and needs a quiet machine; the models take turns on the same documents.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch
from sentence_transformers import SentenceTransformer

from benchmarks import embeddings
from benchmarks.bank.outcomes import FEW, FULL, outcomes
from benchmarks.bank.sets import FILES, load_set
from benchmarks.bm25 import Bm25Scores
from benchmarks.citation import ENGLISH, read_papers
from benchmarks.embeddings import LSA, TFIDF, Result, compare, finished_record
from benchmarks.grid.work import Work
from benchmarks.nli.tasks import load_pairs, score_similarity, similarity
from benchmarks.pages import fill, retrieval_cells, write_results
from benchmarks.papers.citation_retrieval import citation_retrieval
from benchmarks.readers import latent_rows, tfidf_rows
from benchmarks.records import compute_dtype, difference, make_parser, percent, round_floats
from benchmarks.timing import ratio, side_by_side
from simlte_st.errors import DataError, MissingExtraError
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import append_vectors, end_with_lsa
from simlte_st.models.names import OWN_ENCODERS, PACKAGED_BASE
from simlte_st.modules.chunk_mean import to_chunk_mean
from simlte_st.words.sentences import tokenizer_counter

BM25 = "BM25"
WORDS = (*embeddings.WORDS, BM25)
AT_256, CHUNKED = "MiniLM at 256", "MiniLM chunk-mean"
MODELS = (AT_256, CHUNKED, *OWN_ENCODERS)
WITH_LSA = " + LSA"
ROWS = (*WORDS, *(f"{model}{suffix}" for model in MODELS for suffix in ("", WITH_LSA)))
"""Rows of the tables, in order."""

CLASSED = ("20news", "arxiv", "bbc", "brown", "sotu", "fakenews")
AAN, STSB = "aan", "stsb"
SETS = (*CLASSED, AAN, STSB)

LONG = 512
"""Median tokens above which a set counts as long."""

ALL_SETS, LONG_SETS = "all sets", "long sets"

TOKENS = 4096
"""Maximum number of tokens of the chunk-mean."""

BATCH = 16
TIMED, REPEATS = 4, 3
"""Documents to time of each set with classes, and turns."""


@dataclass(frozen=True)
class Task:
    """Texts and how to evaluate vectors of them.

    Attributes:
        texts: The texts to encode.
        judge: Evaluates vectors.
        words: Evaluates a bag of words by its name.
        documents: Whether an LSA can be fitted on the texts.
    """

    texts: list[str]
    judge: Callable[[np.ndarray], Result]
    words: Callable[[str], Result]
    documents: bool = True


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--bf16", "--threads", "--work", work="models.work")
    rows = [*WORDS, *MODELS]
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--models", nargs="+", choices=rows, default=rows, metavar="NAME", help=", ".join(rows))
    parser.add_argument("--timing", action="store_true", help="also measure speed, on a quiet machine")
    parser.add_argument("--limit", type=int, default=600, metavar="N", help="held-out documents per set with classes")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("limit", "threads", "bf16")}
    work, timed = Work(options.work, compute_dtype(options.bf16)), []
    count = tokenizer_counter(load_model(PACKAGED_BASE).model.tokenizer)
    for name in options.sets:
        try:
            task = load_task(name, options.shared, options.limit)
        except (DataError, MissingExtraError, OSError) as error:
            print(f"Skipped {name}: {error}", flush=True)
            continue
        seeds = dict.fromkeys(options.models, 1)
        if name in CLASSED:
            seeds.pop(BM25, None)
            timed += task.texts[:TIMED]
            sizes = partial(dict, documents=len(task.texts), median_tokens=median(count(task.texts)))
            work.finish(f"lengths/{name}", settings, sizes)
        compare(work, settings, name, seeds, partial(judge, task, shared=options.shared, dtype=work.dtype))
    if options.timing:
        work.finish_aloud("timing/seconds", settings, lambda: time_models(options.models, timed, work.dtype))
    timing = (work.find("timing/seconds", settings) or {}).get("result")
    write_results("models", round_floats({**finished_record(work, settings), "timing": timing}), options.output)


def judge(task: Task, name: str, seed: int, shared: Path, dtype: torch.dtype) -> Mapping[str, Result]:
    """Judge a bag of words, or a model without and with an LSA of the documents."""
    if name in WORDS:
        return {name: task.words(name)}
    model = load(name, dtype)
    encoded = model.encode(task.texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
    vectors = np.asarray(encoded, dtype=np.float16).astype(np.float32)
    reads = {"reads": model.max_seq_length}
    rows = {name: {**task.judge(vectors), **reads}}
    if task.documents:
        end_with_lsa([model], task.texts)
        longer = task.judge(append_vectors(model, task.texts, vectors))
        short = {f"stsb_{key}": value for key, value in similarity(model, load_pairs(shared, "STSb", None)).items()}
        rows[f"{name}{WITH_LSA}"] = {**longer, **reads, **short}
    return rows


def time_models(models: Sequence[str], texts: list[str], dtype: torch.dtype) -> Result:
    """Time the models on the same documents, in turns."""
    encoders = {name: load(name, dtype).encode for name in models if name not in WORDS}
    jobs = {name: partial(run, texts, batch_size=BATCH, show_progress_bar=False) for name, run in encoders.items()}
    return {"documents": len(texts), "seconds": side_by_side(jobs, REPEATS)}


def load(name: str, dtype: torch.dtype) -> SentenceTransformer:
    """Load the model of a row."""
    model = load_model(PACKAGED_BASE if name in (AT_256, CHUNKED) else name, dtype=dtype).model
    return to_chunk_mean(model, TOKENS) if name == CHUNKED else model


def load_task(name: str, shared: Path, limit: int) -> Task:
    """Load a set."""
    if name in CLASSED:
        data = load_set(name, shared / FILES[name] if FILES[name] else None, limit, limit)
        texts, judge = [document.text for document in data.held], partial(outcomes, data, inverse_l2=None)
        return Task(texts, judge, lambda row: judge(latent_rows(texts) if row == LSA else tfidf_rows(texts)))
    settings: dict[str, Any] = ENGLISH if name == AAN else {}
    if name == AAN:
        texts, links = read_papers(shared / "aan_papers.parquet", shared / "aan_citations.parquet")
    else:
        pairs = load_pairs(shared, "STSb", None)
        texts = [*pairs.first, *pairs.second]

    def score(scores: PairScores) -> Result:
        return citation_retrieval(scores, links).metrics() if name == AAN else dict(score_similarity(scores, pairs))

    kinds: dict[str, Callable[[], PairScores]] = {
        TFIDF: lambda: TfidfScores(texts, **settings),
        LSA: lambda: CosineScores(latent_rows(texts, **settings)),
        BM25: lambda: Bm25Scores(texts),
    }
    return Task(texts, lambda rows: score(CosineScores(rows)), lambda row: score(kinds[row]()), documents=name == AAN)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    return fill(
        "models.md",
        record=record,
        long=LONG,
        summary=summary(record),
        few=paired_cells(draws_by_set(record, FEW)),
        full=paired_cells(draws_by_set(record, FULL)),
        citations=retrieval_cells({cell["row"]: cell for cell in record["results"] if cell["set"] == AAN}).reindex(
            ROWS
        ),
    )


def draws_by_set(record: Mapping[str, Any], outcome: str) -> dict[str, pd.DataFrame]:
    """Return an outcome from 0 to 1 by set: paired draws, with a column for each row of the tables.

    In place of draws, the averages over all and over long sets have the mean of each set.
    """
    draws = {
        name: pd.DataFrame({cell["row"]: cell[outcome] for cell in record["results"] if cell["set"] == name})
        for name in record["sets"]
    }
    means = pd.DataFrame({name: columns.mean() for name, columns in draws.items()}).T
    long = [name for name, size in record["sets"].items() if size["median_tokens"] > LONG]
    return {**draws, ALL_SETS: means.dropna(axis=1), LONG_SETS: means.loc[long].dropna(axis=1)}


def paired_cells(draws: Mapping[str, pd.DataFrame]) -> list[pd.DataFrame]:
    """Return the cells of means, and of differences from the base, truncated and in chunks."""
    tables = [row_means(draws).map(percent)]
    for reference in (AT_256, CHUNKED):
        cells = {
            name: columns.drop(columns=reference).sub(columns[reference], axis=0).mul(100).agg(difference)
            for name, columns in draws.items()
            if reference in columns and len(columns) > 1
        }
        tables.append(pd.DataFrame(cells).reindex(ROWS).rename_axis(f"against {reference}"))
    return tables


def row_means(draws: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the mean of each row by set."""
    return pd.DataFrame({name: columns.mean() for name, columns in draws.items()}).reindex(ROWS)


def summary(record: Mapping[str, Any]) -> pd.DataFrame:
    """Return the cells of the quality and time of each model."""
    columns = ["set", "row", "recall@10", "spearman", "stsb_spearman", "reads"]
    results = pd.DataFrame(record["results"]).reindex(columns=columns)
    seconds = (record["timing"] or {}).get("seconds", {})
    by_set = results.set_index(["set", "row"]).reindex(pd.MultiIndex.from_product([SETS, ROWS]))
    scores = {outcome: row_means(draws_by_set(record, outcome)) for outcome in (FEW, FULL)}
    short = by_set.loc[STSB]["spearman"].fillna(results.groupby("row")["stsb_spearman"].mean())
    reads = results.dropna(subset=["reads"]).groupby("row")["reads"].unique()
    reads = reads.map(lambda limits: ", ".join(f"{limit:,.0f}" for limit in sorted(limits)))
    cells = {
        "5 a class": scores[FEW][ALL_SETS], "5 a class, long sets": scores[FEW][LONG_SETS],
        "all labels": scores[FULL][ALL_SETS], "all labels, long sets": scores[FULL][LONG_SETS],
        "AAN R@10": by_set.loc[AAN]["recall@10"], "STS-B": short,
    }  # fmt: skip
    times = {row: f"{ratio(seconds[row], seconds[CHUNKED]):.2f}" for row in ROWS if {row, CHUNKED} <= seconds.keys()}
    summary = pd.DataFrame(cells).map(percent).reindex(ROWS)
    summary.insert(0, "reads", pd.Series({**dict.fromkeys(WORDS, "all"), **reads}))
    summary["time"] = pd.Series(times, dtype=object)
    return summary[(summary.iloc[:, 1:].fillna("") != "").any(axis=1)]


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # hide notes on small classes
    main()
