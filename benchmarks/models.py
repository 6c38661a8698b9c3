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
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.bank.outcomes import DRAWS, FEW, FULL, HALVES, SHOTS, outcomes
from benchmarks.bank.sets import FILES, load_set
from benchmarks.bm25 import Bm25Scores
from benchmarks.citation import ENGLISH, read_papers
from benchmarks.grid.work import Work
from benchmarks.nli.tasks import load_pairs, score_similarity, similarity
from benchmarks.pages import document, table, write_results
from benchmarks.papers.citation_retrieval import citation_retrieval
from benchmarks.readers import latent_rows, tfidf_rows
from benchmarks.records import difference, dtype_of, environments, make_parser, rounded, with_interval
from benchmarks.timing import ratio, side_by_side
from simlte_st.errors import DataError, MissingExtraError
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import append_vectors, end_with_lsa
from simlte_st.models.names import OWN_ENCODERS, PACKAGED_BASE
from simlte_st.modules.chunk_mean import to_chunk_mean
from simlte_st.words.sentences import tokenizer_counter

TFIDF, LSA, BM25 = "TF-IDF", "LSA", "BM25"
WORDS = (TFIDF, LSA, BM25)
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

Columns = Mapping[str, Mapping[str, np.ndarray]]
"""Values from 0 to 1 by column and row. All rows of a column have the same order, so they can be paired."""

TOKENS = 4096
"""Maximum number of tokens of the chunk-mean."""

BATCH = 16
TIMED, REPEATS = 4, 3
"""Documents to time of each set with classes, and turns."""

Result = dict[str, Any]


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
    parser = make_parser(__doc__, "--shared", "--output", "--bf16")
    rows = [*WORDS, *MODELS]
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--models", nargs="+", choices=rows, default=rows, metavar="NAME", help=", ".join(rows))
    parser.add_argument("--timing", action="store_true", help="also measure speed, on a quiet machine")
    parser.add_argument("--limit", type=int, default=600, metavar="N", help="held-out documents per set with classes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("models.work"), help="folder of finished parts")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("limit", "threads", "bf16")}
    work, timed = Work(options.work, dtype_of(options.bf16)), []
    count = tokenizer_counter(load_model(PACKAGED_BASE).model.tokenizer)
    for name in options.sets:
        try:
            task = load_task(name, options.shared, options.limit)
        except (DataError, MissingExtraError, OSError) as error:
            print(f"Skipped {name}: {error}", flush=True)
            continue
        if name in CLASSED:
            timed += task.texts[:TIMED]
            tokens = count(task.texts)
            described = partial(dict, documents=len(tokens), median_tokens=median(tokens))
            work.finish(f"lengths/{name}", settings, described)
        for model in options.models:
            if name not in CLASSED or model != BM25:
                job = partial(measured, task, model, options.shared, work.dtype)
                work.finish_aloud(f"cells/{name}/{model}", settings, job)
    if options.timing:
        work.finish_aloud("timing/seconds", settings, lambda: seconds(options.models, timed, work.dtype))
    write_results("models", rounded(record(work, settings)), options.output)


def measured(task: Task, name: str, shared: Path, dtype: torch.dtype) -> dict[str, Result]:
    """Judge a bag of words, or a model without and with an analysis of the documents: a result by row."""
    if name in WORDS:
        return {name: task.words(name)}
    model = load(name, dtype)
    encoded = model.encode(task.texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
    vectors = np.asarray(encoded, dtype=np.float16).astype(np.float32)
    made = {"reads": model.max_seq_length}
    rows = {name: {**task.judge(vectors), "encoding": made}}
    if task.documents:
        end_with_lsa([model], task.texts)
        longer = task.judge(append_vectors(model, task.texts, vectors))
        short = similarity(model, load_pairs(shared, "STSb", None))
        rows[f"{name}{WITH_LSA}"] = {**longer, "encoding": {**made, "stsb": short}}
    return rows


def seconds(models: Sequence[str], texts: list[str], dtype: torch.dtype) -> Result:
    """Time the models on the same documents, in turns."""
    jobs = {
        name: partial(load(name, dtype).encode, texts, batch_size=BATCH, show_progress_bar=False)
        for name in models
        if name not in WORDS
    }
    return {"documents": len(texts), "seconds": side_by_side(jobs, REPEATS)}


def record(work: Work, settings: Result) -> Result:
    """Return all finished results."""
    results: dict[str, Result] = {}
    cells = list(work.cells("cells/*/*"))
    for path, cell in cells:
        results.setdefault(path.parts[1], {}).update(cell["result"])
    return {
        "settings": settings,
        "sets": {path.stem: cell["result"] for path, cell in work.cells("lengths/*")},
        "results": results,
        "timing": (work.find("timing/seconds", settings) or {}).get("result"),
        "environments": environments(cell for _, cell in cells),
    }


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
    english: dict[str, Any] = {}
    if name == AAN:
        english = ENGLISH
        texts, links = read_papers(shared / "aan_papers.parquet", shared / "aan_citations.parquet")

        def score(scores: PairScores) -> Result:
            return citation_retrieval(scores, links).metrics()

    else:
        pairs = load_pairs(shared, "STSb", None)
        texts = [*pairs.first, *pairs.second]

        def score(scores: PairScores) -> Result:
            return dict(score_similarity(scores, pairs))

    kinds: dict[str, Callable[[], PairScores]] = {
        TFIDF: lambda: TfidfScores(texts, **english),
        LSA: lambda: CosineScores(latent_rows(texts, **english)),
        BM25: lambda: Bm25Scores(texts),
    }
    return Task(texts, lambda rows: score(CosineScores(rows)), lambda row: score(kinds[row]()), documents=name == AAN)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    results, settings = record["results"], record["settings"]
    lengths = {name: each["median_tokens"] for name, each in record["sets"].items()}
    sizes = ", ".join(f"{name} {each['documents']:,} ({lengths[name]:,.0f})" for name, each in record["sets"].items())
    few, full = (with_averages(results, outcome, lengths) for outcome in (FEW, FULL))
    return document(
        "# Document embeddings compared",
        "Models read documents up to their maximum length. Macro-F1 and retrieval are in percent, "
f"correlations times 100. Held-out documents of each set, with median tokens: {sizes}. *Long "
f"sets* have a median of more than {LONG} tokens.",
        "*LSA* is a latent semantic analysis (singular vectors of TF-IDF), fitted on the documents "
"themselves without labels. On its own it uses words. With a model it uses tokens and forms the second "
"part of the embedding, with weight .5 from 512 tokens on; its STS-B is the mean over the fitted sets. "
f"*Time* is relative to {CHUNKED}, with all models encoding the same documents in turns.",
        summary(record, few, full),
        f"## Macro-F1, {SHOTS} documents per class",
        f"Logistic regression with C by cross-validation on the training documents, over {HALVES} random "
f"splits of the held-out documents with {DRAWS} draws each. Differences are paired, with 95% bootstrap "
"intervals. Intervals for one set resample draws, which share documents, so they are somewhat too "
"narrow. Intervals for several sets resample the sets and show what to expect on another set.",
        *paired_tables(few),
        "## Macro-F1, all labels",
        f"The same with all documents of one half as training data, over {HALVES} random splits.",
        *paired_tables(full),
        "## Citations",
        "AAN: each citing paper queries the cited papers, excluding itself; 95% bootstrap intervals over "
"papers. No model was measured with an LSA.",
        table(
            {
                "": row,
                **{
                    title: with_interval(results[AAN][row], key)
                    for title, key in (("R@10", "recall@10"), ("R@100", "recall@100"), ("MRR", "mrr"))
                    if row in results.get(AAN, {})
                },
            }
            for row in ROWS
        ),
        machines=record["environments"],
        command="python -m benchmarks.models --shared SHARED_DATA "
        f"--limit {settings['limit']} --threads {settings['threads']}{' --bf16' * settings['bf16']}",
    )  # fmt: skip


def with_averages(results: Mapping[str, Any], outcome: str, lengths: Mapping[str, float]) -> Columns:
    """Return an outcome of the sets with classes, plus columns of set means for all sets and for long sets."""
    made = {
        name: {row: np.array(found[outcome]) for row, found in results[name].items() if outcome in found}
        for name in CLASSED
        if name in results
    }
    for title, names in ((ALL_SETS, list(made)), (LONG_SETS, [name for name in made if lengths[name] > LONG])):
        rows = [row for row in ROWS if names and all(row in made[name] for name in names)]
        made[title] = {row: np.array([made[name][row].mean() for name in names]) for row in rows}
    return made


def paired_tables(columns: Columns) -> list[str]:
    """Tabulate means, and differences from the base, truncated and in chunks."""
    means = table({"": row, **{name: percent(values, row) for name, values in columns.items()}} for row in ROWS)
    return [means, *(differences(columns, reference) for reference in (AT_256, CHUNKED))]


def differences(columns: Columns, reference: str) -> str:
    """Tabulate differences from a row, with their intervals."""

    def cell(values: Mapping[str, np.ndarray], row: str) -> str:
        pair = [values[each] for each in (row, reference) if each in values]
        return difference(100 * (pair[0] - pair[1])) if len(pair) == 2 and len(pair[0]) > 1 else ""

    return table(
        {f"against {reference}": row, **{name: cell(values, row) for name, values in columns.items()}}
        for row in ROWS
        if row != reference
    )


def percent(values: Mapping[str, np.ndarray], row: str) -> str:
    """Format the mean of a row in percent, or an empty cell."""
    return f"{100 * values[row].mean():.1f}" if row in values else ""


def summary(record: Mapping[str, Any], few: Columns, full: Columns) -> str:
    """Tabulate the quality and time of each model."""
    results, seconds = record["results"], (record["timing"] or {}).get("seconds", {})

    def of(name: str, row: str, key: str) -> Sequence[float]:
        return [results[name][row][key]] if row in results.get(name, {}) else []

    rows = []
    for row in ROWS:
        encodings = [found[row]["encoding"] for found in results.values() if "encoding" in found.get(row, {})]
        short = of(STSB, row, "spearman") or [each["stsb"]["spearman"] for each in encodings if "stsb" in each]
        read = ", ".join(f"{tokens:,}" for tokens in sorted({each["reads"] for each in encodings}))
        values = {"AAN R@10": of(AAN, row, "recall@10"), "STS-B": short}
        cells = {
            f"{SHOTS} a class": percent(few[ALL_SETS], row),
            f"{SHOTS} a class, long sets": percent(few[LONG_SETS], row),
            "all labels": percent(full[ALL_SETS], row),
            "all labels, long sets": percent(full[LONG_SETS], row),
            **{title: f"{100 * mean(found):.1f}" if found else "" for title, found in values.items()},
            "time": f"{ratio(seconds[row], seconds[CHUNKED]):.2f}" if {row, CHUNKED} <= seconds.keys() else "",
        }
        if any(cells.values()):
            rows.append({"": row, "reads": "all" if row in WORDS else read, **cells})
    return table(rows)


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # hide notes on small classes
    main()
