"""Settings for a user's documents, what was measured of them, and which is best: what ``simlte compare`` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simlte_st.evaluation.classification_probe import FewShotResult
from simlte_st.evaluation.probe import ProbeResult
from simlte_st.evaluation.probe_difference import macro_f1_differences, macro_f1_resamples
from simlte_st.evaluation.table import named_table
from simlte_st.evaluation.verdict import Verdict

SHOTS, DRAWS = 5, 20
"""Labelled documents a class of a probe, and how often they are drawn."""


@dataclass(frozen=True)
class Candidate:
    """A setting, and what was measured of it.

    Attributes:
        name: What the table calls it.
        reads: Tokens of a document that it reads at most; None for all.
        share: Share of the sample's tokens that it reads, 0 to 1.
        documents_per_second: How many documents of the sample it turned into vectors in a second, here.
        command: What makes its vectors of all documents, or the model that does; empty for words by themselves.
        verdict: Whether it is better than the base that it was trained from, where that is known and is read alike.
        few_shot: Probes with five labelled documents a class.
        full: The probe with half of the labelled documents.
    """

    name: str
    reads: int | None
    share: float
    documents_per_second: float = 0.0
    command: str = ""
    verdict: Verdict | None = None
    few_shot: FewShotResult | None = None
    full: ProbeResult | None = None

    @property
    def score(self) -> float:
        """Macro-F1 of the probes with few labels, mean of the draws."""
        assert self.few_shot is not None
        return self.few_shot.metrics()["macro_f1_mean"]

    def to_dict(self, seed: int) -> dict[str, Any]:
        """Return it as JSON values, the interval of its probes drawn with a seed."""
        values: dict[str, Any] = {name: getattr(self, name) for name in ("name", "reads", "share", "command")}
        values["documents_per_second"] = self.documents_per_second
        values["probability"] = None if self.verdict is None else self.verdict.probability
        if self.few_shot is not None and self.full is not None:
            low, high = few_shot_interval(self.few_shot, seed)
            values["probe"] = {"few_shot": self.score, "low": low, "high": high, "full": self.full.macro_f1}
        return values


@dataclass(frozen=True)
class Comparison:
    """Candidates on one sample of documents.

    Attributes:
        candidates: In the order of the table.
        recommended: Name of the one that is recommended.
        documents: Documents of the sample.
        tokens: Tokens of them.
        labelled: Labelled documents of the sample that a probe could use.
        seed: Decided sample, draws and intervals.
    """

    candidates: tuple[Candidate, ...]
    recommended: str
    documents: int
    tokens: int
    labelled: int = 0
    seed: int = 0

    def summary(self, width: int | None = None) -> str:
        """Return the table, what its numbers mean, and one command.

        Args:
            width: Columns that a line of the table shall have at most; None for any number.
        """
        judged = any(each.verdict for each in self.candidates)
        probed = any(each.few_shot for each in self.candidates)
        header = ["setting", "reads", "of all", "docs/s", *["better"] * judged]
        header += [f"{SHOTS}-shot F1 [95%]", "all F1"] if probed else []
        rows = []
        for each in self.candidates:
            row = [each.name, "all" if each.reads is None else f"{each.reads:,}", f"{each.share:.0%}"]
            row += [f"{each.documents_per_second:,.{0 if each.documents_per_second >= 10 else 1}f}"]
            row += [("" if each.verdict is None else f"{each.verdict.probability:.0%}")] * judged
            if each.few_shot is not None and each.full is not None:
                low, high = few_shot_interval(each.few_shot, self.seed)
                row += [
                    f"{100 * each.score:.1f} [{100 * low:.0f}, {100 * high:.0f}]",
                    f"{100 * each.full.macro_f1:.1f}",
                ]
            rows.append(row)
        said = [
            f"A sample of {self.documents:,} documents, {self.tokens:,} tokens. Reads: tokens of a document at most; "
            "of all: how much of the sample that is; docs/s: measured here, while it was encoded."
        ]
        if judged:
            said.append(
                "Better: how likely labels would call the model better than the base that it was trained from, of "
                "which both read equally many tokens. Of readers of different lengths that cannot be said."
            )
        if probed:
            said.append(
                f"F1: macro-F1 of probes that learn from {SHOTS} labelled documents a class ({DRAWS} draws, interval "
                f"over documents and draws), or from half of all {self.labelled:,}."
            )
        return "\n".join([named_table(header, rows, width), "", *said, "", self.advice()])

    def advice(self) -> str:
        """Say what is recommended and why, and the command."""
        best = next(each for each in self.candidates if each.name == self.recommended)
        first = self.candidates[0]
        if best.few_shot is not None:
            why = "It has the best probe of the settings that a command makes."
            if best is not first and first.few_shot is not None:
                low, high = np.quantile(macro_f1_differences(first.few_shot, best.few_shot, self.seed), [0.025, 0.975])
                difference = 100 * (best.score - first.score)
                why += f" Against {first.name}: {difference:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]."
            words = [each for each in self.candidates if not each.command and each.score > best.score]
            why += "".join(f" {each.name} is better still: words say most here." for each in words)
        elif best.verdict is not None and best.verdict.word == "helped":
            why = f"{best.verdict.summary()}"
        else:
            why = (
                f"Without labels it is chosen by what it reads: {best.share:.0%} of the tokens. Where documents are "
                "long, reading on is worth more than anything else in benchmarks/results/models.md; a column of "
                "classes, folders or tags (probe=) can say more."
            )
        return f"Recommended: {best.name}. {why}\n\n    {best.command}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        names = ("recommended", "documents", "tokens", "labelled", "seed")
        candidates = [each.to_dict(self.seed) for each in self.candidates]
        return {"candidates": candidates, **{name: getattr(self, name) for name in names}}


def few_shot_interval(result: FewShotResult, seed: int) -> tuple[float, float]:
    """Return a 95 % interval of the mean macro-F1 of few-shot probes, over documents and draws (bootstrap)."""
    low, high = np.quantile(macro_f1_resamples(result, seed), [0.025, 0.975])
    return float(low), float(high)
