"""Measures settings on one sample of documents, for :func:`~simlte_st.evaluation.compare.compare`."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.chunk_mean.backbone import WHOLE_DOCUMENTS
from simlte_st.chunk_mean.convert import can_read_in_chunks, chunk_length, read_in_chunks
from simlte_st.compat import readable_length
from simlte_st.data.document import Document
from simlte_st.errors import DataError
from simlte_st.evaluation.candidates import DRAWS, SHOTS, Candidate, recommend
from simlte_st.evaluation.comparison import TFIDF, compare_halves
from simlte_st.evaluation.config import CompareConfig
from simlte_st.evaluation.evaluator import encode_texts, reading_at_most
from simlte_st.evaluation.few_shot import FewShotResult, few_shot_probe
from simlte_st.evaluation.probe import ProbeResult, Rows, fit_probe
from simlte_st.evaluation.scores import tfidf_rows
from simlte_st.evaluation.splits import PROBE_LEAST, divide_rows, probe_rows, warned_once
from simlte_st.evaluation.verdict import FEWEST, Verdict, give_verdict
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import lengthened
from simlte_st.models.names import OWN_STATIC, local_folder, trained_from
from simlte_st.models.static import is_static
from simlte_st.models.truncation import CUT_SHARE, Truncation, text_lengths
from simlte_st.models.vectors import unit_rows
from simlte_st.modules.latent_semantic_analysis import DIMENSION, LatentSemanticAnalysis

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Labels:
    """Rows and labels of the documents that a probe can use, and how they are divided."""

    rows: list[int]
    labels: list[str]
    train: list[int]
    test: list[int]
    seed: int

    @classmethod
    def of(cls, documents: Sequence[Document], column: str, seed: int) -> Labels:
        """Return those of documents with classes in a column."""
        usable = probe_rows(documents)
        labels = [str(documents[row].label) for row in usable]
        if len(usable) < 2 * FEWEST or len(set(labels)) < 2:
            raise DataError(
                f"probe={column!r}: {len(usable)} documents of the sample have a class of {PROBE_LEAST} documents or "
                f"more in that column, and there are {len(set(labels))} such classes. {2 * FEWEST} documents of two "
                "classes are needed: name a column with fewer classes, or take a larger sample."
            )
        train, test = divide_rows([documents[row].text for row in usable], labels, 0.5, seed)
        return cls(usable, labels, train, test, seed)

    @warned_once()
    def probe(self, vectors: Rows) -> tuple[FewShotResult, ProbeResult]:
        """Probe vectors of all documents of the sample."""
        part = vectors[self.rows]
        known, unknown = ([self.labels[row] for row in rows] for rows in (self.train, self.test))
        parts = (part[self.train], known, part[self.test], unknown)
        few_shot = few_shot_probe(*parts, shots=SHOTS, draws=DRAWS, seed=self.seed)
        return few_shot, fit_probe(*parts, seed=self.seed)


class Bench:
    """Measures candidates on one sample of documents, which ``source`` names in commands."""

    def __init__(self, documents: list[Document], source: str, config: CompareConfig) -> None:
        self.documents, self.texts = documents, [document.text for document in documents]
        self.labels = None if config.probe is None else Labels.of(documents, config.probe, config.seed)
        self.source, self.config = source, config
        self.candidates: list[Candidate] = []
        self.models: dict[str, SentenceTransformer] = {}
        self.vectors: dict[str, np.ndarray] = {}
        self.analyses: dict[str, tuple[np.ndarray, np.ndarray, float]] = {}

    def add_static(self, name: str, model: SentenceTransformer) -> None:
        """Add a static model as it is, and with a latent semantic analysis, as a training makes it."""
        made = self._encode(name, model, self._encoding(name))
        if _takes_analysis(model):
            self._add_analysis(made, self._training(None if name == OWN_STATIC else name, static=True))

    def add_encoder(self, name: str, model: SentenceTransformer) -> None:
        """Add an encoder as it is and, where it truncates much, reading whole documents."""
        verdict = _verdict(name, model, self.documents, self.config)
        share = self._encode(name, model, self._encoding(name), verdict).share
        if share < 1 - CUT_SHARE and reads_chunks(model):
            self._encode(f"{name}, whole", read_in_chunks(model, WHOLE_DOCUMENTS), self._training(base=name))

    def add_words(self) -> None:
        """Add the best encoder with a latent semantic analysis, such an analysis by itself, and TF-IDF."""
        plain = [
            each for each in self.candidates if each.name in self.models and _takes_analysis(self.models[each.name])
        ]
        if encoders := [each for each in plain if not each.static]:
            best = recommend(encoders, False, self.config.seed)
            command = self._training(base=best.name.removesuffix(", whole"), lsa=DIMENSION)
            if best.command.startswith("simlte encode"):
                command = f"simlte convert {shlex.quote(best.name)} --lsa {self.source} --output my-model"
            self._add_analysis(best, command)
        if plain:
            longest = max(plain, key=lambda each: each.share)
            _, latent, seconds = self._analysis(longest.name)
            self._add(Candidate("LSA by itself", longest.reads, longest.share), unit_rows(latent), seconds)
        began = time.perf_counter()
        words = tfidf_rows(self.texts)
        self._add(Candidate(TFIDF, None, 1.0), words, time.perf_counter() - began)

    def _encoding(self, name: str) -> str:
        return f"simlte encode {shlex.quote(name)} {self.source} --output vectors.parquet"

    def _training(self, base: str | None, lsa: int | None = None, static: bool = False) -> str:
        """Return the command that trains a base on the documents."""
        values = {"static": static or None, "base": base, "probe": self.config.probe, "lsa": lsa}
        given = {
            name: "" if value is True else f" {shlex.quote(str(value))}" for name, value in values.items() if value
        }
        options = [f"--{name}{value}" for name, value in given.items()]
        return f"simlte train {' '.join([self.source, *options])} --output my-model"

    def _encode(self, name: str, model: SentenceTransformer, command: str, verdict: Verdict | None = None) -> Candidate:
        read = Truncation.of(model).add(text_lengths(model, self.texts))
        share = 1 - read.cut_tokens / max(1, read.tokens)
        began = time.perf_counter()
        bar: dict[str, Any] = {"show_progress_bar": self.config.progress, "bar_name": f"Encoding ({name})"}
        vectors = encode_texts(model, self.texts, **bar)
        seconds = time.perf_counter() - began
        self.models[name], self.vectors[name] = model, vectors
        candidate = Candidate(name, read.max_seq_length, share, 0.0, command, is_static(model), verdict)
        return self._add(candidate, unit_rows(vectors), seconds)

    def _add(self, candidate: Candidate, vectors: Rows, seconds: float) -> Candidate:
        """Add a candidate with the vectors of all documents of the sample, which took some seconds."""
        made = replace(candidate, documents_per_second=len(self.texts) / seconds)
        if self.labels is not None:
            few_shot, full = self.labels.probe(vectors)
            made = replace(made, few_shot=few_shot, full=full)
        self.candidates.append(made)
        return made

    def _add_analysis(self, plain: Candidate, command: str) -> None:
        """Add a candidate with a latent semantic analysis of the sample."""
        own, latent, seconds = self._analysis(plain.name)
        both = replace(plain, name=f"{plain.name} + LSA", command=command, verdict=None)
        self._add(both, np.hstack([own, latent]), seconds + len(self.texts) / plain.documents_per_second)

    def _analysis(self, name: str) -> tuple[np.ndarray, np.ndarray, float]:
        """Return both parts of the vectors of a model with an analysis fitted to the sample, and the seconds."""
        if name not in self.analyses:
            model, vectors = self.models[name], self.vectors[name]
            began = time.perf_counter()
            fitted = LatentSemanticAnalysis.fit(model, self.texts, seed=self.config.seed, progress=self.config.progress)
            both = lengthened(model, fitted, self.texts, vectors)
            own, latent = np.split(both, [vectors.shape[1]], axis=1)
            self.analyses[name] = own, latent, time.perf_counter() - began
        return self.analyses[name]


def reads_chunks(model: SentenceTransformer) -> bool:
    """Return whether a model can be made to read longer documents than it does, in chunks."""
    length = readable_length(model)
    return length is not None and length < WHOLE_DOCUMENTS and can_read_in_chunks(model)


def _takes_analysis(model: SentenceTransformer) -> bool:
    """Return whether a model can be written with an analysis."""
    return model.truncate_dim is None and not isinstance(model[-1], LatentSemanticAnalysis)


def _verdict(
    name: str, model: SentenceTransformer, documents: Sequence[Document], config: CompareConfig
) -> Verdict | None:
    """Return the verdict on a model whose base is here, at the base's length as in training; None if there is none."""
    base = trained_from(name)
    if base is None or local_folder(base) is None:
        return None
    before = load_model(base, device=config.device).model
    length = readable_length(before)
    if length not in (readable_length(model), chunk_length(model)):
        return None
    try:
        with reading_at_most(model, length):
            models = {base: before, name: model}
            halves = compare_halves(models, documents, seed=config.seed, progress=config.progress)
    except DataError as error:
        logger.warning("No verdict on %s: %s", name, error)
        return None
    return give_verdict(halves[base], halves[name], seed=config.seed)
