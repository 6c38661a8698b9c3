"""Measure candidates for a comparison of models and settings on a sample of documents."""

from __future__ import annotations

import copy
import logging
import math
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from sentence_transformers import SentenceTransformer

from simlte_st.compat import readable_length
from simlte_st.errors import DataError, ModelError
from simlte_st.evaluation import splits
from simlte_st.evaluation.candidates import DRAWS, SHOTS, Candidate, header, pad_cells, recommend
from simlte_st.evaluation.comparison import TFIDF, fit_probes
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.probe import Rows
from simlte_st.evaluation.scores import tfidf_rows
from simlte_st.evaluation.verdict import MIN_DOCUMENTS
from simlte_st.extras import install_command
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.models.limits import CUT_SHARE, Truncation, text_lengths
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import DIMENSION, append_vectors, end_with_lsa
from simlte_st.models.names import OWN_MODELS, OWN_STATIC, PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.models.vectors import Floats, unit_rows
from simlte_st.modules import TokenTable
from simlte_st.modules.chunk_mean import can_read_in_chunks, to_chunk_mean
from simlte_st.progress import write_line
from simlte_st.reading.document import Document

logger = logging.getLogger(__name__)

SAMPLE_TOKENS = 200_000
"""Approximate sample size in tokens, which an encoder reads in about a minute on two CPU cores."""

ESTIMATE_TOKENS = 2048
"""Tokens to encode to estimate an encoder's speed."""

MIN_SAMPLE = 100
"""Minimum sample size in documents."""


def load_models(models: Sequence[str | os.PathLike[str]], device: str | None) -> dict[str, SentenceTransformer]:
    """Load models by name, static models first, and skip default models that cannot be loaded."""
    loaded: dict[str, SentenceTransformer] = {}
    names = [os.fspath(model) for model in models]
    for name in dict.fromkeys([OWN_STATIC, *(names or [PACKAGED_BASE, *OWN_MODELS])]):
        try:
            loaded[name] = load_model(name, device=device).model
        except ModelError as error:
            if name in names:
                raise
            logger.warning("Left out: %s", error)
    if not loaded:
        raise ModelError(f"There is no model to compare. Name one, or install one with: {install_command('demo')}")
    return dict(sorted(loaded.items(), key=lambda item: not is_static(item[1])))  # a stable sort


def shrink_sample(documents: list[Document], model: SentenceTransformer, seed: int) -> tuple[list[Document], int]:
    """Reduce documents to a sample of about :data:`SAMPLE_TOKENS` tokens; return it and its number of tokens."""
    lengths = text_lengths(model, [document.text for document in documents])
    if sum(lengths) > SAMPLE_TOKENS and len(documents) > MIN_SAMPLE:
        size = max(MIN_SAMPLE, int(len(documents) * SAMPLE_TOKENS / sum(lengths)))
        rows = splits.sample_labelled_first([bool(document.label) for document in documents], size, seed)
        documents, lengths = [documents[row] for row in rows], [lengths[row] for row in rows]
    return documents, sum(lengths)


def divide_labelled(documents: Sequence[Document], column: str, seed: int) -> tuple[list[int], list[int]]:
    """Divide the labelled documents into rows to train probes on and rows to score them on."""
    usable_rows = splits.probe_rows(documents)
    labels = [str(documents[row].label) for row in usable_rows]
    if len(usable_rows) < 2 * MIN_DOCUMENTS or len(set(labels)) < 2:
        raise DataError(
            f"probe={column!r}: a probe needs {2 * MIN_DOCUMENTS} documents in 2 or more classes of at least "
            f"{splits.MIN_CLASS_SIZE} each; the sample has {len(usable_rows)} in {len(set(labels))}. Label more "
            "documents, choose a column with fewer classes, or draw a larger sample."
        )
    train, test = splits.divide_rows([documents[row].text for row in usable_rows], labels, 0.5, seed)
    return [usable_rows[row] for row in train], [usable_rows[row] for row in test]


class Bench:
    """Measure candidates on a sample of documents; ``source`` names the documents in the suggested commands."""

    def __init__(
        self, documents: Sequence[Document], source: str, probe: str | None, seed: int, progress: bool
    ) -> None:
        self.texts = [document.text for document in documents]
        self.labels = [str(document.label) for document in documents]
        self.labelled_rows = None if probe is None else divide_labelled(documents, probe, seed)
        if self.labelled_rows is not None:
            train, test = ([self.labels[row] for row in rows] for rows in self.labelled_rows)
            splits.warn_of_classes(train, test, SHOTS)
        self.source, self.probe, self.seed, self.progress = source, probe, seed, progress
        self.candidates: list[Candidate] = []
        self.models: dict[str, SentenceTransformer] = {}
        self.vectors: dict[str, Floats] = {}

    def add_static(self, name: str, model: SentenceTransformer) -> None:
        """Add a static model, alone and with the latent semantic analysis that training would add."""
        self._encode(name, model, self._encode_command(name))
        if _accepts_lsa(model):
            folded_model = copy.deepcopy(model)
            end_with_lsa([folded_model], self.texts, DIMENSION, self.seed, self.progress)
            command = self._train_command(None if name == OWN_STATIC else name, static=True)
            self._encode(f"{name} + LSA", folded_model, command)

    def add_encoders(self, models: Mapping[str, SentenceTransformer], deadline: float) -> dict[str, float]:
        """Add encoders and, if they truncate much of the text, versions that read whole documents, in order of work.

        Returns:
            Estimated seconds of the candidates left out, by name: those that would not finish before ``deadline``, a
            time of :func:`time.monotonic`.
        """
        plans = {name: (model, self._encode_command(name)) for name, model in models.items()}
        for name, model in models.items():
            length, share = self._reading(model)
            if share < 1 - CUT_SHARE and (length or 0) < WHOLE_DOCUMENTS and can_read_in_chunks(model):
                plans[f"{name}, whole"] = to_chunk_mean(model, WHOLE_DOCUMENTS), self._train_command(base=name)
        lengths = {name: self._readable_lengths(model) for name, (model, _) in plans.items()}
        seconds = {name: self._estimate_seconds(model, lengths[name]) for name, (model, _) in plans.items()}
        # Tokens times weights order encoders as their times do, but in the same way in each run.
        weights = {name: sum(tensor.numel() for tensor in model.parameters()) for name, (model, _) in plans.items()}
        left_out = {}
        for name in sorted(plans, key=lambda name: lengths[name].sum() * weights[name]):
            if time.monotonic() + seconds[name] > deadline:
                left_out[name] = seconds[name]
            else:
                self._encode(name, *plans[name], f", about {seconds[name]:.0f} s")
        return left_out

    def add_words(self) -> None:
        """Add TF-IDF."""
        start = time.perf_counter()
        rows = tfidf_rows(self.texts)
        self._add(Candidate(TFIDF, None, 1.0), rows, time.perf_counter() - start)

    def add_best_with_lsa(self) -> None:
        """Add the best encoder combined with latent semantic analysis."""
        encoders = [candidate for candidate in self.candidates if candidate.command and not candidate.static]
        encoders = [encoder for encoder in encoders if _accepts_lsa(self.models[encoder.name])]
        if encoders:
            best = recommend(encoders, False, self.seed)
            command = self._train_command(base=best.name.removesuffix(", whole"), lsa=DIMENSION)
            if best.command.startswith("simlte encode"):
                command = f"simlte convert {shlex.quote(best.name)} --lsa {self.source} --output my-model"
            model, start = self.models[best.name], time.perf_counter()
            end_with_lsa([model], self.texts, DIMENSION, self.seed, self.progress)
            vectors = append_vectors(model, self.texts, self.vectors[best.name])
            seconds = time.perf_counter() - start + len(self.texts) / best.documents_per_second
            self._add(replace(best, name=f"{best.name} + LSA", command=command), vectors, seconds)

    def _encode_command(self, name: str) -> str:
        return f"simlte encode {shlex.quote(name)} {self.source} --output vectors.parquet"

    def _train_command(self, base: str | None, lsa: int | None = None, static: bool = False) -> str:
        """Return the command that trains a base on the documents."""
        settings = {"base": base, "probe": self.probe, "lsa": lsa}
        options = ["--static"] * static
        options += [f"--{name} {shlex.quote(str(setting))}" for name, setting in settings.items() if setting]
        return f"simlte train {' '.join([self.source, *options])} --output my-model"

    def _reading(self, model: SentenceTransformer) -> tuple[int | None, float]:
        """Return a model's length limit in tokens and the share of the sample's tokens that it reads."""
        truncation = Truncation.of(model).add(text_lengths(model, self.texts))
        return truncation.max_seq_length, 1 - truncation.cut_tokens / max(1, truncation.tokens)

    def _readable_lengths(self, model: SentenceTransformer) -> Floats:
        """Return the number of tokens that a model reads of each text."""
        limit = readable_length(model)
        return np.minimum(text_lengths(model, self.texts), math.inf if limit is None else limit)

    def _estimate_seconds(self, model: SentenceTransformer, lengths: Floats) -> float:
        """Estimate the time to encode all texts, of these lengths, from that for a few texts of median length."""
        order, middle = np.argsort(lengths, kind="stable"), len(lengths) // 2
        rows = order[middle : middle + max(1, int(ESTIMATE_TOKENS // max(1, lengths[order[middle]])))]
        encode_texts(model, ["a"], show_progress_bar=False)  # the first call is slower
        start = time.perf_counter()
        encode_texts(model, [self.texts[row] for row in rows], show_progress_bar=False)
        return float((time.perf_counter() - start) * lengths.sum() / max(1, lengths[rows].sum()))

    def _encode(self, name: str, model: SentenceTransformer, command: str, note: str = "") -> None:
        limit, share = self._reading(model)
        start = time.perf_counter()
        bar_name = f"Encoding ({name}{note})"
        vectors = encode_texts(model, self.texts, show_progress_bar=self.progress, bar_name=bar_name)
        seconds = time.perf_counter() - start
        self.models[name], self.vectors[name] = model, vectors
        self._add(Candidate(name, limit, share, command=command, static=is_static(model)), unit_rows(vectors), seconds)

    def _add(self, candidate: Candidate, vectors: Rows, seconds: float) -> None:
        """Score a candidate by its vectors of the sample and its encoding time, add it, and show its row."""
        probes = None
        if self.labelled_rows is not None:
            train_x, test_x = (vectors[rows] for rows in self.labelled_rows)
            train_y, test_y = ([self.labels[row] for row in rows] for rows in self.labelled_rows)
            probes = fit_probes(
                train_x, train_y, test_x, test_y,
                name=candidate.name, shots=SHOTS, draws=DRAWS, seed=self.seed, progress=self.progress,
            )  # fmt: skip
        candidate = replace(candidate, documents_per_second=len(self.texts) / seconds, probes=probes)
        if self.progress:
            if not self.candidates:
                write_line(pad_cells(header(probes is not None)))
            write_line(pad_cells(candidate.row(self.seed)))
        self.candidates.append(candidate)


def _accepts_lsa(model: SentenceTransformer) -> bool:
    """Return whether a latent semantic analysis can be appended to a model."""
    return model.truncate_dim is None and not isinstance(model[-1], TokenTable)
