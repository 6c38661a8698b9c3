"""Static embeddings of your own documents compared with an encoder: quality and time by kind of document.

    python -m benchmarks.static --shared SHARED_DATA

Eight labelled sets of ``benchmarks/bank/sets.py``, with up to 600 documents plus 300 evaluated ones. Training and the
LSA see all of them without labels, as a user's would. Tables show the macro-F1 of a logistic regression (C = 10;
TF-IDF: 100) with five labels per class and with the labels of half of the evaluated documents, over 10 random splits
with 3 draws each.

Rows: TF-IDF and LSA; static models, which have one vector per token and read whole documents: distilled, shipped, and
trained by ``simlte train --static`` without an LSA, with an LSA folded into the vectors (the default), and with an
LSA appended as a module (version 0.1); all-MiniLM-L6-v2 on 256 tokens, adapted, and on whole documents in chunks.
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
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.bank.outcomes import FEW, FULL, means, outcomes
from benchmarks.bank.sets import BankSet, load_sets
from benchmarks.grid.work import Work
from benchmarks.nli.tasks import load_pairs, similarity
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.readers import latent_rows, tfidf_rows
from benchmarks.records import RESULTS, TFIDF_INVERSE_L2, difference, environments, make_parser, mean_deviation
from simlte_st import to_static, train
from simlte_st.files import read_json
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import end_with_lsa
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.reading.document import LONG, Document
from simlte_st.words.sentences import tokenizer_counter

SETS = ("ag_news", "arxiv", "20news", "bbc", "fakenews", "movie_reviews", "brown", "sotu")
TFIDF, LSA = "TF-IDF", "LSA"
DISTILLED, SHIPPED = "static, distilled", "simlte-static"
TRAINED, TRAINED_LSA = "static, DocSplit", "static, DocSplit + LSA"
TRAINED_MODULE = "static, DocSplit, LSA module"
AT_256, WHOLE = "MiniLM at 256", "MiniLM whole"
ADAPTED_256 = "MiniLM adapted, at 256"
ROWS = (TFIDF, LSA, DISTILLED, SHIPPED, TRAINED, TRAINED_MODULE, TRAINED_LSA, AT_256, ADAPTED_256, WHOLE)
KEPT = {AT_256: "MiniLM at 256", WHOLE: "MiniLM chunk-mean"}
"""Names of rows on the page of models."""

Result = Mapping[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    jobs = [
        row for row in ROWS if row not in (TRAINED_LSA, TRAINED_MODULE, ADAPTED_256, WHOLE)
    ]  # not made by themselves
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="NAME")
    parser.add_argument("--rows", nargs="+", choices=jobs, default=jobs, metavar="NAME", help=", ".join(jobs))
    parser.add_argument("--documents", type=int, default=600, metavar="N", help="further documents per set")
    parser.add_argument("--held-out", type=int, default=300, metavar="N", help="evaluated documents per set")
    parser.add_argument("--seeds", type=int, default=3, help="training runs of static models (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("static.work"), help="folder of finished parts")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("documents", "held_out", "threads")}
    work = Work(options.work)
    for data in load_sets(options.shared, list(options.sets), options.documents, options.held_out):
        work.finish(f"lengths/{data.name}", settings, partial(lengths, data))
        for row in options.rows:
            for seed in range(options.seeds if row == TRAINED else 1):
                job = partial(judge, data, row, seed, options.shared)
                work.finish_aloud(f"cells/{data.name}/{row}/{seed}", settings, job)
    write_results("static", record(work, settings), options.output)


def record(work: Work, settings: Result) -> Result:
    """Return all finished results, plus those of the pages ``models`` and ``verdict`` on the same sets."""
    cells = list(work.cells("cells/*/*/*"))
    results: dict[str, dict[str, list[Result]]] = {}
    for path, cell in cells:
        for row, found in cell["result"].items():
            results.setdefault(path.parts[1], {}).setdefault(row, []).append(found)
    known = read_json(RESULTS / "models.json")["results"]
    for name, rows in results.items():
        rows[ADAPTED_256] = of_verdict(name, "docsplit, temperature 0.5")
        rows.setdefault(AT_256, of_verdict(name, "base"))
        if name in known:
            rows.setdefault(WHOLE, [{**means(known[name][KEPT[WHOLE]]), "kept": True}])
    return {
        "settings": settings,
        "long": LONG,
        "sets": {path.stem: cell["result"] for path, cell in work.cells("lengths/*")},
        "results": results,
        "encoders": {row: {"stsb": known["stsb"][row]["spearman"]} for row in KEPT.values()},
        "environments": environments(cell for _, cell in cells),
    }


def judge(data: BankSet, row: str, seed: int, shared: Path) -> Result:
    """Evaluate a row on a set; a training also gives the rows with an LSA."""
    texts = [document.text for document in data.held]
    if row == TFIDF:
        return {row: means(outcomes(data, tfidf_rows(texts), TFIDF_INVERSE_L2))}
    if row == LSA:
        vectors = latent_rows([document.text for document in (*data.train, *data.held)])[len(data.train) :]
        return {row: means(outcomes(data, vectors))}
    found: dict[str, Any] = {}
    for name, model, seconds in make(row, [*data.train, *data.held], seed):
        began = time.process_time()
        vectors = np.asarray(model.encode(texts, batch_size=16, show_progress_bar=False), dtype=np.float32)
        found[name] = {
            "encoding": time.process_time() - began,
            "training": seconds,
            **means(outcomes(data, vectors)),
            **({"stsb": similarity(model, load_pairs(shared, "STSb", None))["spearman"]} if is_static(model) else {}),
        }
    return found


def make(row: str, documents: list[Document], seed: int) -> Iterator[tuple[str, SentenceTransformer, float]]:
    """Yield the models of a row with the seconds to make them."""
    if row != TRAINED:
        yield row, fixed(row), 0.0
        return
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"static": True, "seed": seed, "bf16": False, "progress": False}
        train(documents, f"{folder}/model", held_out=0.0, keep="trained", lsa=0, **settings)
        model = load_model(f"{folder}/model", dtype=torch.float32).model
    trained = time.process_time() - began
    folded = copy.deepcopy(model)
    end_with_lsa([folded], documents, seed=seed)
    yield from ((TRAINED, model, trained), (TRAINED_LSA, folded, time.process_time() - began))


@cache
def fixed(row: str) -> SentenceTransformer:
    """Return a model that is not trained on documents."""
    if row == DISTILLED:
        with tempfile.TemporaryDirectory() as folder:
            to_static(PACKAGED_BASE, f"{folder}/model", progress=False)
            return load_model(f"{folder}/model", dtype=torch.float32).model
    return load_model(SHIPPED if row == SHIPPED else PACKAGED_BASE, dtype=torch.float32).model


def of_verdict(name: str, recipe: str) -> list[Result]:
    """Return the results of a recipe on a set from ``verdict.json``, one per seed."""
    trained = read_json(RESULTS / "verdict.json")["judged"][name]
    return [
        {"kept": True, **{key: entry["outcomes"][key]["value"] for key in (FEW, FULL)}}
        for entry in trained
        if entry["recipe"] == recipe and not entry["stage"]
    ]


def lengths(data: BankSet) -> Result:
    """Return the number of documents of a set, and its median tokens and words."""
    texts = [document.text for document in (*data.train, *data.held)]
    counts = tokenizer_counter(load_model(PACKAGED_BASE).model.tokenizer)(texts)
    return {
        "documents": len(texts),
        "judged": len(data.held),
        "tokens": float(np.median(counts)),
        "words": float(np.median([len(text.split()) for text in texts])),
    }


def page(record: Result) -> str:
    """Return the page of the results."""
    results, sets, least = record["results"], record["sets"], record["long"]
    names = sorted(sets, key=lambda name: sets[name]["words"])
    groups = {
        f"sets from {least} words": [name for name in names if sets[name]["words"] >= least],
        "shorter sets": [name for name in names if sets[name]["words"] < least],
        "all sets": names,
    }

    def values(name: str, row: str, key: str) -> list[float]:
        return [each[key] for each in results[name].get(row, ()) if key in each]

    def cell(name: str, row: str, key: str) -> str:
        kept = any("kept" in each for each in results[name].get(row, ()))
        found = values(name, row, key)
        return mean_deviation(found) + "*" * kept if found else ""

    def average(group: Sequence[str], row: str, key: str) -> str:
        found = [values(name, row, key) for name in group]
        return f"{100 * mean(map(mean, found)):.1f}" if found and all(found) else ""

    def against(group: Sequence[str], ours: str, theirs: str, key: str) -> str:
        pairs = [(values(name, ours, key), values(name, theirs, key)) for name in group]
        found = np.array([100 * (mean(one) - mean(other)) for one, other in pairs if one and other])
        return difference(found) if len(found) > 1 else ""

    blocks = [
        "# Static embeddings of your own documents",
        explanation(__doc__),
        table(
            {"": title, **{name: f"{sets[name][key]:,.0f}" for name in names}}
            for title, key in (("documents", "documents"), ("evaluated", "judged"), ("words (median)", "words"),
                               ("tokens (median)", "tokens"))
        ),
    ]  # fmt: skip
    for title, key in (("5 labels per class", FEW), ("the labels of half of the documents", FULL)):
        of_groups = {"all sets": names, f"from {least} words": groups[f"sets from {least} words"]}
        blocks += [
            f"## Macro-F1, {title}",
            table(
                {"": row, **{name: cell(name, row, key) for name in names},
                 **{group: average(of_groups[group], row, key) for group in of_groups}}
                for row in ROWS
            ),
        ]  # fmt: skip
    timed = [name for name in names if values(name, AT_256, "encoding")]
    judged, documents = (sum(sets[name][key] for name in timed) for key in ("judged", "documents"))
    return document(
        *blocks,
        "Differences are paired by set, with 95% bootstrap intervals over sets:",
        table(
            {
                "5 labels per class / half": f"{TRAINED_LSA} against {other}",
                **{
                    title: " / ".join(filter(None, (against(group, TRAINED_LSA, other, key) for key in (FEW, FULL))))
                    for title, group in groups.items()
                },
            }
            for other in (DISTILLED, TRAINED, TRAINED_MODULE, LSA, AT_256, WHOLE, ADAPTED_256)
        ),
        "## Time, short texts",
        f"Seconds to train on {documents:,} documents of {len(timed)} sets ({', '.join(timed)}) and to "
        f"encode the {judged:,} evaluated ones.",
        table(costs(record, timed, row) for row in ROWS),
        machines=record["environments"],
        command="python -m benchmarks.static --shared DATA",
    )


def costs(record: Result, timed: Sequence[str], row: str) -> dict[str, str]:
    """Return a row of the table of costs: seconds on the timed sets, and the score on short texts."""
    found = [record["results"][name].get(row, ()) for name in timed]
    seconds = {
        title: sum(mean(each.get(key, 0.0) for each in by_seed) for by_seed in found) if found and all(found) else 0.0
        for title, key in (("s to train", "training"), ("s to encode", "encoding"))
    }
    of_sets = record["results"].values()
    short = [each["stsb"] for rows in of_sets for each in rows.get(row, ()) if "stsb" in each]
    short = short or ([record["encoders"][KEPT[row]]["stsb"]] if row in KEPT else [])
    return {
        "": row,
        **{title: f"{total:,.1f}" if total else "" for title, total in seconds.items()},
        "STS-B": f"{100 * mean(short):.1f}" if short else "",
    }


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # hide notes on small classes
    main()
