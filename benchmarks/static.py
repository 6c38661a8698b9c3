"""Static embeddings of your own documents compared with an encoder: quality and time by kind of document.

    python -m benchmarks.static --shared SHARED_DATA

Eight labelled sets of ``benchmarks/bank/sets.py``, with up to 600 documents plus 300 evaluated ones. Training and the
LSA see all of them without labels, as a user's would. Tables show the macro-F1 of a logistic regression (C = 10;
TF-IDF: 100) with five labels per class and with the labels of half of the evaluated documents, over 10 random splits
with 3 draws each.

Rows: TF-IDF and LSA; static models, which have one vector per token and read whole documents: distilled, shipped with
version 0.2 and now, and trained by ``simlte train --static`` without an LSA and with an LSA folded into the vectors
(the default); all-MiniLM-L6-v2 on 256 tokens, adapted, and on whole documents in chunks.
Values marked * come from other pages, in bfloat16: ``models.md`` for whole documents (C by cross-validation), otherwise
``verdict.md``, where training saw only the 600 documents. Its evaluated documents and splits are the same, except for
another sample of BBC News, on which MiniLM has 87.3 and 95.2.

Seconds are CPU time on one core in float32, for training and for encoding the evaluated documents, over the sets where
the encoder was timed. STS-B is the Spearman correlation on short texts, for trained models the mean over the sets; the
encoder's values come from ``models.md``. Finished parts stay in the work folder.
"""

from __future__ import annotations

import copy
import logging
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

import pandas as pd
import torch
from sentence_transformers import SentenceTransformer

from benchmarks import embeddings
from benchmarks.bank.outcomes import means
from benchmarks.bank.sets import BankSet, load_sets
from benchmarks.embeddings import LSA, OUTCOMES, TFIDF, WORDS, Result
from benchmarks.grid.work import Work
from benchmarks.nli.tasks import load_pairs, similarity
from benchmarks.pages import explanation, fill, write_results
from benchmarks.records import RESULTS, difference
from simlte_st import to_static, train
from simlte_st.files import read_json
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import end_with_lsa
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.reading.document import LONG, Document

SETS = ("ag_news", "arxiv", "20news", "bbc", "fakenews", "movie_reviews", "brown", "sotu")
DISTILLED, SHIPPED = "static, distilled", "simlte-static"
TRAINED, TRAINED_LSA = "static, DocSplit", "static, DocSplit + LSA"
PREVIOUS, PREVIOUS_LSA = "simlte-static 0.2", "static 0.2, DocSplit + LSA"
AT_256, WHOLE = "MiniLM at 256", "MiniLM whole"
ADAPTED_256 = "MiniLM adapted, at 256"
ROWS = (
    TFIDF, LSA, DISTILLED, PREVIOUS, SHIPPED, TRAINED, PREVIOUS_LSA, TRAINED_LSA, AT_256, ADAPTED_256, WHOLE,
)  # fmt: skip
MODELS_ROWS = {AT_256: "MiniLM at 256", WHOLE: "MiniLM chunk-mean"}
"""Names of rows on the page of models."""

RECIPES = {AT_256: "base", ADAPTED_256: "docsplit, temperature 0.5"}
"""Recipes of rows on the page of the verdict."""


def main(argv: list[str] | None = None) -> None:
    jobs = [row for row in ROWS if row not in (TRAINED_LSA, ADAPTED_256, WHOLE)]
    parser = embeddings.make_comparison_parser(
        __doc__, "--shared", sets=SETS, rows=jobs, documents=600, held_out=300, seeds=3, work="static.work"
    )
    parser.add_argument("--previous", metavar="FOLDER", help="simlte-static 0.2 (default: its rows are left out)")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("documents", "held_out", "threads")}
    rows = [row for row in options.rows if options.previous or row not in (PREVIOUS, PREVIOUS_LSA)]
    work, seeds = Work(options.work), {row: options.seeds if row in (TRAINED, PREVIOUS_LSA) else 1 for row in rows}
    for data in load_sets(options.shared, list(options.sets), options.documents, options.held_out):
        work.finish(f"lengths/{data.name}", settings, partial(embeddings.measure_sizes, data, PACKAGED_BASE))
        embeddings.compare(work, settings, data.name, seeds, partial(judge, data, options=options))
    write_results("static", with_copies(embeddings.finished_record(work, settings)), options.output)


def with_copies(record: dict[str, Any]) -> dict[str, Any]:
    """Add results of the pages ``models`` and ``verdict`` on the same sets, for rows that were not measured."""
    verdict = read_json(RESULTS / "verdict.json")["judged"]
    models = {(cell["set"], cell["row"]): cell for cell in read_json(RESULTS / "models.json")["results"]}
    copies: list[dict[str, Any]] = []
    for name in record["sets"]:
        for row, recipe in RECIPES.items():
            for run in verdict[name]:
                if run["recipe"] == recipe and not run["stage"]:
                    scores = {outcome: run["outcomes"][outcome]["value"] for outcome in OUTCOMES}
                    copies.append({"set": name, "row": row, "seed": run["seed"], **scores})
        if cell := models.get((name, MODELS_ROWS[WHOLE])):
            copies.append({"set": name, "row": WHOLE, "seed": 0, **means(cell)})
    measured = {(cell["set"], cell["row"]) for cell in record["results"]}
    copies = [{**cell, "kept": True} for cell in copies if (cell["set"], cell["row"]) not in measured]
    similarities = {row: models["stsb", title]["spearman"] for row, title in MODELS_ROWS.items()}
    return {**record, "results": record["results"] + copies, "long": LONG, "stsb": similarities}


def judge(data: BankSet, row: str, seed: int, options: Namespace) -> Mapping[str, Result]:
    """Evaluate a row on a set; a training also gives the row with an LSA."""
    if row in WORDS:
        return {row: embeddings.judge_words(data, row)}
    results = {}
    for name, model, seconds in make_models(row, [*data.train, *data.held], seed, options.previous):
        results[name] = {"training": seconds, **embeddings.judge_model(data, model)}
        if is_static(model):
            results[name]["stsb"] = similarity(model, load_pairs(options.shared, "STSb", None))["spearman"]
    return results


def make_models(
    row: str, documents: list[Document], seed: int, previous: str | None
) -> Iterator[tuple[str, SentenceTransformer, float]]:
    """Yield the models of a row with the seconds to make them."""
    if row not in (TRAINED, PREVIOUS_LSA):
        yield row, load_untrained(row, previous), 0.0
        return
    start = time.process_time()
    base = previous if row == PREVIOUS_LSA else None
    with tempfile.TemporaryDirectory() as folder:
        settings = {"static": True, "seed": seed, "bf16": False, "progress": False}
        train(documents, f"{folder}/model", base=base, held_out=0.0, keep="trained", lsa=0, **settings)
        model = load_model(f"{folder}/model", dtype=torch.float32).model
    seconds = time.process_time() - start
    folded = copy.deepcopy(model)
    end_with_lsa([folded], documents, seed=seed)
    if row == TRAINED:
        yield TRAINED, model, seconds
    yield PREVIOUS_LSA if row == PREVIOUS_LSA else TRAINED_LSA, folded, time.process_time() - start


@cache
def load_untrained(row: str, previous: str | None = None) -> SentenceTransformer:
    """Return a model that is not trained on documents."""
    if row == DISTILLED:
        with tempfile.TemporaryDirectory() as folder:
            to_static(PACKAGED_BASE, f"{folder}/model", progress=False)
            return load_model(f"{folder}/model", dtype=torch.float32).model
    names = {SHIPPED: SHIPPED, PREVIOUS: previous}
    return load_model(names.get(row) or PACKAGED_BASE, dtype=torch.float32).model


def page(record: Result) -> str:
    """Return the page of the results."""
    groups, timed = set_groups(record), timed_sets(record)
    averages = {title: groups[title] for title in ("all sets", f"from {record['long']} words")}
    return fill(
        "static.md",
        explanation=explanation(__doc__),
        record=record,
        sizes=embeddings.size_cells(record, groups["all sets"]),
        scores=embeddings.score_cells(record, ROWS, groups["all sets"], averages),
        differences=set_differences(record),
        timed=timed,
        totals=pd.DataFrame(record["sets"])[timed].sum(axis=1),
        costs=costs(record).map(lambda total: f"{total:,.1f}" if total > 0 else ""),
    )


def set_groups(record: Result) -> dict[str, list[str]]:
    """Return all sets by length, and those with long and with shorter documents."""
    words = pd.DataFrame(record["sets"]).T["words"].sort_values(kind="stable")
    long = words >= record["long"]
    return {
        f"from {record['long']} words": [*words.index[long]],
        "shorter sets": [*words.index[~long]],
        "all sets": [*words.index],
    }


def set_differences(record: Result) -> pd.DataFrame:
    """Return the cells of differences between the default and other rows, with few and with many labels."""
    results, scores = pd.DataFrame(record["results"]), []
    for outcome in OUTCOMES:
        means = embeddings.set_means(results, outcome).reindex(ROWS)
        scores.append(100 * (means.loc[TRAINED_LSA] - means))

    def cell(row: str, names: list[str]) -> str:
        pairs = [differences.loc[row, names].dropna() for differences in scores]
        return " / ".join(difference(values) for values in pairs if len(values) > 1)

    rows = (DISTILLED, TRAINED, PREVIOUS_LSA, LSA, AT_256, WHOLE, ADAPTED_256)
    groups = {title.replace("from", "sets from"): names for title, names in set_groups(record).items()}
    return pd.DataFrame(
        {title: [cell(row, names) for row in rows] for title, names in groups.items()},
        index=pd.Index([f"{TRAINED_LSA} against {row}" for row in rows], name="5 labels per class / half"),
    )


def timed_sets(record: Result) -> list[str]:
    """Return the sets on which the encoder was timed, by length."""
    timed = {cell["set"] for cell in record["results"] if cell["row"] == AT_256 and "encoding" in cell}
    return [name for name in set_groups(record)["all sets"] if name in timed]


def costs(record: Result) -> pd.DataFrame:
    """Return the seconds of each row on the timed sets, and its score on short texts."""
    titles = {"training": "s to train", "encoding": "s to encode"}
    results = pd.DataFrame(record["results"]).reindex(columns=["set", "row", *titles, "stsb"])
    by_set, timed = results.groupby(["row", "set"]).mean().unstack().reindex(ROWS), timed_sets(record)
    totals = {title: by_set[key][timed].sum(axis=1, skipna=False) for key, title in titles.items()}
    similarities = results.groupby("row")["stsb"].mean().reindex(ROWS).fillna(pd.Series(record["stsb"]))
    return pd.DataFrame({**totals, "STS-B": 100 * similarities}).rename_axis(None)


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # hide notes on small classes
    main()
