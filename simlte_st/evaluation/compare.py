"""Which setting for these documents? Models and words side by side on a sample: what ``simlte compare`` does."""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.chunk_mean.backbone import WHOLE_DOCUMENTS
from simlte_st.chunk_mean.convert import can_read_in_chunks, chunk_length, read_in_chunks
from simlte_st.compat import readable_length
from simlte_st.config import configured
from simlte_st.data.config import ReadConfig
from simlte_st.data.document import Document
from simlte_st.data.documents import read_documents
from simlte_st.data.sources import is_place
from simlte_st.errors import DataError, ModelError
from simlte_st.evaluation.comparison import TFIDF, compare_halves
from simlte_st.evaluation.config import CompareConfig
from simlte_st.evaluation.evaluator import encode_texts, reading_at_most
from simlte_st.evaluation.few_shot import FewShotResult, few_shot_probe
from simlte_st.evaluation.probe import ProbeResult, Rows, fit_probe
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.evaluation.splits import (
    PROBE_LEAST,
    divide_rows,
    probe_rows,
    sample_documents,
    sample_rows,
    warned_once,
)
from simlte_st.evaluation.table import named_table
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
    from typing_extensions import Unpack

    from simlte_st.overrides import CompareOverrides

logger = logging.getLogger(__name__)

TOKENS = 200_000
"""Tokens of a sample: a model that reads all of them takes about a minute on two CPU cores."""

LEAST = 100
"""Fewest documents of a sample, however long they are."""

SHOTS, DRAWS = 5, 20
"""Labelled documents a class of a probe, and how often they are drawn."""


@dataclass(frozen=True)
class Candidate:
    """A setting and its measures.

    Attributes:
        name: Its name in the table.
        reads: Most tokens of a document that it reads; None for all.
        share: Share of the sample's tokens that it reads, 0 to 1.
        documents_per_second: Documents of the sample that it turned into vectors in a second, here.
        command: Command that makes its vectors of all documents, or the model that does; empty for words alone.
        verdict: Whether it is better than its base, if that is known and reads the same number of tokens.
        few_shot: Probes with five labelled documents a class.
        full: The probe with half of the labelled documents.
    """

    name: str
    reads: int | None
    share: float
    documents_per_second: float = 0.0
    command: str = ""
    verdict: Verdict | None = None
    few_shot: FewShotResult | None = None
    full: ProbeResult | None = None

    @property
    def score(self) -> float:
        """Macro-F1 of the probes with few labels, mean of the draws."""
        assert self.few_shot is not None
        return self.few_shot.macro_f1

    def to_dict(self, seed: int) -> dict[str, Any]:
        """Return it as JSON values; ``seed`` is that of the interval of its probes."""
        names = ("name", "reads", "share", "command", "documents_per_second")
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


@dataclass(frozen=True)
class Comparison:
    """Candidates on one sample of documents.

    Attributes:
        candidates: In the order of the table.
        recommended: Name of the recommended one.
        documents: Documents of the sample.
        tokens: Their tokens.
        labelled: Labelled documents of the sample that a probe could use.
        seed: Seed of sample, draws and intervals.
    """

    candidates: tuple[Candidate, ...]
    recommended: str
    documents: int
    tokens: int
    labelled: int = 0
    seed: int = 0

    def summary(self, width: int | None = None) -> str:
        """Return the table, what its numbers mean, and one command; ``width`` is the most columns of the table."""
        judged = any(each.verdict for each in self.candidates)
        probed = any(each.few_shot for each in self.candidates)
        header = ["setting", "reads", "of all", "docs/s", *["better"] * judged]
        header += [f"{SHOTS}-shot F1 [95%]", "all F1"] if probed else []
        notes = [
            f"A sample of {self.documents:,} documents, {self.tokens:,} tokens. Reads: most tokens read of a document; "
            "of all: their share of the sample; docs/s: measured here, while it was encoded."
        ]
        if judged:
            notes.append(
                "Better: how likely labels would call the model better than the base that it was trained from. It "
                "compares models that read the same number of tokens, and not others."
            )
        if probed:
            notes.append(
                f"F1: macro-F1 of probes that learn from {SHOTS} labelled documents a class ({DRAWS} draws, interval "
                f"over documents and draws), or from half of all {self.labelled:,}."
            )
        table = named_table(header, [each.row(judged, self.seed) for each in self.candidates], width)
        return "\n".join([table, "", *notes, "", self.advice()])

    def advice(self) -> str:
        """Return the recommendation with its reason and its command."""
        best = next(each for each in self.candidates if each.name == self.recommended)
        first = self.candidates[0]
        if best.few_shot is not None:
            why = "It has the best probe of the settings that a command makes."
            if best is not first and first.few_shot is not None:
                low, high = best.few_shot.interval(self.seed, base=first.few_shot)
                difference = 100 * (best.score - first.score)
                why += f" Against {first.name}: {difference:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]."
            words = [each for each in self.candidates if not each.command and each.score > best.score]
            why += "".join(f" {each.name} is better still: words alone tell most here." for each in words)
        elif best.verdict is not None and best.verdict.word == "helped":
            why = best.verdict.summary()
        else:
            why = (
                f"Without labels, the choice is by what is read: {best.share:.0%} of the tokens. Where documents are "
                "long, reading more of them helps more than anything else in benchmarks/results/models.md; a column "
                "of classes, folders or tags (probe=) allows a better choice."
            )
        return f"Recommended: {best.name}. {why}\n\n    {best.command}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        names = ("recommended", "documents", "tokens", "labelled", "seed")
        candidates = [each.to_dict(self.seed) for each in self.candidates]
        return {"candidates": candidates, **{name: getattr(self, name) for name in names}}


@configured(CompareConfig)
def compare(
    documents: Any,
    models: Sequence[str | os.PathLike[str]] = (),
    config: CompareConfig | None = None,
    **overrides: Unpack[CompareOverrides],
) -> Comparison:
    """Compare settings on a sample of documents: models as they are and reading whole documents, with LSA, and words.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` takes.
        models: The models; see :func:`~simlte_st.models.base.find_model`. By default the packaged all-MiniLM-L6-v2 and
            this package's own, those of them that are here or can be put together.
        config: The settings; None for the defaults.
        **overrides: Settings in place of the config's.

    Raises:
        DataError: The documents cannot be read, or too few have labels that a probe could use.
        ModelError: A model cannot be loaded.
    """
    made = CompareConfig.make(config, overrides)
    reader = read_documents(documents, label_column=made.probe, **made.values(ReadConfig))
    drawn = sample_documents(reader, made.sample, made.seed)
    loaded = _load(models, made.device)
    lengths = text_lengths(next(iter(loaded.values())), [document.text for document in drawn])
    if sum(lengths) > TOKENS and len(drawn) > LEAST:
        rows = sample_rows(len(drawn), max(LEAST, int(len(drawn) * TOKENS / sum(lengths))), made.seed)
        drawn, lengths = [drawn[row] for row in rows], [lengths[row] for row in rows]
    bench = _Bench(drawn, _in_command(documents, made), made)
    for name, model in loaded.items():
        bench.add_model(name, model)
    bench.add_words()
    labelled = 0 if bench.labels is None else len(bench.labels.rows)
    best = bench.best(bench.candidates).name
    return Comparison(tuple(bench.candidates), best, len(drawn), sum(lengths), labelled, made.seed)


def _load(models: Sequence[str | os.PathLike[str]], device: str | None) -> dict[str, SentenceTransformer]:
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
    return loaded


@dataclass(frozen=True)
class _Labels:
    """Rows and labels of the documents that a probe can use, and how they are divided."""

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
    """Measures candidates on one sample of documents; ``source`` names the documents in commands."""

    def __init__(self, documents: list[Document], source: str, config: CompareConfig) -> None:
        self.documents, self.texts = documents, [document.text for document in documents]
        self.labels = None if config.probe is None else _Labels.of(documents, config.probe, config.seed)
        self.source, self.config = source, config
        self.candidates: list[Candidate] = []
        self.encoded: dict[str, tuple[SentenceTransformer, np.ndarray]] = {}

    def best(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the best that a command makes: by the probe; without labels by the verdict, and what it reads."""
        made = [each for each in candidates if each.command]
        if self.labels is not None:
            return max(made, key=lambda each: each.score)
        return max(made, key=lambda each: (each.verdict is not None and each.verdict.word == "helped", each.share))

    def add(self, candidate: Candidate, vectors: Rows, seconds: float) -> None:
        """Add a candidate with the vectors of all documents of the sample, which took some seconds."""
        made = replace(candidate, documents_per_second=len(self.texts) / seconds)
        if self.labels is not None:
            few_shot, full = self.labels.probe(vectors)
            made = replace(made, few_shot=few_shot, full=full)
        self.candidates.append(made)

    def add_model(self, name: str, model: SentenceTransformer) -> None:
        """Add a model as it is and, where it truncates much, reading whole documents."""
        command = f"simlte encode {shlex.quote(name)} {self.source} --output vectors.parquet"
        share = self._encode(name, model, command, _verdict(name, model, self.documents, self.config))
        length = readable_length(model)
        if length is not None and share < 1 - CUT_SHARE and length < WHOLE_DOCUMENTS and can_read_in_chunks(model):
            self._encode(f"{name}, whole", read_in_chunks(model, WHOLE_DOCUMENTS), self._training(name))

    def _training(self, base: str, lsa: int | None = None) -> str:
        """Return the command that trains a base on the documents, after which it reads them whole."""
        values = {"base": base, "probe": self.config.probe, "lsa": lsa}
        options = [f"--{name} {shlex.quote(str(value))}" for name, value in values.items() if value is not None]
        return f"simlte train {self.source} {' '.join(options)} --output my-model"

    def _encode(self, name: str, model: SentenceTransformer, command: str, verdict: Verdict | None = None) -> float:
        read = Truncation.of(model).add(text_lengths(model, self.texts))
        share = 1 - read.cut_tokens / max(1, read.tokens)
        began = time.perf_counter()
        bar: dict[str, Any] = {"show_progress_bar": self.config.progress, "bar_name": f"Encoding ({name})"}
        vectors = encode_texts(model, self.texts, **bar)
        seconds = time.perf_counter() - began
        self.encoded[name] = model, vectors
        candidate = Candidate(name, read.max_seq_length, share, command=command, verdict=verdict)
        self.add(candidate, unit_rows(vectors), seconds)
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
        """Return both parts of the vectors of a model with an analysis fitted to the sample, and the seconds."""
        model, vectors = self.encoded[name]
        began = time.perf_counter()
        analysis = LatentSemanticAnalysis.fit(model, self.texts, seed=self.config.seed, progress=self.config.progress)
        own, latent = np.split(lengthened(model, analysis, self.texts, vectors), [vectors.shape[1]], axis=1)
        return own, latent, time.perf_counter() - began


def _takes_analysis(model: SentenceTransformer) -> bool:
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


def _in_command(documents: Any, config: CompareConfig) -> str:
    """Return the documents, and how they are read, as words of a command."""
    places = documents if isinstance(documents, (list, tuple)) else [documents]
    named = places and len(places) < 10 and all(map(is_place, places))
    words = [shlex.quote(os.fspath(each)) for each in places] if named else ["my_documents"]
    for name in ("text_column", "id_column"):
        if (value := getattr(config, name)) is not None:
            words.append(f"--{name.replace('_', '-')} {shlex.quote(value)}")
    return " ".join(words)
