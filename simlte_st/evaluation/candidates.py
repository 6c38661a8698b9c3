"""What a comparison of settings found: a row for each candidate, and which of them is recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simlte_st.data.document import LONG
from simlte_st.evaluation.few_shot import FewShotResult
from simlte_st.evaluation.probe import ProbeResult
from simlte_st.evaluation.table import in_interval, named_table
from simlte_st.evaluation.verdict import Verdict

SHOTS, DRAWS = 5, 20
"""Labelled documents a class of a probe, and how often they are drawn."""

MUCH_FASTER = 10.0
"""How many times as fast as the best probe a candidate is that is recommended for being as good within its interval."""


@dataclass(frozen=True)
class Candidate:
    """A setting and its measures.

    Attributes:
        name: Its name in the table.
        reads: Most tokens of a document that it reads; None for all.
        share: Share of the sample's tokens that it reads, 0 to 1.
        documents_per_second: Documents of the sample that it turned into vectors in a second, here.
        command: Command that makes its vectors of all documents, or the model that does; empty for words alone.
        static: Whether it is of a static model.
        verdict: Whether it is better than its base, if that is known and reads the same number of tokens.
        few_shot: Probes with five labelled documents a class.
        full: The probe with half of the labelled documents.
    """

    name: str
    reads: int | None
    share: float
    documents_per_second: float = 0.0
    command: str = ""
    static: bool = False
    verdict: Verdict | None = None
    few_shot: FewShotResult | None = None
    full: ProbeResult | None = None

    @property
    def score(self) -> float:
        """Macro-F1 of the probes with few labels, mean of the draws."""
        assert self.few_shot is not None
        return self.few_shot.macro_f1

    @property
    def helped(self) -> bool:
        """Whether the verdict is that it is better than its base."""
        return self.verdict is not None and self.verdict.word == "helped"

    @property
    def trains(self) -> bool:
        """Whether its command trains a model."""
        return self.command.startswith("simlte train")

    def against(self, other: Candidate, seed: int) -> tuple[float, float, float]:
        """Return the difference of its score to another's, and the ends of its interval, in points."""
        assert self.few_shot is not None
        low, high = self.few_shot.interval(seed, base=other.few_shot)
        return 100 * (self.score - other.score), 100 * low, 100 * high

    def to_dict(self, seed: int) -> dict[str, Any]:
        """Return it as JSON values; ``seed`` is that of the interval of its probes."""
        names = ("name", "reads", "share", "command", "static", "documents_per_second")
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        values["probability"] = None if self.verdict is None else self.verdict.probability
        if self.few_shot is not None and self.full is not None:
            low, high = self.few_shot.interval(seed)
            values["probe"] = {"few_shot": self.score, "low": low, "high": high, "full": self.full.macro_f1}
        return values

    def row(self, judged: bool, seed: int) -> list[str]:
        """Return its row of the table."""
        rate = f"{self.documents_per_second:,.{0 if self.documents_per_second >= 10 else 1}f}"
        row = [self.name, "all" if self.reads is None else f"{self.reads:,}", f"{self.share:.0%}", rate]
        if judged:
            row.append("" if self.verdict is None else f"{self.verdict.probability:.0%}")
        if self.few_shot is not None and self.full is not None:
            low, high = self.few_shot.interval(seed)
            few_shot = f"{100 * self.score:.1f} [{100 * low:.0f}, {100 * high:.0f}]"
            row += [few_shot, f"{100 * self.full.macro_f1:.1f}"]
        return row


def best_probe(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the best probe of those that a command makes."""
    return max((each for each in candidates if each.command), key=lambda each: each.score)


def recommend(candidates: Sequence[Candidate], is_long: bool, seed: int) -> Candidate:
    """Return the candidate to recommend, of those that a command makes.

    With labels it is the best by the probe, or one that is :data:`MUCH_FASTER` and not clearly worse: the interval of
    the difference includes 0. Without, it is a model that helped; else, for long documents, what a training makes of a
    static one; else the encoder that reads most.
    """
    made = [each for each in candidates if each.command]
    if made[0].few_shot is not None:
        best = best_probe(made)
        faster = [each for each in made if each.documents_per_second >= MUCH_FASTER * best.documents_per_second]
        as_good = [each for each in faster if each.against(best, seed)[2] >= 0]
        return max(as_good, key=lambda each: each.score, default=best)
    return max(made, key=lambda each: (each.helped, each.static == is_long, each.share, each.static and each.trains))


@dataclass(frozen=True)
class Comparison:
    """Candidates on one sample of documents.

    Attributes:
        candidates: In the order of the table.
        recommended: Name of the recommended one.
        documents: Documents of the sample.
        tokens: Their tokens.
        labelled: Labelled documents of the sample that a probe could use.
        seed: Seed of sample, draws and intervals.
    """

    candidates: tuple[Candidate, ...]
    recommended: str
    documents: int
    tokens: int
    labelled: int = 0
    seed: int = 0

    def summary(self, width: int | None = None) -> str:
        """Return the table, what its numbers mean, and one command; ``width`` is the most columns of the table."""
        judged = any(each.verdict for each in self.candidates)
        probed = any(each.few_shot for each in self.candidates)
        header = ["setting", "reads", "of all", "docs/s", *["better"] * judged]
        header += [f"{SHOTS}-shot F1 [95%]", "all F1"] if probed else []
        notes = [
            f"A sample of {self.documents:,} documents, {self.tokens:,} tokens. Reads: most tokens read of a document; "
            "of all: their share of the sample; docs/s: measured here, while it was encoded."
        ]
        if judged:
            notes.append(
                "Better: how likely labels would call the model better than the base that it was trained from. It "
                "compares models that read the same number of tokens, and not others."
            )
        if probed:
            notes.append(
                f"F1: macro-F1 of probes that learn from {SHOTS} labelled documents a class ({DRAWS} draws, interval "
                f"over documents and draws), or from half of all {self.labelled:,}."
            )
        table = named_table(header, [each.row(judged, self.seed) for each in self.candidates], width)
        return "\n".join([table, "", *notes, "", self.advice()])

    def advice(self) -> str:
        """Return the recommendation with its reason and its command."""
        chosen = next(each for each in self.candidates if each.name == self.recommended)
        if chosen.few_shot is not None:
            why = self._by_probes(chosen)
        elif chosen.verdict is not None and chosen.helped:
            why = chosen.verdict.summary()
        elif chosen.static and (encoders := [each for each in self.candidates if each.command and not each.static]):
            other = recommend(encoders, False, self.seed)
            times = chosen.documents_per_second / other.documents_per_second
            why = (
                f"Without labels, the choice is by length: from {LONG} words a document on (the median), a static "
                f"model that is trained on them is as good as an encoder. Here it is {times:,.0f} times as fast as "
                f"{other.name}. A column of classes, folders or tags (probe=) allows a better choice."
            )
        else:
            why = (
                f"Without labels, the choice is by what is read: {chosen.share:.0%} of the tokens. Where documents are "
                "long, reading more of them helps more than anything else in benchmarks/results/models.md; a column "
                "of classes, folders or tags (probe=) allows a better choice."
            )
        return f"Recommended: {chosen.name}. {why}\n\n    {chosen.command}"

    def _by_probes(self, chosen: Candidate) -> str:
        best, first = best_probe(self.candidates), self.candidates[0]
        if chosen is best:
            why = "It has the best probe of the settings that a command makes."
            if best is not first:
                difference = in_interval(*best.against(first, self.seed))
                why += f" Against {first.name}: {difference} points."
        else:
            difference = in_interval(*chosen.against(best, self.seed))
            times = chosen.documents_per_second / best.documents_per_second
            why = (
                f"It is as good as {best.name}, which has the best probe, within the interval of their difference "
                f"({difference} points), and {times:,.0f} times as fast."
            )
        words = [each for each in self.candidates if not each.command and each.score > best.score]
        return why + "".join(f" {each.name} is better still: words alone tell most here." for each in words)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        names = ("recommended", "documents", "tokens", "labelled", "seed")
        candidates = [each.to_dict(self.seed) for each in self.candidates]
        return {"candidates": candidates, **{name: getattr(self, name) for name in names}}
