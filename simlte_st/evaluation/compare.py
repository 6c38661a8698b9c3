"""Which setting for these documents? Models and words side by side on a sample: what ``simlte compare`` does."""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.checks import check_seed
from simlte_st.chunk_mean.backbone import WHOLE_DOCUMENTS
from simlte_st.chunk_mean.convert import can_read_in_chunks, chunk_length, read_in_chunks
from simlte_st.compat import readable_length
from simlte_st.data.document import Document
from simlte_st.data.documents import read_documents
from simlte_st.data.sources import is_place
from simlte_st.errors import DataError, ModelError
from simlte_st.evaluation.candidates import DRAWS, SHOTS, Candidate, Comparison
from simlte_st.evaluation.classification_probe import FewShotResult, few_shot_probe
from simlte_st.evaluation.comparison import TFIDF, compare_halves
from simlte_st.evaluation.evaluator import encode_texts, reading_at_most
from simlte_st.evaluation.labels import warned_once
from simlte_st.evaluation.lexical import fit_tfidf
from simlte_st.evaluation.probe import ProbeResult, Rows, fit_probe
from simlte_st.evaluation.splits import PROBE_LEAST, divide_rows, probe_rows, sample_documents, sample_rows
from simlte_st.evaluation.verdict import FEWEST, Verdict, give_verdict
from simlte_st.models.base import load_model
from simlte_st.models.loading import check_symmetric
from simlte_st.models.lsa import lengthened
from simlte_st.models.names import OWN_MODELS, PACKAGED_BASE, local_folder, trained_from
from simlte_st.models.truncation import CUT_SHARE, Truncation, text_lengths
from simlte_st.models.vectors import unit_rows
from simlte_st.modules.latent_semantic_analysis import DIMENSION, LatentSemanticAnalysis

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

TOKENS = 200_000
"""Tokens of a sample: a model that reads all of them takes about a minute on two CPU cores."""

LEAST = 100
"""Documents of a sample at least, however long they are: of fewer nothing could be said."""


def compare(
    documents: Any,
    models: Sequence[str | os.PathLike[str]] = (),
    *,
    probe: str | None = None,
    sample: int = 500,
    text_column: str | None = None,
    id_column: str | None = None,
    encoding: str = "utf-8",
    limit: int | None = None,
    seed: int = 0,
    device: str | None = None,
    progress: bool = True,
) -> Comparison:
    """Compare settings on a sample of documents: models as they are and reading whole documents, with LSA, and words.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` takes; the options below are for it.
        models: The models; see :func:`~simlte_st.models.base.find_model`. None named: the packaged all-MiniLM-L6-v2
            and this package's own, those of them that are here or can be put together.
        probe: Column of classes, folders or tags; probes on it say which setting is best.
        sample: Documents to compare on at most; of long ones fewer, but 100 at least.
        text_column: Column of the text.
        id_column: Column of the ids.
        encoding: Encoding of text files.
        limit: Use no more than so many documents.
        seed: Decides sample, draws and intervals.
        device: Where the models compute; None for a GPU, if there is one.
        progress: Show progress bars.

    Returns:
        What was measured, and which setting is recommended.

    Raises:
        DataError: The documents cannot be read, or too few have labels that a probe could use.
        ModelError: A model cannot be loaded.
        ConfigurationError: ``sample`` is below 2.
    """
    check_seed(seed)
    options = {"text_column": text_column, "id_column": id_column, "encoding": encoding, "limit": limit}
    drawn = sample_documents(read_documents(documents, label_column=probe, **options), sample, seed)  # type: ignore[arg-type]
    loaded: dict[str, SentenceTransformer] = {}
    for name in [os.fspath(each) for each in models] or [PACKAGED_BASE, *OWN_MODELS]:
        try:
            loaded[name] = load_model(name, device=device).model
            check_symmetric(loaded[name], name)
        except ModelError as error:
            if models:
                raise
            logger.warning("Left out: %s", error)
    if not loaded:
        raise ModelError("There is no model to compare: name one, or install the packaged one: simlte-st[demo].")
    lengths = text_lengths(next(iter(loaded.values())), [document.text for document in drawn])
    if sum(lengths) > TOKENS and len(drawn) > LEAST:
        rows = sample_rows(len(drawn), max(LEAST, int(len(drawn) * TOKENS / sum(lengths))), seed)
        drawn, lengths = [drawn[row] for row in rows], [lengths[row] for row in rows]
    labels = None if probe is None else _Labels.of(drawn, probe, seed)
    bench = _Bench([document.text for document in drawn], labels, _shown(documents, options), probe, seed, progress)
    for name, model in loaded.items():
        bench.add_model(name, model, _verdict(name, model, drawn, seed, device, progress))
    bench.add_words()
    labelled = 0 if labels is None else len(labels.rows)
    best = bench.best(bench.candidates).name
    return Comparison(tuple(bench.candidates), best, len(drawn), sum(lengths), labelled, seed)


@dataclass(frozen=True)
class _Labels:
    """The labelled documents of a sample that a probe can use: their rows, their labels, and how they are divided."""

    rows: list[int]
    labels: list[str]
    train: list[int]
    test: list[int]
    seed: int

    @classmethod
    def of(cls, documents: Sequence[Document], column: str, seed: int) -> _Labels:
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
        few_shot = few_shot_probe(*parts, shots=SHOTS, draws=DRAWS, head="logistic", seed=self.seed)
        return few_shot, fit_probe(*parts, head="logistic", seed=self.seed)


class _Bench:
    """Candidates on one sample of documents."""

    def __init__(
        self, texts: list[str], labels: _Labels | None, source: str, probe: str | None, seed: int, progress: bool
    ) -> None:
        self.texts, self.labels, self.source, self.probe = texts, labels, source, probe
        self.seed, self.progress = seed, progress
        self.candidates: list[Candidate] = []
        self.encoded: dict[str, tuple[SentenceTransformer, np.ndarray]] = {}

    def best(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the best that a command makes: by the probe; without labels by the verdict, and what it reads."""
        made = [each for each in candidates if each.command]
        if self.labels is not None:
            return max(made, key=lambda each: each.score)
        return max(made, key=lambda each: (each.verdict is not None and each.verdict.word == "helped", each.share))

    def add(self, candidate: Candidate, vectors: Rows, seconds: float) -> None:
        """Measure vectors of all documents of the sample, which took some seconds."""
        made = replace(candidate, documents_per_second=len(self.texts) / seconds)
        if self.labels is not None:
            few_shot, full = self.labels.probe(vectors)
            made = replace(made, few_shot=few_shot, full=full)
        self.candidates.append(made)

    def add_model(self, name: str, model: SentenceTransformer, verdict: Verdict | None) -> None:
        """Add a model as it is and, where it cuts much, reading whole documents."""
        shown = shlex.quote(name)
        share = self._encode(name, model, f"simlte encode {shown} {self.source} --output vectors.parquet", verdict)
        length = readable_length(model)
        if length is not None and share < 1 - CUT_SHARE and length < WHOLE_DOCUMENTS and can_read_in_chunks(model):
            self._encode(f"{name}, whole", read_in_chunks(model, WHOLE_DOCUMENTS), self._training(name))

    def _training(self, base: str, lsa: int | None = None) -> str:
        """Return the command that trains a base on the documents, after which it reads them whole."""
        told = {"base": base, "probe": self.probe, "lsa": lsa}
        options = [f"--{name} {shlex.quote(str(value))}" for name, value in told.items() if value is not None]
        return f"simlte train {self.source} {' '.join(options)} --output my-model"

    def _encode(self, name: str, model: SentenceTransformer, command: str, verdict: Verdict | None = None) -> float:
        read = Truncation.of(model).add(text_lengths(model, self.texts))
        share = 1 - read.cut_tokens / max(1, read.tokens)
        began = time.perf_counter()
        vectors = encode_texts(model, self.texts, show_progress_bar=self.progress, bar_name=f"Encoding ({name})")
        self.encoded[name] = model, vectors
        seconds = time.perf_counter() - began
        self.add(
            Candidate(name, read.max_seq_length, share, command=command, verdict=verdict), unit_rows(vectors), seconds
        )
        return share

    def add_words(self) -> None:
        """Add the best model with a latent semantic analysis, such an analysis by itself, and TF-IDF."""
        plain = [each for each in self.candidates if _takes_analysis(self.encoded[each.name][0])]
        if plain:
            best, longest = self.best(plain), max(plain, key=lambda each: each.share)
            command = self._training(best.name.removesuffix(", whole"), lsa=DIMENSION)
            if best.command.startswith("simlte encode"):
                command = f"simlte convert {shlex.quote(best.name)} --lsa {self.source} --output my-model"
            own, latent, seconds = self._analysis(best.name)
            both = replace(best, name=f"{best.name} + LSA", command=command, verdict=None)
            self.add(both, np.hstack([own, latent]), seconds + len(self.texts) / best.documents_per_second)
            if longest is not best:
                _, latent, seconds = self._analysis(longest.name)
            self.add(Candidate("LSA by itself", longest.reads, longest.share), unit_rows(latent), seconds)
        began = time.perf_counter()
        words = fit_tfidf(self.texts).transform(self.texts)
        self.add(Candidate(TFIDF, None, 1.0), words, time.perf_counter() - began)

    def _analysis(self, name: str) -> tuple[np.ndarray, np.ndarray, float]:
        """Fit an analysis to the sample, for a model; give both parts of the vectors that it makes, and seconds."""
        model, vectors = self.encoded[name]
        began = time.perf_counter()
        analysis = LatentSemanticAnalysis.fit(model, self.texts, seed=self.seed, progress=self.progress)
        own, latent = np.split(lengthened(model, analysis, self.texts, vectors), [vectors.shape[1]], axis=1)
        return own, latent, time.perf_counter() - began


def _takes_analysis(model: SentenceTransformer) -> bool:
    """Return whether an analysis can be appended: there is none yet, and embeddings are not cut."""
    return model.truncate_dim is None and not isinstance(model[-1], LatentSemanticAnalysis)


def _verdict(
    name: str, model: SentenceTransformer, documents: Sequence[Document], seed: int, device: str | None, progress: bool
) -> Verdict | None:
    """Return the verdict on a model whose base is here and can be read alike; at the base's length, as in training."""
    base = trained_from(name)
    if base is None or local_folder(base) is None:
        return None
    before = load_model(base, device=device).model
    length = readable_length(before)
    if length not in (readable_length(model), chunk_length(model)):
        return None
    try:
        with reading_at_most(model, length):
            halves = compare_halves({base: before, name: model}, documents, seed=seed, progress=progress)
    except DataError as error:
        logger.warning("No verdict on %s: %s", name, error)
        return None
    return give_verdict(halves[base], halves[name], seed=seed)


def _shown(documents: Any, options: Mapping[str, Any]) -> str:
    """Write the documents, and how they are read, as they stand in a command."""
    places = documents if isinstance(documents, (list, tuple)) else [documents]
    named = places and len(places) < 10 and all(map(is_place, places))
    shown = [shlex.quote(os.fspath(each)) for each in places] if named else ["my_documents"]
    for name in ("text_column", "id_column"):
        if options[name] is not None:
            shown.append(f"--{name.replace('_', '-')} {shlex.quote(options[name])}")
    return " ".join(shown)
