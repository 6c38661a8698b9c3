"""What a stranger would use for document vectors, side by side: words, a short reader, three ways to read it all.

    python -m benchmarks.models --shared SHARED_DATA

Rows: TF-IDF, LSA and BM25; all-MiniLM-L6-v2 as it is, which reads 256 tokens, its chunk-mean and its conversion to a
Longformer, both of 4,096 tokens and untrained; this package's own models, and the chunk-mean of the shorter; on sets of
documents, each model also with a latent semantic analysis of them, without labels, as a user has it. What training on
the documents of a set brings is in ``benchmarks.verdict``.

Sets: those of ``benchmarks/bank/sets.py`` that have classes, their held-out documents; AAN's papers, all of them, and
what they cite; the Lee corpus; STS-B's test part, to see that short texts did not suffer. Each model encodes each set
once: the vectors (float16) and what came of them are kept in the work folder, so that an interrupted benchmark goes on
where it stopped. ``results/models.json`` and ``.md`` are written anew after each cell.

``--timing`` measures the models' speed, and is for a quiet machine: all encode the same documents in turns. ``--cards``
writes the results into the cards of this package's own models.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD

from benchmarks.bank.outcomes import outcomes, shares_right
from benchmarks.bank.sets import FILES, BankSet, load_set
from benchmarks.bm25 import Bm25Scores
from benchmarks.citation import ENGLISH, read
from benchmarks.grid.work import Work
from benchmarks.models_cards import write_cards
from benchmarks.models_page import (
    AAN,
    AT_256,
    BERT_CHUNKED,
    BM25,
    CHUNKED,
    CLASSED,
    LEE,
    LONGFORMER,
    LSA,
    ROWS,
    SETS,
    STSB,
    TFIDF,
    WITH_LSA,
    WORDS,
    write_page,
)
from benchmarks.nli.tasks import Pairs, load_pairs, score_similarity, similarity
from benchmarks.papers.citation_retrieval import citation_retrieval
from benchmarks.papers.document_similarity import document_similarity, load_lee
from benchmarks.records import dtype_of, make_parser
from benchmarks.timing import side_by_side
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.errors import DataError, MissingExtraError, ModelError
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.files import atomic_path
from simlte_st.models.base import load_model
from simlte_st.models.conversion import convert_base
from simlte_st.models.lsa import lengthened
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.modules.latent_semantic_analysis import DIMENSION, scaling

TOKENS = 4096
"""Tokens that the converted models read."""

BATCH = 16
TIMED, REPEATS = 4, 3
"""Held-out documents of each set with classes that the models are timed on, and turns."""

CONVERTED: dict[str, tuple[str, str]] = {
    CHUNKED: (AT_256, "chunk-mean"),
    LONGFORMER: (AT_256, "longformer"),
    BERT_CHUNKED: ("simlte-bert", "chunk-mean"),
}

Result = dict[str, Any]


@dataclass(frozen=True)
class Classed:
    """A set with classes.

    Attributes:
        data: Its documents, of which those held out are encoded.
    """

    data: BankSet

    @property
    def texts(self) -> list[str]:
        """What is encoded."""
        return [document.text for document in self.data.held]

    def judge(self, vectors: np.ndarray) -> Result:
        """Return macro-F1 of each draw, and how often the class of each document was found."""
        return {
            **outcomes(self.data, vectors, inverse_l2=None),
            "right": shares_right(self.data, vectors, inverse_l2=None),
        }

    def words(self, row: str) -> Result:
        """The same for bags of words; BM25 has no vectors to learn from."""
        return self.judge(latent_rows(self.texts) if row == LSA else tfidf_rows(self.texts))


@dataclass(frozen=True)
class Paired:
    """A set that is judged by how alike pairs of its texts are.

    Attributes:
        texts: What is encoded.
        score: Judges the scores of pairs of them.
        english: Settings of TF-IDF, beside its defaults.
        documents: Whether they are documents, of which an analysis can be fitted.
    """

    texts: list[str]
    score: Callable[[PairScores], Result]
    english: dict[str, Any] = field(default_factory=dict)
    documents: bool = False

    def judge(self, vectors: np.ndarray) -> Result:
        """Judge the cosine."""
        return self.score(CosineScores(vectors))

    def words(self, row: str) -> Result:
        """Judge a bag of words."""
        kinds: dict[str, Callable[[], PairScores]] = {
            TFIDF: lambda: TfidfScores(self.texts, **self.english),
            LSA: lambda: CosineScores(latent_rows(self.texts, **self.english)),
            BM25: lambda: Bm25Scores(self.texts),
        }
        return self.score(kinds[row]())


Task = Classed | Paired


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--bf16")
    models = [row for row in ROWS if not row.endswith(WITH_LSA)]
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--models", nargs="+", choices=models, default=models, metavar="NAME", help=", ".join(models))
    parser.add_argument("--timing", action="store_true", help="only measure speed: nothing else should run meanwhile")
    parser.add_argument("--cards", action="store_true", help="only write the results into this package's model cards")
    parser.add_argument(
        "--limit", type=int, default=600, metavar="N",
        help="held-out documents of each set with classes (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("models.work"), help="folder of what is finished")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("limit", "threads", "bf16")}
    table = Table(Work(options.work, dtype_of(options.bf16)), options.shared, settings)
    if options.timing:
        table.time(options.models)
    for name in () if options.timing or options.cards else options.sets:
        for _ in table.fill(name, options.models):
            write_page(table.work, settings, options.output, aloud=False)
    lines = write_page(table.work, settings, options.output)
    if options.cards:
        write_cards(lines)


class Table:
    """The table in a work folder."""

    def __init__(self, work: Work, shared: Path, settings: dict[str, Any]) -> None:
        self.work, self.shared, self.settings = work, shared, settings
        self.dtype = dtype_of(settings["bf16"])
        self.missing: set[str] = set()
        """Models that cannot be loaded; each is said once."""

    def fill(self, name: str, models: Sequence[str]) -> Iterator[None]:
        """Make what is missing of a set; gives control back after each cell."""
        try:
            task = load_task(name, self.shared, self.settings)
        except (DataError, MissingExtraError, OSError) as error:
            print(f"Skipped {name}: {error}", flush=True)
            return
        if isinstance(task, Classed):
            count = tokenizer_counter(load_model(PACKAGED_BASE).model.tokenizer)
            self.work.finish(f"lengths/{name}", self.settings, lambda: {"tokens": count(task.texts)})
        for model in models:
            if model == BM25 and isinstance(task, Classed):
                continue
            fitted = model not in WORDS and (isinstance(task, Classed) or task.documents)
            for row in [model, f"{model}{WITH_LSA}"] if fitted else [model]:
                if model in self.missing:
                    continue
                cell = f"outcomes/{name}/{row}"
                try:
                    self.work.finish_aloud(cell, self.settings, lambda row=row: self._outcome(name, task, row))
                except (ModelError, MissingExtraError) as error:
                    self.missing.add(model)
                    print(f"Skipped {model}: {error}", flush=True)
                except DataError as error:
                    print(f"Skipped {row} on {name}: {error}", flush=True)
                else:
                    yield

    def _outcome(self, name: str, task: Task, row: str) -> Result:
        if row in WORDS:
            return task.words(row)
        model = row.removesuffix(WITH_LSA)
        path, made = self._vectors(name, task, model)
        vectors = np.load(path).astype(np.float32)
        if model != row:
            vectors, found = self._with_lsa(task, model, vectors)
            made = {**made, **found}
        return {**task.judge(vectors), "encoding": made}

    def _vectors(self, name: str, task: Task, row: str) -> tuple[Path, Result]:
        """Encode the texts of a set where that is not done; gives the file, and how it went."""
        cell = f"vectors/{name}/{row}"
        path = self.work.path(cell).with_suffix(".npy")
        return path, self.work.finish(cell, self.settings, lambda: self._encode(task, row, path))["result"]

    def _with_lsa(self, task: Task, row: str, vectors: np.ndarray) -> tuple[np.ndarray, Result]:
        """Lengthen the vectors of a model by a latent semantic analysis of the texts."""
        began = time.perf_counter()
        model = load_model(self._source(row), dtype=self.dtype).model  # of the same tokens
        analysis = LatentSemanticAnalysis.fit(model, task.texts)
        found: Result = {"fitting_seconds": time.perf_counter() - began}
        longer = lengthened(model, analysis, task.texts, vectors)
        if (short := self._short()) is not None:
            model.append(analysis)
            found["stsb"] = similarity(model, short)
        return longer, found

    def _encode(self, task: Task, row: str, path: Path) -> Result:
        """Encode the texts of a set."""
        model = load_model(self._source(row), dtype=self.dtype).model
        vectors = model.encode(task.texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, np.asarray(vectors, dtype=np.float16))
        return {"reads": model.max_seq_length}

    def time(self, models: Sequence[str]) -> None:
        """Measure how long the models take for the same documents, in turns."""
        texts: list[str] = []
        for name in CLASSED:
            try:
                texts += load_task(name, self.shared, self.settings).texts[:TIMED]
            except (DataError, MissingExtraError, OSError) as error:
                print(f"Skipped {name}: {error}", flush=True)
        if texts:
            readers = [model for model in models if model not in WORDS]
            self.work.finish_aloud("timing/seconds", self.settings, lambda: self._seconds(readers, texts))

    def _seconds(self, models: Sequence[str], texts: list[str]) -> Result:
        loaded = {model: load_model(self._source(model), dtype=self.dtype).model for model in models}
        jobs = {
            name: partial(model.encode, texts, batch_size=BATCH, show_progress_bar=False)
            for name, model in loaded.items()
        }
        return {"documents": len(texts), "seconds": side_by_side(jobs, REPEATS)}

    def _source(self, model: str) -> str:
        """Name a model, or give the folder of one that is made by conversion."""
        if model not in CONVERTED:
            return PACKAGED_BASE if model == AT_256 else model
        folder = self.work.folder / "models" / model
        if not folder.exists():
            base, backbone = CONVERTED[model]
            convert_base(self._source(base), folder, backbone=backbone, max_length=TOKENS)
        return str(folder)

    def _short(self) -> Pairs | None:
        try:
            return load_pairs(self.shared, "STSb", None)
        except OSError:  # it is not there, which the set itself says
            return None


def tfidf_rows(texts: Sequence[str]) -> np.ndarray:
    """Return TF-IDF vectors of texts, float32, a row for each, rotated into as few dimensions as there are texts.

    A classifier with an L2 penalty sees inner products only, which that does not change, and is done sooner.
    """
    return rotated(fit_tfidf(texts).transform(texts).toarray())


def rotated(rows: np.ndarray) -> np.ndarray:
    """Return rows in as few dimensions as there are of them, float32, with the same inner products."""
    left, sizes, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(left * sizes, dtype=np.float32)


def latent_rows(texts: Sequence[str], **settings: Any) -> np.ndarray:
    """Return a latent semantic analysis of texts by their words, float32; scaled as the module's own."""
    counts = fit_tfidf(texts, **settings).transform(texts)
    decomposition = TruncatedSVD(min(DIMENSION, len(texts) - 1), random_state=0).fit(counts)
    factors = scaling(decomposition.singular_values_, len(texts))
    return np.asarray(decomposition.transform(counts) * factors, dtype=np.float32)[:, factors > 0]


def load_task(name: str, shared: Path, settings: dict[str, Any]) -> Task:
    """Load a set."""
    if name in CLASSED:
        limit = settings["limit"]
        return Classed(load_set(name, shared / FILES[name] if FILES[name] else None, limit, limit))
    if name == AAN:
        texts, links = read(shared / "aan_papers.parquet", shared / "aan_citations.parquet")

        def cites(scores: PairScores) -> Result:
            found = citation_retrieval(scores, links)
            return {**found.metrics(), "per_query": {key: part.tolist() for key, part in found.per_query.items()}}

        return Paired(texts, cites, ENGLISH, documents=True)
    if name == LEE:
        lee = load_lee(shared)
        return Paired(lee.texts, lambda scores: document_similarity(scores, lee.pairs, lee.scores))
    assert name == STSB
    pairs = load_pairs(shared, "STSb", None)
    return Paired([*pairs.first, *pairs.second], lambda scores: dict(score_similarity(scores, pairs)))


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # that small classes give all they have
    main()
