"""Models measured on a user's documents, with labels or without: what ``simlte evaluate`` does."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simlte_st.chunk_mean.convert import can_read_in_chunks, chunk_length, read_in_chunks
from simlte_st.compat import readable_length
from simlte_st.config import configured
from simlte_st.data.document import Document
from simlte_st.data.documents import list_documents
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.comparison import (
    HalvesComparison,
    ProbeComparison,
    compare_halves,
    compare_probes,
    comparison_table,
)
from simlte_st.evaluation.config import EvaluateConfig
from simlte_st.evaluation.splits import sample_documents, split_by_label
from simlte_st.evaluation.structure import NEIGHBOURS
from simlte_st.evaluation.verdict import Verdict, give_verdict, why_not_compared
from simlte_st.models.loading import load_model, side_of
from simlte_st.models.names import local_folder, trained_from
from simlte_st.models.truncation import Truncation, text_lengths

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

    from simlte_st.overrides import EvaluateOverrides

logger = logging.getLogger(__name__)

TEST_SHARE = 0.3
"""Share of the labelled documents that probes are scored on, if no others are given for it."""


@dataclass(frozen=True, slots=True)
class EvaluationDocuments:
    """Documents to measure models on, divided.

    Attributes:
        halved: Documents to split into halves.
        train: Labelled documents that probes learn from; empty where there are no labels.
        test: Labelled documents that probes are scored on.
    """

    halved: list[Document]
    train: list[Document] = field(default_factory=list)
    test: list[Document] = field(default_factory=list)

    @classmethod
    def divide(
        cls, documents: Any, test_data: Any = None, *, labelled: bool = False, halves: int = 1000, seed: int = 0
    ) -> EvaluationDocuments:
        """Divide documents. Without labels, memory holds only those to split into halves.

        Args:
            documents: What :func:`~simlte_st.data.read_documents` takes or returns.
            test_data: Labelled documents to score probes on; None for a part of ``documents``.
            labelled: Whether the documents have labels, for probes.
            halves: Most documents to split into halves.
            seed: Decides which.

        Raises:
            DataError: A document has no label, or a class only one document.
            ConfigurationError: ``test_data`` without labels, or ``halves`` below 2.
        """
        if not labelled:
            if test_data is not None:
                raise ConfigurationError("test_data= is for probes: name the column of the labels with label_column=.")
            return cls(sample_documents(documents, halves, seed))
        read = list_documents(documents)
        if test_data is None:
            train, test = split_by_label(read, TEST_SHARE, seed)
        else:
            train, test = read, list_documents(test_data)
        return cls(sample_documents(read, halves, seed), train, test)


@dataclass(frozen=True)
class Evaluation:
    """Measures of models.

    Attributes:
        halves: Results without labels, by model, TF-IDF first.
        probes: Results with labels, likewise; empty without labels.
        verdicts: Whether a model is better than its base, by model, where the base is known and reads the same number
            of tokens.
        bases: The bases that are known, by model.
        lengths: Most tokens that a model reads of a text; None for all of them.
        truncations: How much each model reads of the texts of the probes.
        shots: Examples a class of the few-shot probe.
        draws: Its repetitions.
        train_documents: Documents that the full probe learns from.
    """

    halves: Mapping[str, HalvesComparison]
    probes: Mapping[str, ProbeComparison]
    verdicts: Mapping[str, Verdict]
    bases: Mapping[str, str]
    lengths: Mapping[str, int | None]
    truncations: Mapping[str, Truncation]
    shots: int
    draws: int
    train_documents: int

    def summary(self, width: int | None = None) -> str:
        """Return the verdicts, the tables, and what their numbers mean; ``width`` is the most columns of a table."""
        lines = []
        for name, base in self.bases.items():
            refusal = why_not_compared(self.halves[base], self.halves[name])
            lines.append(f"{name}, against {base}: {refusal or self.verdicts[name].summary()}\n")
        lines += [comparison_table(self.halves, self.probes, self.shots, width), ""]
        read = [
            f"{name} {'any number of' if most is None else f'{most:,}'} tokens" for name, most in self.lengths.items()
        ]
        lines += [
            f"All numbers are percentages. Same neighbours: on how many of its {NEIGHBOURS} nearest documents do both "
            "halves of a document agree? Split-half: does one half find the other?",
            f"The models read at most: {', '.join(read)}. The halves fit the one that reads least.",
        ]
        if self.probes:
            lines += [
                f"{self.shots}-shot: probes that learn from {self.shots} labelled documents a class, mean ± deviation "
                f"of {self.draws} draws; full: from all {self.train_documents:,}. F1 is macro-F1. TF-IDF reads all "
                "words.",
                *(counted.summary(f"For the probes {name}") for name, counted in self.truncations.items()),
                *dict.fromkeys(counted.advice for counted in self.truncations.values() if counted.advice),
            ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by model, as JSON values."""
        results: dict[str, dict[str, Any]] = {name: {"halves": each.metrics()} for name, each in self.halves.items()}
        for name, probe in self.probes.items():
            results[name]["probes"] = probe.metrics()
        for name, truncation in self.truncations.items():
            results[name]["truncation"] = truncation.to_dict()
        for name, verdict in self.verdicts.items():
            results[name]["verdict"] = verdict.to_dict()
        for name, length in self.lengths.items():
            results[name]["max_seq_length"] = length
        return results


def load_with_bases(
    names: Sequence[str], base: str | None = None, device: str | None = None
) -> tuple[dict[str, SentenceTransformer], dict[str, str]]:
    """Load models and their bases, those of models that read in chunks doing so too; and name the base of each.

    Args:
        names: Folders or names of the models.
        base: Model to compare all with; None for the one that each was trained from, if it is here.
        device: Where the models compute.
    """
    if base is not None:
        bases = {name: base for name in names if name != base}
    else:
        bases = {name: origin for name in names if (origin := trained_from(name)) is not None}
    for name, origin in [*bases.items()]:
        if base is None and local_folder(origin) is None:  # nothing is fetched because a file names it
            logger.warning("%s was trained from %s, which is not here: no verdict without base=.", name, origin)
            del bases[name]
    wanted = dict.fromkeys([*bases.values(), *names])
    loaded = {name: load_model(name, device=device).model for name in wanted}
    alike = {}
    for name, origin in bases.items():
        length, reads = chunk_length(loaded[name]), loaded[name].max_seq_length
        if length and reads and length == readable_length(loaded[origin]) and can_read_in_chunks(loaded[origin]):
            bases[name] = f"{origin}, in chunks"
            alike[bases[name]] = read_in_chunks(loaded[origin], reads)
    return {**alike, **{name: loaded[name] for name in loaded if name in (*names, *bases.values())}}, bases


@configured(EvaluateConfig)
def evaluate_models(
    models: Mapping[str, SentenceTransformer],
    documents: EvaluationDocuments,
    config: EvaluateConfig | None = None,
    *,
    bases: Mapping[str, str] | None = None,
    **overrides: Unpack[EvaluateOverrides],
) -> Evaluation:
    """Measure models beside TF-IDF: do both halves of a document have the same neighbours; and probes, with labels.

    Args:
        models: The models by name, bases among them.
        documents: What to measure them on; the models should not have been trained on it.
        config: The settings; None for the defaults.
        bases: Base of each model, by the names in ``models``. Models without one, or that read another number of
            tokens than it, get no verdict.
        **overrides: Settings in place of the config's.

    Raises:
        DataError: Fewer than three documents can be split.
        ConfigurationError: A setting is out of its range.
    """
    made = EvaluateConfig.make(config, overrides)
    models = {name: side_of(model, "document") for name, model in models.items()}
    common: dict[str, Any] = {name: getattr(made, name) for name in ("segmenter", "batch_size", "seed", "progress")}
    halves = compare_halves(models, documents.halved, **common)
    probes: dict[str, ProbeComparison] = {}
    truncations: dict[str, Truncation] = {}
    if documents.train:
        probes = compare_probes(models, documents.train, documents.test, made)
        texts = [document.text for document in (*documents.train, *documents.test)]
        for name, model in models.items():
            truncation = Truncation.of(model, max_seq_length=made.max_seq_length)
            truncations[name] = truncation.add(text_lengths(model, texts))
    verdicts = {}
    for name, base in (bases or {}).items():
        if why_not_compared(halves[base], halves[name]) is None:
            few_shot = (probes[base].few_shot, probes[name].few_shot) if probes else None
            verdicts[name] = give_verdict(halves[base], halves[name], few_shot, made.seed)
    return Evaluation(
        halves=halves,
        probes=probes,
        verdicts=verdicts,
        bases=dict(bases or {}),
        lengths={name: readable_length(model) for name, model in models.items()},
        truncations=truncations,
        shots=made.shots,
        draws=made.draws,
        train_documents=len(documents.train),
    )
