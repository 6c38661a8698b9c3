"""Decide whether training helped, from the documents alone or also from labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from simlte_st.errors import DataError, format_count
from simlte_st.evaluation.scores import bootstrap_interval
from simlte_st.evaluation.table import in_interval, markdown_table
from simlte_st.files import read_json

if TYPE_CHECKING:
    from simlte_st.evaluation.comparison import HalvesComparison
    from simlte_st.evaluation.probe import FewShotResult

Word = Literal["helped", "hurt", "no clear difference", "too few documents"]

RECORD_FILE = Path(__file__).with_name("verdict_record.json")
"""The verdict's regression and its track record on unseen runs, written by ``python -m benchmarks.bank.page``."""

MIN_DOCUMENTS = 30
"""Minimum number of documents for a verdict, chosen in ``benchmarks/results/verdict.md``."""

LIKELY = 0.7
"""Minimum probability for the verdict "helped"."""

NO_RECORD = "This probability was fitted to trained models and their bases, not to other kinds of differences."
"""Caveat for comparisons other than that of a trained model with its base."""

NOT_COUNTED = "Rows with * do not count: in static models, almost any training changes them, whether it helps or not."
"""Footnote of the table of measures."""

MAX_ERRORS = 10.0
"""Largest absolute difference in standard errors; larger ones are clipped."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Paired difference between two models in one measure.

    Attributes:
        base: Mean score of the base.
        model: Mean score of the model.
        mean: Mean difference, model minus base.
        low: Lower end of the 95% bootstrap interval of ``mean``.
        high: Upper end of that interval.
    """

    base: float
    model: float
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, base: ArrayLike, model: ArrayLike, seed: int = 0) -> Difference:
        """Return the difference between scores that are paired by document or by draw."""
        before, after = np.asarray(base, dtype=np.float64), np.asarray(model, dtype=np.float64)
        low, high = bootstrap_interval(after - before, seed=seed)
        return cls(float(before.mean()), float(after.mean()), float((after - before).mean()), low, high)

    @property
    def sign(self) -> int:
        """1 if the interval is above 0, -1 if it is below 0, otherwise 0."""
        return int(self.low > 0) - int(self.high < 0)

    def in_points(self) -> list[str]:
        """Return the base's mean, the model's mean, and the difference with its interval, in percent."""
        difference = in_interval(100 * self.mean, 100 * self.low, 100 * self.high)
        return [f"{100 * self.base:.1f}", f"{100 * self.model:.1f}", difference]


def in_errors(mean: float, low: float, high: float) -> float:
    """Return a mean difference in standard errors, clipped to [-10, 10]."""
    error = (high - low) / (2 * 1.96)
    return 0.0 if error <= 0 else float(np.clip(mean / error, -MAX_ERRORS, MAX_ERRORS))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on whether a model is better than its base.

    Without labels, the verdict cannot take into account what the vectors will be used for. Both models must read the
    same number of tokens, because agreement rises with the number of tokens read.

    Attributes:
        structure: Agreement between the halves of held-out documents on their neighbours, paired by document
            (:func:`~simlte_st.evaluation.structure_agreement`).
        words: Agreement between the neighbours of one half and those of the other half by words, paired by document.
        split_half: Reciprocal rank of the other half of a document, paired by document
            (:func:`~simlte_st.evaluation.split_half_retrieval`).
        documents: Number of documents.
        probe: Macro-F1 of probes on a few labelled documents per class, with an interval over documents and draws; None
            without labels.
        scored: Number of labelled documents on which the probes were scored.
        similarities: Agreement between the halves on their similarities to other documents
            (:func:`~simlte_st.evaluation.halves.similarity_agreement`), for static models, which have their own
            regression and record; None for encoders.
        change: The change that led from the base to the model, such as ``"training"``; empty if unknown.
        tfidf: Mean scores of TF-IDF on the same documents, by attribute (``structure``, ``split_half``, ``probe``).
    """

    structure: Difference
    words: Difference
    split_half: Difference
    documents: int
    probe: Difference | None = None
    scored: int = 0
    similarities: Difference | None = None
    change: str = "training"
    tfidf: Mapping[str, float] = field(default_factory=dict)

    @property
    def probability(self) -> float:
        """Probability that labels would call the model better, estimated from documents alone.

        It comes from a logistic regression on three differences in standard errors, fitted to the labels of our
        benchmark (``benchmarks/results/verdict.md``). For static models, the regression uses only the difference in
        similarities, in percentage points, because almost any training raises the other measures.
        """
        if self.similarities is not None:
            return predict_probability([100 * self.similarities.mean], static=True)
        measures = self.structure, self.words, self.split_half
        return predict_probability([in_errors(measure.mean, measure.low, measure.high) for measure in measures])

    @property
    def signs(self) -> set[int]:
        """The signs given by documents and by the probe: 1 if the model is better, -1 if it is worse, otherwise 0.

        By its documents, a model is better if :attr:`probability` is at least :data:`LIKELY`, and worse if the halves
        of a document clearly agree on fewer neighbours (for static models: agree less on similarities).
        """
        documents = 1 if self.probability >= LIKELY else min((self.similarities or self.structure).sign, 0)
        return {documents, 0 if self.probe is None or self.scored < MIN_DOCUMENTS else self.probe.sign}

    @property
    def word(self) -> Word:
        """The verdict from documents and probe; ``"no clear difference"`` if the two contradict each other."""
        if self.documents < MIN_DOCUMENTS:
            return "too few documents"
        if self.signs in ({1, -1}, {0}):
            return "no clear difference"
        return "helped" if 1 in self.signs else "hurt"

    def summary(self) -> str:
        """Return the verdict as text."""
        differences = (self.structure, self.words, self.split_half, self.similarities, self.probe)
        if all(difference is None or difference.low == difference.high == 0 for difference in differences):
            return "The model and its base give the same results on these documents."
        subject = f"{self.change.capitalize()} {self.word}: the" if self.change else "The"
        whether = f"whether {self.change} helped" if self.change else "whether the model is better than its base"
        minimum = f"at least {MIN_DOCUMENTS} are needed."
        lines = [
            {
                "helped": f"{subject} model is probably better than its base.",
                "hurt": f"{subject} model is probably worse than its base.",
                "no clear difference": f"It is not clear {whether}.",
                "too few documents": f"Too few documents to tell {whether}: {self.documents}; {minimum}",
            }[self.word]
        ]
        if self.probe is not None and self.scored < MIN_DOCUMENTS:
            lines.append(f"Too few labelled documents for a probe: {self.scored}; {minimum}")
        elif self.word == "too few documents":
            pass  # the first line already says so
        elif self.probe is None:
            is_static = self.similarities is not None
            lines.append(record_in_words(self.probability, is_static) if self.change == "training" else NO_RECORD)
            lines.append("It cannot know what you will use the vectors for; a few labels would settle it.")
        elif self.signs == {1, -1}:
            lines.append(
                "Documents and labels contradict each other: documents alone call the model better with probability "
                f"{self.probability:.0%}, but its probe score changed by {self.probe.in_points()[-1]} points."
            )
        return " ".join(lines)

    def table(self) -> str:
        """Return a Markdown table of the measures before and after training, in percent, with TF-IDF's if known."""
        is_static = self.similarities is not None
        names = {
            "structure": "neighbours of both halves",
            "words": "neighbours that share words",
            "split_half": "halves that find each other",
            "similarities": "similarities of both halves",
            "probe": "probe with few labels, F1",
        }
        header = [f"{self.documents:,} documents, in %", *["TF-IDF"] * bool(self.tfidf), "before", "after"]
        rows = []
        for measure, name in names.items():
            row = getattr(self, measure)
            if row is not None and (measure != "probe" or self.scored >= MIN_DOCUMENTS):
                mark = "*" * (is_static and measure not in ("similarities", "probe"))
                words = [f"{100 * self.tfidf[measure]:.1f}" if measure in self.tfidf else ""] * bool(self.tfidf)
                rows.append([name + mark, *words, *row.in_points()])
        table = markdown_table([*header, "difference [95%]"], rows)
        return f"{table}\n\n{NOT_COUNTED}" if is_static else table

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        values = {"verdict": self.word, "probability": self.probability, **asdict(self)}
        scored = values.pop("scored")
        if self.probe is not None:
            values["probe"]["documents"] = scored
        return {name: value for name, value in values.items() if name == "probe" or value is not None}


@cache
def _record(static: bool = False) -> dict[str, Any]:
    record: dict[str, Any] = read_json(RECORD_FILE)
    return record["static"] if static else record


def predict_probability(values: Sequence[float], static: bool = False) -> float:
    """Return :attr:`Verdict.probability` for three differences in standard errors (static models: one, in points)."""
    regression = _record(static)["regression"]
    return float(1 / (1 + np.exp(-regression["intercept"] - np.dot(regression["weights"], values))))


def is_between(probability: float, low: float, high: float) -> bool:
    """Return whether a probability is in the bin [low, high), or [low, 1]."""
    return low <= probability < high or probability == high == 1


def record_in_words(probability: float, static: bool = False) -> str:
    """Return the track record of benchmark runs with a similar probability, as a sentence."""
    bins = _record(static)["calibration"]
    [bin_] = [runs for runs in bins if is_between(probability, runs["from"], runs["to"])]
    runs = format_count(bin_["better"] + bin_["unclear"] + bin_["worse"], "run")
    return (
        f"In our benchmark, {runs}{' with static models' * static} looked like this one: labels called "
        f"{bin_['better'] or 'none'} better and {bin_['worse'] or 'none'} worse."
    )


def give_verdict(
    base: HalvesComparison,
    model: HalvesComparison,
    probes: tuple[FewShotResult, FewShotResult] | None = None,
    seed: int = 0,
    change: str = "training",
    tfidf: tuple[HalvesComparison, FewShotResult | None] | None = None,
) -> Verdict:
    """Compare a model with its base.

    Args:
        base: Result of :func:`~simlte_st.evaluation.compare_halves` for the base.
        model: Result for the model, from the same call.
        probes: Few-shot probe results of the base and the model, with the same draws.
        seed: Random seed of the intervals.
        change: The change that led from the base to the model, for the summary; empty if unknown.
        tfidf: Results of TF-IDF from the same calls, for the table.

    Raises:
        DataError: The probes have different documents or draws, a result is TF-IDF's, only one model is static, or the
            models read different numbers of tokens.

    Example:
        ::

            halves = compare_halves({"base": base, "mine": model}, held_out)
            print(give_verdict(halves["base"], halves["mine"]).summary())
    """
    if base.words is None or model.words is None:
        raise DataError("A verdict compares two models, not TF-IDF.")
    if (reason := why_incomparable(base, model)) is not None:
        raise DataError(reason)
    structure = Difference.of(base.structure.scores, model.structure.scores, seed=seed)
    words = Difference.of(base.words.scores, model.words.scores, seed=seed)
    split_half = Difference.of(1.0 / base.split_half.ranks, 1.0 / model.split_half.ranks, seed=seed)
    verdict = Verdict(structure, words, split_half, base.structure.documents, change=change)
    if base.similarities is not None and model.similarities is not None:
        similarities = Difference.of(base.similarities.scores, model.similarities.scores, seed=seed)
        verdict = replace(verdict, similarities=similarities)
    if probes is not None:
        before, after = probes
        gain, interval = after.macro_f1 - before.macro_f1, after.interval(seed, base=before)
        probe = Difference(before.macro_f1, after.macro_f1, gain, *interval)
        verdict = replace(verdict, probe=probe, scored=len(before.draws[0].test))
    if tfidf is not None:
        halves, probe_scores = tfidf
        means = {"structure": halves.structure.agreement, "split_half": float(np.mean(1.0 / halves.split_half.ranks))}
        means |= {} if probe_scores is None else {"probe": probe_scores.macro_f1}
        verdict = replace(verdict, tfidf=means)
    return verdict


def why_incomparable(base: HalvesComparison, model: HalvesComparison) -> str | None:
    """Return why two models cannot be compared without labels, or None if they can."""
    if (base.similarities is None) != (model.similarities is None):
        return "One model is static, the other an encoder. Only a probe on labels can tell which is better."
    if base.reads == model.reads:
        return None
    base_reads, model_reads = ("all" if reads is None else f"{reads:,}" for reads in (base.reads, model.reads))
    return (
        f"Maximum tokens read per text: {base_reads} by the base, {model_reads} by the model. Agreement rises with the "
        "tokens read, so a verdict needs the same limit for both. Compare the two with a probe on labels, or set the "
        "same max_seq_length for both."
    )
