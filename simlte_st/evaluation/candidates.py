"""The settings that ``compare`` measures, and the recommendation of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simlte_st.evaluation.comparison import ProbeComparison

SHOTS, DRAWS = 5, 20
"""Number of labelled documents of each class for a few-shot probe, and number of draws."""

MUCH_FASTER = 10.0
"""Minimum speed-up over the best candidate to recommend another one that is as good within its interval."""


@dataclass(frozen=True)
class Candidate:
    """A setting and its measures.

    Attributes:
        name: Name in the table.
        reads: Maximum number of tokens read from a document; None for all.
        share: Share of the sample's tokens that are read, 0 to 1.
        documents_per_second: Encoding speed on this machine.
        command: Command that encodes all documents or trains the model; empty for TF-IDF.
        static: Whether the model is static.
        probes: Probes with five labelled documents per class, and with half of the labelled documents.
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
        """Return the difference from the score of another candidate, and its interval, in points."""
        assert self.probes is not None
        assert other.probes is not None
        low, high = self.probes.few_shot.interval(seed, base=other.probes.few_shot)
        return 100 * (self.score - other.score), 100 * low, 100 * high

    def to_dict(self, seed: int) -> dict[str, Any]:
        """Return the candidate as JSON values; ``seed`` is the random seed of the interval."""
        names = ("name", "reads", "share", "command", "static", "documents_per_second")
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.probes is not None:
            low, high = self.probes.few_shot.interval(seed)
            values["probe"] = {"few_shot": self.score, "low": low, "high": high, "full": self.probes.full.macro_f1}
        return values

    def row(self, seed: int) -> list[str]:
        """Return the row in the table."""
        rate = f"{self.documents_per_second:,.{0 if self.documents_per_second >= 10 else 1}f}"
        row = [self.name, "all" if self.reads is None else f"{self.reads:,}", f"{self.share:.0%}", rate]
        if self.probes is not None:
            low, high = self.probes.few_shot.interval(seed)
            few_shot = f"{100 * self.score:.1f} [{100 * low:.0f}, {100 * high:.0f}]"
            row += [few_shot, f"{100 * self.probes.full.macro_f1:.1f}"]
        return row


def best_probe(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the best probe, excluding TF-IDF."""
    return max((each for each in candidates if each.command), key=lambda each: each.score)


def recommend(candidates: Sequence[Candidate], is_long: bool, seed: int) -> Candidate:
    """Return the candidate to recommend, TF-IDF excluded.

    With labels, it is the candidate with the best probe, or one that is :data:`MUCH_FASTER` and not clearly worse (the
    interval of the difference includes 0). Without labels, it is a trained static model for long documents, and the
    encoder that reads most for short ones.
    """
    made = [each for each in candidates if each.command]
    if made[0].probes is not None:
        best = best_probe(made)
        faster = [each for each in made if each.documents_per_second >= MUCH_FASTER * best.documents_per_second]
        as_good = [each for each in faster if each.against(best, seed)[2] >= 0]
        return max(as_good, key=lambda each: each.score, default=best)
    return max(
        made,
        key=lambda each: (each.static == is_long, each.share, each.static and each.command.startswith("simlte train")),
    )
