"""Did training help? A verdict from documents alone, with labels where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from simlte_st.errors import DataError
from simlte_st.evaluation.classification_probe import FewShotResult
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.evaluation.structure import StructureResult

Word = Literal["helped", "hurt", "no clear difference", "too few documents"]

RECORD = {
    "helped": "Where this was said in our benchmark, labels agreed in 130 of 171 cases and disagreed in 21.",
    "hurt": "Where this was said in our benchmark, labels agreed in 21 of 41 cases and disagreed in none.",
}
"""How often the verdict without labels has been right (``benchmarks/results/verdict.md``)."""

FEWEST = 30
"""Documents below which no verdict is given (``benchmarks/results/verdict.md``)."""


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

    Attributes:
        structure: Agreement of the halves of held-out documents, see
            :func:`~simlte_st.evaluation.structure_agreement`, document by document.
        documents: How many there were.
        probe: Macro-F1 with few labelled documents a class, draw by draw; None without labels.
    """

    structure: Difference
    documents: int
    probe: Difference | None = None

    @property
    def word(self) -> Word:
        """The verdict: what the measures say that differ clearly; ``"no clear difference"`` where two contradict."""
        if self.documents < FEWEST:
            return "too few documents"
        signs = {self.structure.sign, 0 if self.probe is None else self.probe.sign}
        if signs >= {1, -1} or signs == {0}:
            return "no clear difference"
        return "helped" if 1 in signs else "hurt"

    def summary(self) -> str:
        """Say it in a few sentences that need no knowledge of the method."""
        said = {
            "helped": "Training helped.",
            "hurt": "Training hurt.",
            "no clear difference": "No clear difference between the base and the new model.",
            "too few documents": "Too few documents to tell whether training helped: "
            f"{self.documents}, and {FEWEST} are needed.",
        }[self.word]
        lines = [
            f"{said} Neighbours on which both halves of a document agree, {self.documents} held-out documents: "
            f"{self.structure.in_points()}."
        ]
        if self.probe is not None:
            lines.append(f"A probe with few labels (macro-F1): {self.probe.in_points()}.")
        elif self.word in RECORD:
            lines.append(
                f"{RECORD[self.word]} What you will use the vectors for it cannot know: a few labels can tell."
            )
        return " ".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Give the verdict as JSON values."""
        probe = None if self.probe is None else asdict(self.probe)
        return {
            "verdict": self.word,
            "documents": self.documents,
            "structure": asdict(self.structure),
            "probe": probe,
        }


def give_verdict(
    base: StructureResult,
    model: StructureResult,
    probes: tuple[FewShotResult, FewShotResult] | None = None,
    seed: int = 0,
) -> Verdict:
    """Compare a model with its base.

    Args:
        base: Structure of the base.
        model: Of the model, on the same halves.
        probes: Few-shot probes of base and model, of the same draws.
        seed: Seed of the intervals.

    Raises:
        DataError: They are of different documents, or draws.
    """
    probe = None
    if probes is not None:
        before, after = ([draw.macro_f1 for draw in result.draws] for result in probes)
        probe = Difference.of(before, after, seed=seed)
    return Verdict(Difference.of(base.scores, model.scores, seed=seed), base.documents, probe)
