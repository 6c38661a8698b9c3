"""Did training help? A verdict from documents alone, with labels where there are some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from simlte_st.errors import DataError
from simlte_st.evaluation.classification_probe import FewShotResult
from simlte_st.evaluation.comparison import HalvesComparison
from simlte_st.evaluation.probe_difference import macro_f1_differences
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.files import read_json

Word = Literal["helped", "hurt", "no clear difference", "too few documents"]

Finding = Literal["helped", "collapsing", "memorising", "unclear", "hurt"]
"""What documents alone say of a run; see :func:`finding_of`."""

RECORD_FILE = Path(__file__).with_name("verdict_record.json")
"""What labels said of the runs of our benchmark, by their finding; ``python -m benchmarks.bank.page`` makes it."""

LEAST_RUNS = 20
"""Runs of a finding below which nothing is said of how often labels agreed."""

FEWEST = 30
"""Documents below which no verdict is given (``benchmarks/results/verdict.md``)."""

REASONS: Mapping[Finding, str] = {
    "helped": "Both halves of a document agree on more neighbours, without the space collapsing, and without documents "
    "merely being told apart better",
    "collapsing": "Both halves of a document agree on more neighbours, but the space moves away from the balance of "
    "directions that generalises, as it does when it collapses",
    "memorising": "Both halves of a document agree on more neighbours, but one half also finds the other more often: "
    "training may have memorised what tells documents apart",
    "unclear": "Both halves of a document agree on about as many neighbours as before",
    "hurt": "Both halves of a document agree on fewer neighbours",
}
"""What kept a verdict from "helped", or what it rests on."""


def finding_of(structure: int, spectrum: int, split_half: int) -> Finding:
    """Apply the rule of the verdict (``benchmarks/results/verdict.md``).

    Structure must agree more, without the space collapsing, and without documents merely being told apart better.

    Args:
        structure: Sign of the clear differences in how far both halves of documents agree on their neighbours: 1 better
            than the base, -1 worse, 0 not clear.
        spectrum: Sign of the difference in :func:`~simlte_st.evaluation.alpha_req`.
        split_half: Sign of the clear differences in split-half retrieval.
    """
    if structure <= 0:
        return "hurt" if structure < 0 else "unclear"
    if spectrum < 0:
        return "collapsing"
    return "memorising" if split_half > 0 else "helped"


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of one measure between two models, over the same documents or draws.

    Attributes:
        base: Of the base.
        model: Of the other model.
        mean: The mean difference, model minus base.
        low: Lower end of its 95 % bootstrap interval.
        high: Upper end.
    """

    base: float
    model: float
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, base: Sequence[float] | np.ndarray, model: Sequence[float] | np.ndarray, seed: int = 0) -> Difference:
        """Compare values in pairs: of the same documents, or of the same draws of examples."""
        before, after = np.asarray(base, dtype=np.float64), np.asarray(model, dtype=np.float64)
        if before.shape != after.shape:
            raise DataError(f"There are {len(before)} values of the base and {len(after)} of the model.")
        low, high = bootstrap_interval(after - before, seed=seed)
        return cls(float(before.mean()), float(after.mean()), float((after - before).mean()), low, high)

    @classmethod
    def of_one(cls, base: float, model: float) -> Difference:
        """Compare two single values; the interval has no width."""
        return cls(base, model, model - base, model - base, model - base)

    @property
    def sign(self) -> int:
        """1 where the interval lies above 0, -1 where it lies below, else 0."""
        return int(self.low > 0) - int(self.high < 0)

    def in_points(self) -> str:
        """Write base, model, and difference with its interval, in percent."""
        return (
            f"{100 * self.base:.1f} before, {100 * self.model:.1f} after: {100 * self.mean:+.1f} points "
            f"[{100 * self.low:+.1f}, {100 * self.high:+.1f}]"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model is better than its base.

    What the vectors will be used for, a verdict without labels cannot know. It does not compare models that read
    different numbers of tokens: agreement grows with the tokens read by itself.

    Attributes:
        structure: Agreement of the halves of held-out documents, see
            :func:`~simlte_st.evaluation.structure_agreement`, document by document.
        spectrum: :func:`~simlte_st.evaluation.alpha_req` of the vectors of whole documents; one value a model.
        split_half: Reciprocal rank of the other half of a document, see
            :func:`~simlte_st.evaluation.split_half_retrieval`, document by document.
        documents: How many there were.
        probe: Macro-F1 with few labelled documents a class, its interval over the documents scored and the draws; None
            without labels.
        scored: Labelled documents on which the probe was scored.
    """

    structure: Difference
    spectrum: Difference
    split_half: Difference
    documents: int
    probe: Difference | None = None
    scored: int = 0

    @property
    def finding(self) -> Finding:
        """What documents alone say."""
        return finding_of(self.structure.sign, self.spectrum.sign, self.split_half.sign)

    @property
    def word(self) -> Word:
        """The verdict of documents and of the probe; ``"no clear difference"`` where the two contradict."""
        if self.documents < FEWEST:
            return "too few documents"
        probe = 0 if self.probe is None or self.scored < FEWEST else self.probe.sign
        signs = {int(self.finding == "helped") - int(self.finding == "hurt"), probe}
        if signs >= {1, -1} or signs == {0}:
            return "no clear difference"
        return "helped" if 1 in signs else "hurt"

    def summary(self) -> str:
        """Say it in a few sentences that need no knowledge of the method."""
        said = {
            "helped": "Training helped.",
            "hurt": "Training hurt.",
            "no clear difference": "It is not clear whether training helped.",
            "too few documents": "Too few documents to tell whether training helped: "
            f"{self.documents}, and {FEWEST} are needed.",
        }[self.word]
        measured = [f"{self.documents} held-out documents: {self.structure.in_points()}"]
        if self.finding == "collapsing":
            measured.append(f"alpha-ReQ {self.spectrum.base:.2f} before, {self.spectrum.model:.2f} after")
        if self.finding == "memorising":
            measured.append(f"split-half retrieval {self.split_half.in_points()}")
        lines = [said, f"{REASONS[self.finding]} ({'; '.join(measured)})."]
        if self.probe is not None:
            few = f"too few labelled documents to tell: {self.scored}, and {FEWEST} are needed"
            shown = self.probe.in_points() if self.scored >= FEWEST else few
            lines.append(f"A probe with few labels (macro-F1): {shown}.")
        elif self.word != "too few documents":
            known = "What you will use the vectors for it cannot know: a few labels can tell."
            lines += [*record_in_words(self.finding), known]
        return " ".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Give the verdict as JSON values."""
        return {
            "verdict": self.word,
            "finding": self.finding,
            "documents": self.documents,
            "structure": asdict(self.structure),
            "spectrum": asdict(self.spectrum),
            "split_half": asdict(self.split_half),
            "probe": None if self.probe is None else {**asdict(self.probe), "documents": self.scored},
        }


def record_in_words(finding: Finding) -> list[str]:
    """Say in a sentence what labels said of the runs that looked like this one; nothing where they were few."""
    record = read_json(RECORD_FILE)["findings"][finding]
    better, worse, runs = record["better"], record["worse"], sum(record.values())
    if runs < LEAST_RUNS:
        return []
    if finding in ("helped", "hurt"):
        agreed, disagreed = (better, worse) if finding == "helped" else (worse, better)
        return [
            f"In {10 * agreed / runs:.0f} of 10 runs that looked like this one, labels agreed (in {agreed} of {runs} "
            f"of our benchmark; they disagreed in {disagreed or 'none'})."
        ]
    return [f"Of {runs} runs that looked like this one, labels called {better} better and {worse} worse."]


def give_verdict(
    base: HalvesComparison,
    model: HalvesComparison,
    probes: tuple[FewShotResult, FewShotResult] | None = None,
    seed: int = 0,
) -> Verdict:
    """Compare a model with its base.

    Args:
        base: What :func:`~simlte_st.evaluation.compare_halves` says of the base.
        model: Of the model, from the same call.
        probes: Few-shot probes of base and model, of the same draws.
        seed: Seed of the intervals.

    Raises:
        DataError: They are of different documents, or draws; one is of TF-IDF; or they read different numbers of
            tokens.
    """
    if base.spectrum is None or model.spectrum is None:
        raise DataError("A verdict compares two models; TF-IDF is none.")
    refusal = why_not_compared(base, model)
    if refusal is not None:
        raise DataError(refusal)
    probe = None
    if probes is not None:
        before, after = (float(np.mean([draw.macro_f1 for draw in result.draws])) for result in probes)
        low, high = np.quantile(macro_f1_differences(*probes, seed=seed), [0.025, 0.975])
        probe = Difference(before, after, after - before, float(low), float(high))
    return Verdict(
        Difference.of(base.structure.scores, model.structure.scores, seed=seed),
        Difference.of_one(base.spectrum, model.spectrum),
        Difference.of(1.0 / base.split_half.ranks, 1.0 / model.split_half.ranks, seed=seed),
        base.structure.documents,
        probe,
        0 if probes is None else len(probes[0].draws[0].test),
    )


def why_not_compared(base: HalvesComparison, model: HalvesComparison) -> str | None:
    """Say why models that read different numbers of tokens get no verdict; None where they read equally many."""
    if base.reads == model.reads:
        return None
    lengths = ["all" if each.reads is None else f"{each.reads:,}" for each in (base, model)]
    return (
        f"The base reads {lengths[0]} tokens of a text and the model {lengths[1]}. The verdict does not compare "
        "readers of different lengths: agreement grows with the tokens read by itself. A probe with labels can compare "
        "them; or let both read equally many, with max_seq_length of the models."
    )
