"""Evaluate models on the user's documents, with or without labels: ``simlte evaluate``."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simlte_st.arguments import Count, Plural, Seed, check_arguments
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.splits import probe_rows, sample_documents, split_by_label
from simlte_st.models.names import check_model, local_folder, training_run
from simlte_st.reading.documents import Document, DocumentReader, DocumentSource, ReadReport, read_documents
from simlte_st.words.sentences import Segmenter

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from simlte_st.evaluation.comparison import HalvesComparison, ProbeComparison
    from simlte_st.evaluation.verdict import Verdict

logger = logging.getLogger(__name__)

TEST_SHARE = 0.3
"""Fraction of the labelled documents held out to score probes, if no test data is given."""

SHOTS, DRAWS = 5, 10
"""Default number of labelled documents per class in a few-shot probe, and of draws."""

_IN_CHUNKS = ", in chunks"
"""Suffix for the name of a base that is made to read in chunks, to match the model trained from it."""


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation.

    Attributes:
        halves: Results without labels, by model name, TF-IDF first.
        probes: Results with labels, by model name, TF-IDF first; empty without labels.
        verdicts: Verdicts on whether a model is better than its base, by model name, for models whose base is known and
            comparable.
        bases: Names of the known bases, by model name.
        shots: Number of labelled documents per class in a few-shot probe.
        draws: Number of few-shot probes.
        train_documents: Number of documents the full probe is trained on.
        reading: Report on the documents read and skipped.
    """

    halves: Mapping[str, HalvesComparison]
    probes: Mapping[str, ProbeComparison]
    verdicts: Mapping[str, Verdict]
    bases: Mapping[str, str]
    shots: int
    draws: int
    train_documents: int
    reading: ReadReport

    def summary(self) -> str:
        """Return the verdicts and the tables, and explain the numbers."""
        from simlte_st.evaluation.comparison import TFIDF, comparison_table
        from simlte_st.evaluation.halves import NEIGHBOURS
        from simlte_st.evaluation.verdict import why_incomparable

        lines = []
        for name, base in self.bases.items():
            reason = why_incomparable(self.halves[base], self.halves[name])
            lines.append(f"{name}, against {base}: {reason or self.verdicts[name].summary()}\n")
        reads = {name: half.reads for name, half in self.halves.items() if name != TFIDF}
        limits = "; ".join(f"{name}: {'all' if limit is None else f'{limit:,}'}" for name, limit in reads.items())
        lines += [
            comparison_table(self.halves, self.probes, self.shots),
            "",
            f"All numbers are percentages. Same neighbours: share of the {NEIGHBOURS} nearest documents that both "
            "halves of a document have in common. Split-half: how often one half finds the other first.",
            f"Maximum tokens read per text: {limits}. The halves are short enough for the model with the lowest limit.",
        ]
        if self.probes:
            lines.append(
                f"{self.shots}-shot: probes on {self.shots} labelled documents per class, mean ± standard deviation of "
                f"{self.draws} draws; full: on all {self.train_documents:,}. F1 is macro-F1. TF-IDF reads whole texts."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, dict[str, object]]:
        """Return the results by model name, as JSON values."""
        halves = self.halves.items()
        results = {name: dict[str, object](halves=half.metrics(), max_seq_length=half.reads) for name, half in halves}
        for name, probe in self.probes.items():
            results[name]["probes"] = probe.metrics()
        for name, verdict in self.verdicts.items():
            results[name]["verdict"] = verdict.to_dict()
        return results


@check_arguments
def evaluate_models(
    models: Sequence[str | os.PathLike[str]] | Mapping[str, Any],
    source: DocumentSource,
    *,
    label: str | None = None,
    test_data: DocumentSource | None = None,
    base: str | None = None,
    halves: Plural = 1000,
    shots: Count = SHOTS,
    draws: Count = DRAWS,
    max_seq_length: Count | None = None,
    segmenter: str | Segmenter = "punkt",
    batch_size: Count = 32,
    device: str | None = None,
    seed: Seed = 0,
    progress: bool = True,
) -> Evaluation:
    """Evaluate models with or without labels, and compare them with TF-IDF.

    Without labels, it measures whether both halves of a document have the same nearest documents, and whether one half
    finds the other. With ``label=``, it also measures the accuracy of classifiers trained on the embeddings (probes),
    with a few examples per class and with all of them. If a model's base is known, a verdict says whether the model is
    better than its base.

    Args:
        models: Folders or names of models, or loaded models by name.
        source: Documents that the models were not trained on: anything :func:`~simlte_st.data.read_documents` takes or
            returns.
        label: Column of classes for the probes (default: no probes). Documents without a class are skipped.
        test_data: Labelled documents to score the probes on (default: 30% of ``source=``).
        base: Model to compare every model with (default: each model's own base, if it is on this machine).
        halves: Maximum number of documents to split into halves.
        shots: Number of labelled documents per class in a few-shot probe.
        draws: Number of few-shot probes, each trained on a different random draw of documents.
        max_seq_length: Maximum number of tokens to read per text in the probes (default: each model's own limit).
        segmenter: Sentence splitter: punkt, or a callable.
        batch_size: Batch size for encoding.
        device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available).
        seed: Random seed of the samples, the draws and the intervals.
        progress: Show progress bars.

    Raises:
        DataError: The documents cannot be read, none has a label, or fewer than three can be split.
        ConfigurationError: A probe option was given without ``label=``.
        ModelError: A model cannot be loaded.

    Example:
        ::

            evaluation = evaluate_models(["my-model"], "new_documents.jsonl", label="topic")
            print(evaluation.summary())
    """
    if label is None and not (test_data is None and max_seq_length is None and (shots, draws) == (SHOTS, DRAWS)):
        raise ConfigurationError("test_data=, max_seq_length=, shots= and draws= need label=, the column of classes.")
    if not isinstance(models, Mapping):
        for name in (*models, *filter(None, [base])):
            check_model(name)
    reader = _open_reader(source, label)
    train, test = list[Document](), list[Document]()
    if label is None:
        sample = sample_documents(reader, halves, seed)
    else:
        documents = list(reader)
        sample = sample_documents(documents, halves, seed)
        if test_data is None:
            train, test = split_by_label(_select_labelled(documents, 2), TEST_SHARE, seed)
        else:
            train, test = _select_labelled(documents), _select_labelled(list(_open_reader(test_data, label)))
    from simlte_st.evaluation.comparison import TFIDF, compare_halves, compare_probes
    from simlte_st.evaluation.verdict import give_verdict, why_incomparable

    if isinstance(models, Mapping):
        loaded = dict(models)
        bases = {} if base is None else {name: base for name in loaded if name != base}
    else:
        loaded, bases = _load_with_bases([os.fspath(name) for name in models], base, device)
    results = compare_halves(loaded, sample, segmenter=segmenter, batch_size=batch_size, seed=seed, progress=progress)
    probes: dict[str, ProbeComparison] = {}
    if train:
        probes = compare_probes(
            loaded, train, test, shots=shots, draws=draws, max_seq_length=max_seq_length, batch_size=batch_size,
            seed=seed, progress=progress,
        )  # fmt: skip
    verdicts = {}
    for name, model_base in bases.items():
        if why_incomparable(results[model_base], results[name]) is None:
            few_shot = (probes[model_base].few_shot, probes[name].few_shot) if probes else None
            change = _describe_change(name, model_base, loaded)
            tfidf = results[TFIDF], probes[TFIDF].few_shot if probes else None
            verdicts[name] = give_verdict(results[model_base], results[name], few_shot, seed, change, tfidf)
    return Evaluation(
        results, probes, verdicts, bases, shots=shots, draws=draws, train_documents=len(train), reading=reader.report
    )


def _open_reader(source: DocumentSource, label: str | None) -> DocumentReader:
    reader = read_documents(source)
    return reader if label is None else reader.with_options(label_column=label)


def _select_labelled(documents: Sequence[Document], min_class_size: int = 1) -> list[Document]:
    """Return the documents in classes of ``min_class_size`` or more, and warn about those skipped."""
    rows = probe_rows(documents, min_class_size)
    if not rows:
        raise DataError(f"None of the {len(documents):,} documents has a label that a probe can use: check label=.")
    if len(rows) < len(documents):
        reason = "have no label" + " or are alone in their class" * (min_class_size > 1)
        logger.warning("%d of %d documents %s; probes skip them.", len(documents) - len(rows), len(documents), reason)
    return [documents[row] for row in rows]


def _load_with_bases(
    names: Sequence[str], base: str | None, device: str | None
) -> tuple[dict[str, SentenceTransformer], dict[str, str]]:
    """Load models and their bases. If a model reads in chunks, its base is made to do the same."""
    from simlte_st.compat import readable_length
    from simlte_st.models.loading import load_model
    from simlte_st.modules.chunk_mean import can_read_in_chunks, chunk_length, to_chunk_mean

    bases: dict[str, str] = {}
    for name in names:
        model_base = training_run(name).get("base") if base is None else base
        if base is None and model_base and local_folder(model_base) is None:  # never download what a file names
            message = "%s was trained from %s, which is not on this machine. For a verdict, name it with base=."
            logger.warning(message, name, model_base)
        elif model_base is not None and name != base:
            bases[name] = model_base
    loaded = {name: load_model(name, device=device).model for name in dict.fromkeys([*bases.values(), *names])}
    in_chunks = {}
    for name, model_base in bases.items():
        model, base_model = loaded[name], loaded[model_base]
        length, reads = chunk_length(model), model.max_seq_length
        if length and reads and length == readable_length(base_model) and can_read_in_chunks(base_model):
            bases[name] = model_base + _IN_CHUNKS
            in_chunks[bases[name]] = to_chunk_mean(base_model, reads)
    return in_chunks | {name: loaded[name] for name in loaded if name in (*names, *bases.values())}, bases


def _describe_change(name: str, base: str, models: Mapping[str, SentenceTransformer]) -> str:
    """Describe how a model differs from the base it was trained from; empty if ``base`` is a different model."""
    run = training_run(name)
    if run.get("base") != base.removesuffix(_IN_CHUNKS):
        return ""
    # Encoders keep their latent semantic analysis in a table; in static models it is folded into the vectors.
    table, base_table = (getattr(models[key][-1], "table", None) for key in (name, base))
    if table is None and base_table is None:
        has_changed = bool(run.get("lsa"))
    else:
        has_changed = table is None or base_table is None or not table.equal(base_table)
    analysis = f"{'' if run.get('lsa') else 'removing '}the latent semantic analysis"
    return " and ".join(["training"] * (run.get("kept") != "base") + [analysis] * has_changed)
