"""Static embeddings of one's own documents beside an encoder: quality, seconds, and on which documents.

    python -m benchmarks.static --shared SHARED_DATA

Eight sets with classes, of ``benchmarks/bank/sets.py``: up to 600 documents and 300 others that are judged, all of them
without labels to train on and to fit an LSA to, as a user has them. Macro-F1 of a logistic regression (C = 10; TF-IDF:
100) with five labels a class and with those of half of the judged documents, over 10 divisions of these, 3 draws each.

Rows: words (TF-IDF, LSA); static models that have one vector for each token and read documents whole: distilled, as
shipped, and trained by ``simlte train --static``, without and with the LSA that it ends with; all-MiniLM-L6-v2 on 256
tokens, on whole documents in chunks, and adapted, whole as ``simlte train --encoder`` makes it. What was not measured
here has a star: it is of ``verdict.md`` (the default training, on the 600 others alone; judged on the same documents
and divisions, but for BBC News, where another sample was judged, on which MiniLM has 87.3 and 95.2) or, where whole
documents were read, of ``models.md`` (C by cross-validation), both in bfloat16.

Seconds are of one core (processor time, float32): to train, and to encode the judged documents, of the sets on which
the encoder was timed. AAN: papers that find those they cite, R@10. STS-B: Spearman, short texts; of trained models the
mean over the sets. The encoder's numbers of both are those of ``models.md``.

Each cell is kept in the work folder, so that an interrupted benchmark goes on where it stopped; the page is written
anew after each. ``--rows`` and ``--sets`` choose. How the recipe was chosen is in ``static_choice.json``.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.bank.outcomes import FEW, FULL, outcomes
from benchmarks.bank.sets import BankSet, load_sets
from benchmarks.grid.work import Busy, Work
from benchmarks.models import latent_rows, load_task, tfidf_rows
from benchmarks.models_page import AAN, STSB
from benchmarks.nli.tasks import load_pairs, similarity
from benchmarks.pages import write_results
from benchmarks.records import RESULTS, TFIDF_INVERSE_L2, environments, make_parser
from benchmarks.static_page import (
    ADAPTED,
    ADAPTED_256,
    AT_256,
    DISTILLED,
    KEPT,
    LSA,
    ROWS,
    SHIPPED,
    TFIDF,
    TRAINED,
    TRAINED_LSA,
    WHOLE,
)
from simlte_st import to_static, train
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.data.document import Document
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.errors import SimlteError
from simlte_st.files import read_json
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.training.choose_base import LONG

SETS = ("ag_news", "arxiv", "20news", "bbc", "fakenews", "movie_reviews", "brown", "sotu")
SEEDS = 3
TOKENS = 32768
"""Tokens of a document that the encoder reads in chunks, at most."""

Result = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    jobs = [row for row in ROWS if row not in (TRAINED_LSA, ADAPTED_256)]  # not made by themselves
    parser.add_argument("--sets", nargs="+", choices=[*SETS, AAN], default=[*SETS, AAN], metavar="NAME")
    parser.add_argument("--rows", nargs="+", choices=jobs, default=jobs, metavar="NAME", help=", ".join(jobs))
    parser.add_argument("--documents", type=int, default=600, metavar="N", help="of a set, besides those judged")
    parser.add_argument("--held-out", type=int, default=300, metavar="N", help="judged documents of a set")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="trainings of static models (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("static.work"), help="folder of what is finished")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("documents", "held_out", "threads")}
    table = Table(Work(options.work), options.shared, settings, options.seeds)
    for _ in table.fill(options.sets, options.rows):
        write_results("static", table.record(), options.output, aloud=False)
    write_results("static", table.record(), options.output)


class Table:
    """The table in a work folder."""

    def __init__(self, work: Work, shared: Path, settings: Result, seeds: int) -> None:
        self.work, self.shared, self.settings, self.seeds = work, shared, settings, seeds
        self.pairs = load_pairs(shared, "STSb", None)

    def fill(self, sets: Sequence[str], rows: Sequence[str]) -> Iterator[None]:
        """Make what is missing, row by row; gives control back after each cell."""
        found = {
            data.name: data
            for data in load_sets(
                self.shared,
                [name for name in SETS if name in sets],
                self.settings["documents"],
                self.settings["held_out"],
            )
        }
        for name, data in found.items():
            self.work.finish(f"lengths/{name}", self.settings, partial(lengths, data))
        jobs: dict[str, Callable[..., Result]] = {name: partial(self._classed, data) for name, data in found.items()}
        if AAN in sets:
            jobs[AAN] = self._papers
        for row in rows:
            for seed in range(self.seeds if row == TRAINED else 1):
                for name, job in jobs.items():
                    if name == AAN and (row in (AT_256, WHOLE, ADAPTED) or seed):
                        continue
                    try:
                        self.work.finish_aloud(f"cells/{name}/{row}/{seed}", self.settings, partial(job, row, seed))
                    except (SimlteError, Busy) as error:
                        print(f"Skipped {row} on {name}: {error}", flush=True)
                    else:
                        yield

    def record(self) -> Result:
        """Return all that is finished."""
        cells = [(path.parts[1:], cell) for path, cell in self.work.cells("cells/*/*/*")]
        results: dict[str, dict[str, list[Result]]] = {}
        for (name, _, _), cell in cells:
            for row, found in cell["result"].items():
                results.setdefault(name, {}).setdefault(row, []).append(found)
        known = read_json(RESULTS / "models.json")["results"]
        for name in results.keys() - {AAN}:
            results[name][ADAPTED_256] = of_verdict(name, "docsplit, temperature 0.5")
            if AT_256 not in results[name]:
                results[name][AT_256] = of_verdict(name, "base")
            if WHOLE not in results[name] and name in known:
                results[name][WHOLE] = [{**means(known[name][KEPT[WHOLE]]), "kept": True}]
        made = [cell["environment"] for _, cell in self.work.cells("cells/*/*/*")]
        return {
            "settings": self.settings,
            "long": LONG,
            "sets": {path.stem: cell["result"] for path, cell in self.work.cells("lengths/*")},
            "results": results,
            "encoders": {
                row: {"recall@10": known[AAN][row]["recall@10"], "stsb": known[STSB][row]["spearman"]}
                for row in KEPT.values()
            },
            "choice": read_json(RESULTS / "static_choice.json"),
            "environments": environments({"environment": each} for each in made),
        }

    def _classed(self, data: BankSet, row: str, seed: int) -> Result:
        """Judge a row on a set with classes; a training gives the row with its LSA, too."""
        texts = [document.text for document in data.held]
        if row == TFIDF:
            return {row: means(outcomes(data, tfidf_rows(texts), TFIDF_INVERSE_L2))}
        if row == LSA:
            vectors = latent_rows([document.text for document in (*data.train, *data.held)])[len(data.train) :]
            return {row: means(outcomes(data, vectors))}
        found: Result = {}
        for name, model, seconds in make(row, [*data.train, *data.held], seed):
            began = time.process_time()
            vectors = encoded(model, texts)
            encoding = time.process_time() - began
            found[name] = {
                **means(outcomes(data, vectors)),
                "training": seconds,
                "encoding": encoding,
                **({"stsb": similarity(model, self.pairs)["spearman"]} if is_static(model) else {}),
            }
        return found

    def _papers(self, row: str, seed: int) -> Result:
        """Judge a row on the papers, all of which are in the corpus."""
        task = load_task(AAN, self.shared, {})
        if row in (TFIDF, LSA):
            return {row: {"recall@10": task.words(row)["recall@10"]}}
        documents = [Document(str(number), text) for number, text in enumerate(task.texts)]
        return {
            name: {"recall@10": task.judge(encoded(model, task.texts))["recall@10"], "training": seconds}
            for name, model, seconds in make(row, documents, seed)
        }


def make(row: str, documents: list[Document], seed: int) -> Iterator[tuple[str, SentenceTransformer, float]]:
    """Yield the models that a row stands for, with the seconds that making them took."""
    began = time.process_time()
    if row in (TRAINED, ADAPTED):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"static": row == TRAINED, "seed": seed, "bf16": False, "progress": False}
            train(documents, f"{folder}/model", held_out=0.0, keep="trained", **settings)
            model = load_model(f"{folder}/model", dtype=torch.float32).model
        seconds = time.process_time() - began
        yield TRAINED_LSA if row == TRAINED else row, model, seconds
        if row == TRAINED:
            assert isinstance(model[-1], LatentSemanticAnalysis)
            del model[-1]
            yield row, model, seconds
        return
    yield row, fixed(row), 0.0


@cache
def fixed(row: str) -> SentenceTransformer:
    """Return a model that no documents have changed."""
    if row == DISTILLED:
        with tempfile.TemporaryDirectory() as folder:
            to_static(PACKAGED_BASE, f"{folder}/model", progress=False)
            return load_model(f"{folder}/model", dtype=torch.float32).model
    model = load_model(SHIPPED if row == SHIPPED else PACKAGED_BASE, dtype=torch.float32).model
    return to_chunk_mean(model, TOKENS) if row == WHOLE else model


def encoded(model: SentenceTransformer, texts: Sequence[str]) -> np.ndarray:
    """Return the embeddings of texts, float32."""
    return np.asarray(model.encode(list(texts), batch_size=16, show_progress_bar=False), dtype=np.float32)


def of_verdict(name: str, recipe: str) -> list[Result]:
    """Return what ``verdict.json`` has of a training on a set, seed by seed."""
    trained = read_json(RESULTS / "verdict.json")["judged"][name]
    return [
        {"kept": True, **{key: entry["outcomes"][key]["value"] for key in (FEW, FULL)}}
        for entry in trained
        if entry["recipe"] == recipe and not entry["stage"]
    ]


def means(found: dict[str, list[float]]) -> Result:
    """Return the mean over divisions and draws of each outcome."""
    return {outcome: float(np.mean(found[outcome])) for outcome in (FEW, FULL)}


def lengths(data: BankSet) -> Result:
    """Count documents and tokens of a set."""
    texts = [document.text for document in (*data.train, *data.held)]
    counts = tokenizer_counter(load_model(PACKAGED_BASE).model.tokenizer)(texts)
    return {
        "documents": len(texts),
        "judged": len(data.held),
        "tokens": float(np.median(counts)),
        "words": float(np.median([len(text.split()) for text in texts])),
    }


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # that small classes give all they have
    main()
