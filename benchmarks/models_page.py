"""The page of ``benchmarks.models``: quality beside seconds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import pages
from benchmarks.bank.outcomes import DRAWS, FEW, FULL, HALVES, SHOTS
from benchmarks.bank.page import rounded
from benchmarks.grid.work import Work
from benchmarks.records import difference, environment_lines, environments, with_interval
from benchmarks.timing import ratio, spread
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import atomic_path, write_json
from simlte_st.models.names import OWN_ENCODERS

TFIDF, LSA, BM25 = "TF-IDF", "LSA", "BM25"
WORDS = (TFIDF, LSA, BM25)
AT_256, CHUNKED, LONGFORMER = "MiniLM at 256", "MiniLM chunk-mean", "MiniLM as Longformer"
REFERENCES = (AT_256, CHUNKED)
"""Rows that the others are compared with."""

WITH_LSA = " + LSA"
BERT_CHUNKED = "simlte-bert chunk-mean"
MODELS = (AT_256, CHUNKED, LONGFORMER, *OWN_ENCODERS, BERT_CHUNKED)
ROWS = (*WORDS, *(f"{model}{suffix}" for model in MODELS for suffix in ("", WITH_LSA)))
"""Rows of the table, in order."""

CLASSED = ("20news", "arxiv", "bbc", "brown", "sotu", "fakenews")
AAN, LEE, STSB = "aan", "lee", "stsb"
SETS = (*CLASSED, AAN, LEE, STSB)

LONG = 512
"""Tokens of the median document above which a set is one of long documents."""

BUCKETS = {"at most 256": (0, 256), "257 to 512": (256, 512), "513 to 1,024": (512, 1024), "longer": (1024, None)}
"""Lengths in tokens, special ones not counted: above the first number, up to the second."""

SHOTS_TITLE, FULL_TITLE = f"## Macro-F1, {SHOTS} documents a class", "## Macro-F1, all labels"

LSA_LINES = [
    "*LSA* is a latent semantic analysis (TF-IDF's singular vectors) of the documents themselves, without labels: of "
    "words by itself, or of tokens as the second part of a model's embedding, weight .4 from 512 tokens on; its STS-B "
    "is the mean over the sets it was fitted on. What it is worth when fitted on other documents is in `lsa.md`.",
    "",
]

RETRIEVAL = {"R@10": "recall@10", "R@100": "recall@100", "MRR": "mrr"}
ALL_SETS, LONG_SETS = "all sets", "long sets"

Results = Mapping[str, Mapping[str, dict[str, Any]]]
"""What came out, by set and row."""

Columns = Mapping[str, Mapping[str, np.ndarray]]
"""Values from 0 to 1 by column and row, in one order for all rows of a column: they are compared in pairs."""


def write_page(work: Work, settings: Mapping[str, Any], folder: Path, aloud: bool = True) -> list[str]:
    """Write ``models.md`` and ``models.json`` of all that is finished, and ``models.parquet`` of each document."""
    cells, lengths = {}, {}
    for name in SETS:
        found = {row: cell for row in ROWS if (cell := work.find(f"outcomes/{name}/{row}", settings))}
        if found:
            cells[name] = found
        if name in cells and (cell := work.find(f"lengths/{name}", settings)):
            lengths[name] = np.array(cell["result"]["tokens"])
    if not cells:
        print("Nothing is finished yet.")
        return []
    results = {name: {row: cell["result"] for row, cell in found.items()} for name, found in cells.items()}
    timing = (work.find("timing/seconds", settings) or {}).get("result")
    where = environments(cell for found in cells.values() for cell in found.values())
    record = {
        "settings": settings,
        "sets": {name: {"documents": len(part), "median_tokens": median(part)} for name, part in lengths.items()},
        "results": {name: {row: kept(result) for row, result in found.items()} for name, found in results.items()},
        "accuracy_by_length": {
            column: {row: values.mean() for row, values in by_row.items()}
            for column, by_row in by_length(results, lengths).items()
        },
        "timing": timing,
        "environments": where,
    }
    lines = [*page(results, lengths, timing), f"    {command(settings, results)}", "", *environment_lines(where), ""]
    write_json(folder / "models.json", rounded(plain(record)))
    pages.write_page("models", "\n".join(lines), folder, aloud)
    with atomic_path(folder / "models.parquet") as temporary:
        pq.write_table(each_document(results), temporary, compression="zstd")
    return "\n".join(lines).splitlines()  # a table is one of them


def each_document(results: Results) -> pa.Table:
    """Return what came out for each document, or query, with which other systems can be compared pair by pair."""
    rows = [
        {"set": name, "row": row, "outcome": outcome, "values": values}
        for name, found in results.items()
        for row, result in found.items()
        for outcome, values in {**result.get("per_query", {}), "right": result.get("right")}.items()
        if values is not None
    ]
    text = pa.string()
    kinds = {"set": text, "row": text, "outcome": text, "values": pa.list_(pa.float32())}
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def kept(result: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what there is for each document; see :func:`each_document`."""
    return {name: part for name, part in result.items() if name not in ("right", "per_query")}


def plain(value: Any) -> Any:
    """Make Python's numbers of NumPy's."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def page(results: Results, lengths: Mapping[str, np.ndarray], timing: Mapping[str, Any] | None) -> list[str]:
    """Write the page, but for the command and where it ran."""
    shots, full = (with_averages(f_scores(results, outcome), lengths) for outcome in (FEW, FULL))
    cites = {
        name: {row: np.array(part["per_query"][key]) for row, part in results[AAN].items()}
        for name, key in RETRIEVAL.items()
        if AAN in results
    }
    sizes = ", ".join(f"{name} {len(part):,} ({median(part):,.0f})" for name, part in lengths.items())
    lines = [
        "# Document embeddings compared",
        "",
        "Documents are encoded whole, up to what a model reads. Macro-F1, accuracy and retrieval in percent; "
        "correlations times 100. Held-out documents of each set, and the tokens of their median: "
        f"{sizes or 'none yet'}. *Long sets* are those with more than {LONG}. An average stands where a row has all "
        "sets that are on this page.",
        "",
        *LSA_LINES * any(row == LSA or row.endswith(WITH_LSA) for row in present(results)),
        summary(results, shots, full, cites, timing),
        "",
        SHOTS_TITLE,
        "",
        f"Logistic regression, C by cross-validation on what it learns from; {HALVES} divisions of the held-out "
        f"documents, {DRAWS} draws of each. Differences are paired, with 95% bootstrap intervals: of a set draw by "
        "draw, which share documents, so that these intervals are rather too narrow; of several sets over the sets, "
        "which says what to expect of another one.",
        "",
        *paired_tables(shots),
        FULL_TITLE,
        "",
        f"The same with all documents of a half to learn from: {HALVES} divisions.",
        "",
        *paired_tables(full),
    ]
    if cites:
        some = next(iter(results[AAN].values()))
        lines += [
            "## Citations among full papers",
            "",
            f"AAN: {some['queries']:,.0f} papers search the {some['pool']:,.0f} that are cited, each without itself. "
            "Differences are paired, paper by paper.",
            "",
            *paired_tables(cites),
        ]
    lengthwise = by_length(results, lengths)
    lines += [
        "## Accuracy by length",
        "",
        f"All labels, of the documents of all sets in buckets of tokens ({', '.join(lengths) or 'none yet'}); rows "
        "that have all these sets. Differences are paired, document by document.",
        "",
        *paired_tables(lengthwise),
        *similarity_lines(results),
        *timing_lines(timing),
    ]
    return lines


def f_scores(results: Results, outcome: str) -> dict[str, dict[str, np.ndarray]]:
    """Take an outcome of the sets with classes: the value of each draw."""
    return {
        name: {row: np.array(part[outcome]) for row, part in results[name].items() if outcome in part}
        for name in CLASSED
        if name in results
    }


def with_averages(columns: Columns, lengths: Mapping[str, np.ndarray]) -> Columns:
    """Add all sets and those of long documents: the mean of each of them, so that intervals are over sets."""
    long = [name for name in columns if median(lengths[name]) > LONG]
    made = dict(columns)
    for title, names in ((ALL_SETS, list(columns)), (LONG_SETS, long)):
        if names:
            rows = [row for row in ROWS if all(row in columns[name] for name in names)]
            made[title] = {row: np.array([columns[name][row].mean() for name in names]) for row in rows}
    return made


def by_length(results: Results, lengths: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Pool over sets how often the probe of all labels is right about each document, in buckets of length."""
    names = [name for name in CLASSED if name in lengths]
    rows = [row for row in ROWS if names and all("right" in results[name].get(row, {}) for name in names)]
    made: dict[str, dict[str, np.ndarray]] = {}
    for title, (above, upto) in BUCKETS.items():
        for row in rows:
            shares = np.concatenate([np.array(results[name][row]["right"], dtype=float) for name in names])
            tokens = np.concatenate([lengths[name] for name in names])
            chosen = (tokens > above) & (tokens <= (np.inf if upto is None else upto)) & ~np.isnan(shares)
            if chosen.any():
                made.setdefault(f"{title} ({chosen.sum():,})", {})[row] = shares[chosen]
    return made


def paired_tables(columns: Columns) -> list[str]:
    """Write the means, and the differences to each of the references."""
    rows = [row for row in ROWS if any(row in values for values in columns.values())]
    cells = [[row, *(percent(values.get(row)) for values in columns.values())] for row in rows]
    lines = [markdown_table(["", *columns], cells), ""]
    for reference in REFERENCES:
        cells = [
            [row, *(against(values.get(row), values.get(reference)) for values in columns.values())]
            for row in rows
            if row != reference
        ]
        if any(any(row[1:]) for row in cells):
            lines += [markdown_table([f"against {reference}", *columns], cells), ""]
    return lines


def percent(values: np.ndarray | None) -> str:
    """Write a mean; nothing where there is none."""
    return "" if values is None else f"{100 * values.mean():.1f}"


def against(values: np.ndarray | None, reference: np.ndarray | None) -> str:
    """Write a difference with its interval; nothing where there is none, or too little for an interval."""
    if values is None or reference is None or len(values) < 2:
        return ""
    return difference(100 * (values - reference))


def summary(results: Results, shots: Columns, full: Columns, cites: Columns, timing: Mapping[str, Any] | None) -> str:
    """Write the first table: a row a model, quality beside time; columns that have something."""
    taken = [shots.get(ALL_SETS), shots.get(LONG_SETS), full.get(ALL_SETS), full.get(LONG_SETS), cites.get("R@10")]
    seconds: Mapping[str, list[float]] = (timing or {}).get("seconds", {})
    rows = []
    for row in present(results):
        lee = results.get(LEE, {}).get(row)
        short = short_texts(results, row)
        read = {part["encoding"]["reads"] for found in results.values() for part in reading(found, row)}
        rows.append(
            [
                row,
                "all" if row in WORDS else ", ".join(f"{tokens:,}" for tokens in sorted(read)),
                *(percent(values.get(row) if values else None) for values in taken),
                f"{100 * lee['spearman']:.1f}" if lee else "",
                f"{100 * mean(short):.1f}" if short else "",
                f"{ratio(seconds[row], seconds[CHUNKED]):.2f}" if {row, CHUNKED} <= seconds.keys() else "",
            ]
        )
    header = [
        "", "reads", f"{SHOTS} a class", "long sets", "all labels", "long sets", "AAN R@10", "Lee", "STS-B", "time",
    ]  # fmt: skip
    filled = [number for number, title in enumerate(header) if not title or any(row[number] for row in rows)]
    return markdown_table([header[number] for number in filled], [[row[number] for number in filled] for row in rows])


def present(results: Results) -> list[str]:
    """List the rows of which something is finished."""
    return [row for row in ROWS if any(found.get(row) for found in results.values())]


def reading(found: Mapping[str, dict[str, Any]], row: str) -> list[dict[str, Any]]:
    """Return a model's result of a set, if it is there."""
    return [found[row]] if row not in WORDS and found.get(row) else []


def short_texts(results: Results, row: str) -> list[float]:
    """Return Spearman's correlation on STS-B: of a model, or of each set that its LSA was fitted on."""
    if not row.endswith(WITH_LSA):
        return [part["spearman"] for name, found in results.items() if name == STSB and (part := found.get(row))]
    parts = [part["encoding"] for found in results.values() for part in reading(found, row)]
    return [part["stsb"]["spearman"] for part in parts if "stsb" in part]


def similarity_lines(results: Results) -> list[str]:
    """Write what people's judgements say."""
    rows = []
    for row in present(results):
        lee, short = results.get(LEE, {}).get(row, {}), short_texts(results, row)
        cells = [with_interval(lee, key) if lee else "" for key in ("pearson", "spearman")]
        span = f"{100 * mean(short):.1f}" if short else ""
        span += f" ({100 * min(short):.1f} to {100 * max(short):.1f})" if len(short) > 1 else ""
        if any([*cells, span]):
            rows.append([row, *cells, span])
    if not rows:
        return []
    return [
        "## Similarity against people", "",
        "Lee's 50 news texts, with 95% bootstrap intervals over documents; STS-B's test part, with an "
        "LSA the mean and range over the sets that it was fitted on.", "",
        markdown_table(["", "Lee, Pearson", "Lee, Spearman", "STS-B, Spearman"], rows), "",
    ]  # fmt: skip


def timing_lines(timing: Mapping[str, Any] | None) -> list[str]:
    """Write how long the models took for the same documents."""
    if timing is None:
        return []
    seconds = timing["seconds"]
    rows = []
    for row, turns in seconds.items():
        cells = ["", ""]
        if CHUNKED in seconds:
            low, high = spread(turns, seconds[CHUNKED])
            cells = [f"{ratio(turns, seconds[CHUNKED]):.2f}", f"{low:.2f} to {high:.2f}"]
        rows.append([row, f"{timing['documents'] / median(turns):.1f}", *cells])
    return [
        "## Speed", "",
        f"The same {timing['documents']} documents, as many of each set with classes, encoded by all models in "
        f"turns, {len(turns)} times: documents a second, and the time as a multiple of that of {CHUNKED}, medians; "
        "smallest and largest of a turn.", "",
        markdown_table(["", "documents a second", "time", "in one turn"], rows), "",
    ]  # fmt: skip


def command(settings: Mapping[str, Any], results: Results) -> str:
    """Return the command that makes the page."""
    rows = present(results)
    models = [row for row in (*WORDS, *MODELS) if row in rows]
    told = [f"--{name.replace('_', '-')} {settings[name]}" for name in ("limit", "threads")]
    if len(results) < len(SETS):
        told.append(f"--sets {' '.join(results)}")
    if len(models) < len(WORDS) + len(MODELS):
        told.append(f"--models {' '.join(shlex.quote(model) for model in models)}")
    dtype = " --bf16" if settings["bf16"] else ""
    return f"python -m benchmarks.models --shared SHARED_DATA {' '.join(told)}{dtype}"
