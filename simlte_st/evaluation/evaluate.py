"""Models measured on a user's documents, with labels or without: what ``simlte evaluate`` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simlte_st.checks import check_seed
from simlte_st.compat import readable_length
from simlte_st.data.document import Document
from simlte_st.data.documents import list_documents
from simlte_st.data.segmenters import Segmenter
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.comparison import HalvesComparison, ProbeComparison, compare_halves, compare_probes
from simlte_st.evaluation.probe import Head
from simlte_st.evaluation.splits import sample_documents, split_by_label
from simlte_st.evaluation.structure import NEIGHBOURS
from simlte_st.evaluation.table import comparison_table
from simlte_st.evaluation.verdict import Verdict, give_verdict, why_not_compared
from simlte_st.models.loading import check_symmetric
from simlte_st.models.truncation import Truncation, text_lengths

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TEST_SHARE = 0.3
"""Share of labelled documents on which probes are scored, where no others are given for it."""


@dataclass(frozen=True, slots=True)
class EvaluationDocuments:
    """Documents to measure models on, divided.

    Attributes:
        halved: Those that are cut into halves.
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
        """Divide documents. Without labels only those that are cut into halves are kept in memory.

        Args:
            documents: What :func:`~simlte_st.data.read_documents` takes, or what it gives for a source whose column of
                labels has to be named.
            test_data: Labelled documents to score probes on; None for a part of ``documents``.
            labelled: Whether the documents have labels, for probes.
            halves: Documents at most that are cut into halves.
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
    """What was measured.

    Attributes:
        halves: What the halves of documents say, by model, TF-IDF first.
        probes: What labels say, likewise; empty without labels.
        verdicts: Whether a model is better than its base, by model; for those whose base is known and reads as many
            tokens as they do.
        bases: The bases that are known, by model.
        lengths: Tokens that a model reads of a text at most; None for all of them.
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
        """Say it: the verdicts, the tables, and what their numbers mean.

        Args:
            width: Columns that a line of a table shall have at most; None for any number.
        """
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
        """Return the numbers as JSON values, by model."""
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


def evaluate_models(
    models: Mapping[str, SentenceTransformer],
    documents: EvaluationDocuments,
    *,
    bases: Mapping[str, str] | None = None,
    shots: int = 5,
    draws: int = 10,
    head: Head = "mlp",
    max_seq_length: int | None = None,
    segmenter: str | Segmenter = "punkt",
    batch_size: int = 32,
    seed: int = 0,
    progress: bool = False,
) -> Evaluation:
    """Measure models beside TF-IDF: neighbours on which both halves of a document agree, and probes where labels are.

    Args:
        models: The models by name, bases among them.
        documents: What to measure them on; the models should not have been trained on it.
        bases: With which model each is compared, by the names in ``models``; those that have none get no verdict, nor
            do those that read another number of tokens.
        shots: Examples a class of the few-shot probe.
        draws: Its repetitions.
        head: Of the probes: ``"mlp"`` (the papers') or ``"logistic"``.
        max_seq_length: Tokens that the probes read of a text, special tokens included; None: as many as each model.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        batch_size: Texts encoded at once.
        seed: Decides splits, draws, initial weights and intervals.
        progress: Show progress bars.

    Raises:
        DataError: Fewer than three documents can be cut into halves.
        ConfigurationError: A setting is out of its range.
    """
    check_seed(seed)
    settings: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "progress": progress}
    for name, model in models.items():
        check_symmetric(model, name)
    halves = compare_halves(models, documents.halved, segmenter=segmenter, **settings)
    probes: dict[str, ProbeComparison] = {}
    truncations: dict[str, Truncation] = {}
    if documents.train:
        options: dict[str, Any] = {"shots": shots, "draws": draws, "head": head, "max_seq_length": max_seq_length}
        probes = compare_probes(models, documents.train, documents.test, **options, **settings)
        texts = [document.text for document in (*documents.train, *documents.test)]
        for name, model in models.items():
            truncation = Truncation.of(model, max_seq_length=max_seq_length)
            truncations[name] = truncation.add(text_lengths(model, texts))
    bases = dict(bases or {})
    verdicts = {}
    for name, base in bases.items():
        if why_not_compared(halves[base], halves[name]) is None:
            few_shot = (probes[base].few_shot, probes[name].few_shot) if probes else None
            verdicts[name] = give_verdict(halves[base], halves[name], few_shot, seed)
    return Evaluation(
        halves=halves,
        probes=probes,
        verdicts=verdicts,
        bases=bases,
        lengths={name: readable_length(model) for name, model in models.items()},
        truncations=truncations,
        shots=shots,
        draws=draws,
        train_documents=len(documents.train),
    )
