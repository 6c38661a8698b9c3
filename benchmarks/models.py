"""What a stranger would use for document vectors, side by side: words, a short reader, three ways to read it all.

    python -m benchmarks.models --shared SHARED_DATA --adapt

Rows: TF-IDF, LSA and BM25; all-MiniLM-L6-v2 as it is, which reads 256 tokens, its chunk-mean and its conversion to a
Longformer, both of 4,096 tokens and untrained; this package's own models, and the chunk-mean of the shorter. Words, and
each model where there are documents to fit it on, with a latent semantic analysis of those, without labels. With
``--adapt``, each model also trained by ``simlte_st.train`` on the documents of the set, without labels, and kept as its
verdict says; by itself, and with the latent semantic analysis. The training documents of AAN are its papers, of which
no link is seen; of Lee, the background.

Sets: those of ``benchmarks/bank/sets.py`` that have classes, their held-out halves; AAN's papers, all of them, and what
they cite; the Lee corpus; STS-B's test part, to see that short texts did not suffer. Each model encodes each set once:
the vectors (float16) and what came of them are kept in the work folder, so that an interrupted benchmark goes on where
it stopped. ``results/models.json`` and ``.md`` are written anew after each cell.

``--timing`` measures the models' speed, and is for a quiet machine: all encode the same documents in turns. ``--cards``
writes the results into the cards of this package's own models.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from sklearn.decomposition import TruncatedSVD

from benchmarks.bank.outcomes import outcomes, shares_right, word_rows
from benchmarks.bank.sets import FILES, BankSet, load_set
from benchmarks.citation import ENGLISH, read
from benchmarks.grid.work import Work
from benchmarks.models_cards import write_cards
from benchmarks.models_page import (
    AAN,
    ADAPTED,
    ADAPTED_WITH_LSA,
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
)  # fmt: skip
from benchmarks.nli.tasks import Pairs, load_pairs, score_similarity, similarity
from benchmarks.records import RESULTS, add_bf16, dtype_of
from benchmarks.timing import side_by_side
from simlte_st import train
from simlte_st.data import Document
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.errors import DataError, MissingExtraError, ModelError
from simlte_st.evaluation import (
    Bm25Scores,
    CosineScores,
    PairScores,
    TfidfScores,
    citation_retrieval,
    document_similarity,
    load_lee,
)
from simlte_st.evaluation.lexical import TFIDF_INVERSE_L2, fit_tfidf
from simlte_st.evaluation.splits import sample_rows
from simlte_st.files import atomic_path
from simlte_st.models.base import load_model
from simlte_st.models.conversion import convert_base
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.modules.latent_semantic_analysis import DIMENSION

TOKENS = 4096
"""Tokens that the converted models read."""

VIEW = 256
"""Tokens of a view in training: those of the base, for all. Views of a whole long document would take days."""

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
        data: Its documents: those to train on, and those held out, which are encoded.
    """

    data: BankSet

    @property
    def texts(self) -> list[str]:
        """What is encoded."""
        return [document.text for document in self.data.held]

    @property
    def train(self) -> list[Document]:
        """What a model is adapted to."""
        return self.data.train

    def judge(self, vectors: np.ndarray, **settings: float) -> Result:
        """Give macro-F1 of each draw, and how often the class of each document was found."""
        return {**outcomes(self.data, vectors, **settings), "right": shares_right(self.data, vectors, **settings)}

    def words(self, row: str) -> Result:
        """The same for bags of words; BM25 has no vectors to learn from."""
        if row == LSA:
            return self.judge(latent_rows(self.texts, [document.text for document in self.train]))
        return self.judge(word_rows(self.data), inverse_l2=TFIDF_INVERSE_L2)


@dataclass(frozen=True)
class Paired:
    """A set that is judged by how alike pairs of its texts are.

    Attributes:
        texts: What is encoded.
        score: Judges the scores of pairs of them.
        train: What a model is adapted to; empty where there is nothing.
        english: Settings of TF-IDF, beside its defaults.
    """

    texts: list[str]
    score: Callable[[PairScores], Result]
    train: list[Document] = field(default_factory=list)
    english: dict[str, Any] = field(default_factory=dict)

    def judge(self, vectors: np.ndarray) -> Result:
        """Judge the cosine."""
        return self.score(CosineScores(vectors))

    def words(self, row: str) -> Result:
        """Judge a bag of words; TF-IDF has its frequencies from the training documents too."""
        known = set(self.texts)
        corpus = [*self.texts, *(document.text for document in self.train if document.text not in known)]
        kinds: dict[str, Callable[[], PairScores]] = {
            TFIDF: lambda: TfidfScores(self.texts, corpus, **self.english),
            LSA: lambda: CosineScores(latent_rows(self.texts, corpus, **self.english)),
            BM25: lambda: Bm25Scores(self.texts),
        }
        return self.score(kinds[row]())


Task = Classed | Paired


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models = [row for row in ROWS if not row.endswith((WITH_LSA, ADAPTED))]
    parser.add_argument("--shared", type=Path, required=True, metavar="FOLDER", help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--models", nargs="+", choices=models, default=models, metavar="NAME", help=", ".join(models))
    parser.add_argument("--adapt", action="store_true", help="each model adapted to the documents of each set too")
    parser.add_argument("--timing", action="store_true", help="only measure speed: nothing else should run meanwhile")
    parser.add_argument("--cards", action="store_true", help="only write the results into this package's model cards")
    parser.add_argument(
        "--limit", type=int, default=600, metavar="N",
        help="held-out documents of each set with classes (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--train-documents", type=int, default=1000, metavar="N", help="of each set, at most")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("models.work"), help="folder of what is finished")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the page (default: %(default)s)")
    add_bf16(parser)
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("limit", "train_documents", "threads", "bf16")}
    table = Table(Work(options.work, dtype_of(options.bf16)), options.shared, settings)
    if options.timing:
        table.time(options.models)
    for name in () if options.timing or options.cards else options.sets:
        for _ in table.fill(name, options.models, options.adapt):
            write_page(table.work, settings, options.output, aloud=False)
    lines = write_page(table.work, settings, options.output)
    if options.cards:
        write_cards(lines)


class Table:
    """The table in a work folder.

    Args:
        work: The folder.
        shared: Folder of the data sets.
        settings: Of the whole run; see :func:`main`.
    """

    def __init__(self, work: Work, shared: Path, settings: dict[str, Any]) -> None:
        self.work, self.shared, self.settings = work, shared, settings
        self.dtype = dtype_of(settings["bf16"])
        self.missing: set[str] = set()
        """Models that cannot be loaded; each is said once."""

    def fill(self, name: str, models: Sequence[str], adapt: bool) -> Iterator[None]:
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
            fitted = bool(task.train) and model not in WORDS
            suffixes = ["", *[WITH_LSA] * fitted, *[ADAPTED, ADAPTED_WITH_LSA] * (fitted and adapt)]
            for row in (f"{model}{suffix}" for suffix in suffixes):
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
            made = {**{key: value for key, value in made.items() if key != "stsb"}, **found}
        return {**task.judge(vectors), "encoding": made}

    def _vectors(self, name: str, task: Task, row: str) -> tuple[Path, Result]:
        """Encode the texts of a set where that is not done; gives the file, and how it went."""
        cell = f"vectors/{name}/{row}"
        path = self.work.path(cell).with_suffix(".npy")
        return path, self.work.finish(cell, self.settings, lambda: self._encode(name, task, row, path))["result"]

    def _with_lsa(self, task: Task, row: str, vectors: np.ndarray) -> tuple[np.ndarray, Result]:
        """Lengthen the vectors of a model by a latent semantic analysis of what there is to train on."""
        began = time.perf_counter()
        model = load_model(self._source(row.removesuffix(ADAPTED)), dtype=self.dtype).model  # of the same tokens
        model.append(LatentSemanticAnalysis.fit(model, task.train))
        found: Result = {"fitting_seconds": time.perf_counter() - began}
        longer = []
        for start in range(0, len(vectors), BATCH):
            rows = slice(start, start + BATCH)
            read = {**model.preprocess(task.texts[rows]), "sentence_embedding": torch.from_numpy(vectors[rows])}
            longer.append(model[-1](read)["sentence_embedding"].numpy())
        if not row.endswith(ADAPTED) and (short := self._short()) is not None:
            found["stsb"] = similarity(model, short)
        return np.concatenate(longer), found

    def _encode(self, name: str, task: Task, row: str, path: Path) -> Result:
        """Encode the texts of a set, by a model that is adapted to it where the row says so."""
        found: Result = {}
        before = row.removesuffix(ADAPTED)
        source = self._source(before)
        with tempfile.TemporaryDirectory() as folder:
            if row.endswith(ADAPTED):
                run = train(
                    task.train, Path(folder) / "model", base=source, bf16=self.settings["bf16"], max_view_length=VIEW,
                    max_length="base", progress=False,
                )  # fmt: skip
                source = str(run.output)
                found |= {"kept": run.kept, "steps": run.steps, "training_seconds": run.seconds}
            model = load_model(source, dtype=self.dtype).model
            if found.get("kept") == "base":  # it is the same model
                vectors = np.load(self._vectors(name, task, before)[0])
            else:
                vectors = model.encode(task.texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
            if row.endswith(ADAPTED) and (short := self._short()) is not None:
                found["stsb"] = similarity(model, short)
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, np.asarray(vectors, dtype=np.float16))
        return {**found, "reads": model.max_seq_length}

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


def latent_rows(texts: Sequence[str], corpus: Sequence[str], **settings: Any) -> np.ndarray:
    """Give a latent semantic analysis of words, fitted on a corpus, float32, a row for each text."""
    vectorizer = fit_tfidf(corpus, **settings)
    decomposition = TruncatedSVD(min(DIMENSION, len(corpus) - 1), random_state=0).fit(vectorizer.transform(corpus))
    rows = decomposition.transform(vectorizer.transform(texts)) / np.sqrt(decomposition.singular_values_)
    return np.asarray(rows, dtype=np.float32)


def load_task(name: str, shared: Path, settings: dict[str, Any]) -> Task:
    """Load a set.

    Raises:
        DataError: It is not there or cannot be used.
        MissingExtraError: The package that has it is not installed.
        OSError: It is not there.
    """
    most = settings["train_documents"]
    if name in CLASSED:
        return Classed(load_set(name, shared / FILES[name] if FILES[name] else None, most, settings["limit"]))
    if name == AAN:
        texts, links = read(shared / "aan_papers.parquet", shared / "aan_citations.parquet")

        def cites(scores: PairScores) -> Result:
            found = citation_retrieval(scores, links)
            return {**found.metrics(), "per_query": {key: part.tolist() for key, part in found.per_query.items()}}

        return Paired(texts, cites, drawn(texts, most), ENGLISH)
    if name == LEE:
        lee, background = load_lee(shared), shared / "lee_background.parquet"
        others = pq.read_table(background, columns=["text"])["text"].to_pylist() if background.exists() else []
        return Paired(
            lee.texts, lambda scores: document_similarity(scores, lee.pairs, lee.scores).metrics(), drawn(others, most)
        )
    assert name == STSB
    pairs = load_pairs(shared, "STSb", None)
    return Paired([*pairs.first, *pairs.second], lambda scores: dict(score_similarity(scores, pairs)))


def drawn(texts: list[str], most: int) -> list[Document]:
    """Draw documents to train on."""
    return [Document(str(row), texts[row]) for row in sample_rows(len(texts), most, seed=0)]


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # that small classes give all they have
    main()
