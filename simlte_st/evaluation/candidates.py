"""Candidates measured by ``compare``, and the choice of the one to recommend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simlte_st.evaluation.comparison import ProbeComparison

SHOTS, DRAWS = 5, 20
"""Number of labelled documents per class in a few-shot probe, and number of draws."""

MUCH_FASTER = 10.0
"""Minimum speed-up at which a candidate that is not clearly worse than the best is recommended instead."""


@dataclass(frozen=True)
class Candidate:
    """A model or setting, with its measurements.

    Attributes:
        name: Name shown in the table.
        reads: Maximum number of tokens read per document; None for no limit.
        share: Fraction of the sample's tokens that are read.
        documents_per_second: Encoding speed on this machine.
        command: Command that encodes all documents with the model or trains it; empty for TF-IDF.
        static: Whether the model is static.
        probes: Scores of probes trained on five labelled documents per class and on half of the labelled documents.
    """

    name: str
    reads: int | None
    share: float
    documents_per_second: float = 0.0
    command: str = ""
    static: bool = False
    probes: ProbeComparison | None = None

    @property
    def score(self) -> float:
        """Mean macro-F1 of the few-shot probes."""
        assert self.probes is not None
        return self.probes.few_shot.macro_f1

    def against(self, other: Candidate, seed: int) -> tuple[float, float, float]:
        """Return the difference from another candidate's score, and its 95% interval, in percentage points."""
        assert self.probes is not None
        assert other.probes is not None
        low, high = self.probes.few_shot.interval(seed, base=other.probes.few_shot)
        return 100 * (self.score - other.score), 100 * low, 100 * high

    def to_dict(self, seed: int) -> dict[str, object]:
        """Return the candidate as JSON values; ``seed`` is the random seed of the interval."""
        values = {name: value for name, value in vars(self).items() if name != "probes"}
        if self.probes is not None:
            low, high = self.probes.few_shot.interval(seed)
            values["probe"] = {"few_shot": self.score, "low": low, "high": high, "full": self.probes.full.macro_f1}
        return values

    def row(self, seed: int) -> list[str]:
        """Return the candidate's row of the table."""
        rate = f"{self.documents_per_second:,.{0 if self.documents_per_second >= 10 else 1}f}"
        row = [self.name, "all" if self.reads is None else f"{self.reads:,}", f"{self.share:.0%}", rate]
        if self.probes is not None:
            low, high = self.probes.few_shot.interval(seed)
            few_shot = f"{100 * self.score:.1f} [{100 * low:.0f}, {100 * high:.0f}]"
            row += [few_shot, f"{100 * self.probes.full.macro_f1:.1f}"]
        return row


def header(has_probes: bool) -> list[str]:
    """Return the names of the columns of :meth:`Candidate.row`."""
    return ["setting", "reads", "of all", "docs/s", *([f"{SHOTS}-shot F1 [95%]", "all F1"] if has_probes else [])]


def pad_cells(cells: Sequence[str]) -> str:
    """Return a row of the table as a line of text that does not depend on the other rows."""
    widths = (len(title) + 3 for title in header(True)[1:])
    return f"{cells[0]:<40}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells[1:], widths, strict=False))


def best_probe(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the best few-shot score, excluding TF-IDF."""
    return max((candidate for candidate in candidates if candidate.command), key=lambda candidate: candidate.score)


def recommend(candidates: Sequence[Candidate], is_long: bool, seed: int) -> Candidate:
    """Return the candidate to recommend, excluding TF-IDF.

    With labels, this is the candidate with the best few-shot score, or one that is at least :data:`MUCH_FASTER` times
    as fast and not clearly worse (the interval of the difference includes 0). Without labels, this is a trained static
    model if the documents are long; otherwise, the encoder that reads the largest share of them.
    """
    models = [candidate for candidate in candidates if candidate.command]
    if models[0].probes is not None:
        best = best_probe(models)
        min_speed = MUCH_FASTER * best.documents_per_second
        fast_models = [model for model in models if model.documents_per_second >= min_speed]
        as_good = [model for model in fast_models if model.against(best, seed)[2] >= 0]
        return max(as_good, key=lambda model: model.score, default=best)

    def rank(model: Candidate) -> tuple[bool, float, bool]:
        return model.static == is_long, model.share, model.static and model.command.startswith("simlte train")

    return max(models, key=rank)
