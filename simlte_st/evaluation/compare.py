"""Which setting for these documents? Models and words side by side on a sample: what ``simlte compare`` does."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simlte_st.arguments import Seed, checked
from simlte_st.data.document import LONG, median_words
from simlte_st.data.documents import read_documents
from simlte_st.evaluation.splits import Sample, sample_documents
from simlte_st.evaluation.table import in_interval, markdown_table

if TYPE_CHECKING:
    from simlte_st.evaluation.probe import FewShotResult, ProbeResult

SHOTS, DRAWS = 5, 20
"""Labelled documents of each class that a probe learns from, and number of draws."""

MUCH_FASTER = 10.0
"""Speed-up over the best candidate from which one that is as good, within its interval, is recommended instead."""


@dataclass(frozen=True)
class Candidate:
    """A setting and its measures.

    Attributes:
        name: Its name in the table.
        reads: Maximum tokens that it reads of a document; None for all.
        share: Share of the sample's tokens that it reads, 0 to 1.
        documents_per_second: Documents that it encoded per second, measured here.
        command: Command that encodes all documents, or trains the model for it; empty for words alone.
        static: Whether its model is static.
        few_shot: Probes with five labelled documents a class.
        full: The probe with half of the labelled documents.
    """

    name: str
    reads: int | None
    share: float
    documents_per_second: float = 0.0
    command: str = ""
    static: bool = False
    few_shot: FewShotResult | None = None
    full: ProbeResult | None = None

    @property
    def score(self) -> float:
        """Macro-F1 of the probes with few labels, mean of the draws."""
        assert self.few_shot is not None
        return self.few_shot.macro_f1

    def against(self, other: Candidate, seed: int) -> tuple[float, float, float]:
        """Return the difference of its score to another's, and the ends of its interval, in points."""
        assert self.few_shot is not None
        low, high = self.few_shot.interval(seed, base=other.few_shot)
        return 100 * (self.score - other.score), 100 * low, 100 * high

    def to_dict(self, seed: int) -> dict[str, Any]:
        """Return it as JSON values; ``seed`` is that of the interval of its probes."""
        names = ("name", "reads", "share", "command", "static", "documents_per_second")
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.few_shot is not None and self.full is not None:
            low, high = self.few_shot.interval(seed)
            values["probe"] = {"few_shot": self.score, "low": low, "high": high, "full": self.full.macro_f1}
        return values

    def row(self, seed: int) -> list[str]:
        """Return its row of the table."""
        rate = f"{self.documents_per_second:,.{0 if self.documents_per_second >= 10 else 1}f}"
        row = [self.name, "all" if self.reads is None else f"{self.reads:,}", f"{self.share:.0%}", rate]
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
    the difference includes 0. Without, it is, for long documents, what a training makes of a static one; else the
    encoder that reads most.
    """
    made = [each for each in candidates if each.command]
    if made[0].few_shot is not None:
        best = best_probe(made)
        faster = [each for each in made if each.documents_per_second >= MUCH_FASTER * best.documents_per_second]
        as_good = [each for each in faster if each.against(best, seed)[2] >= 0]
        return max(as_good, key=lambda each: each.score, default=best)
    return max(
        made,
        key=lambda each: (each.static == is_long, each.share, each.static and each.command.startswith("simlte train")),
    )


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

    def summary(self) -> str:
        """Return the table, what its numbers mean, and one command."""
        probed = any(each.few_shot for each in self.candidates)
        header = ["setting", "reads", "of all", "docs/s"]
        header += [f"{SHOTS}-shot F1 [95%]", "all F1"] if probed else []
        notes = [
            f"A sample of {self.documents:,} documents, {self.tokens:,} tokens. Reads: most tokens read of a document; "
            "of all: their share of the sample; docs/s: measured here, while it was encoded."
        ]
        if probed:
            notes.append(
                f"F1: macro-F1 of probes that learn from {SHOTS} labelled documents a class ({DRAWS} draws, interval "
                f"over documents and draws), or from half of all {self.labelled:,}."
            )
        table = markdown_table(header, [each.row(self.seed) for each in self.candidates])
        return "\n".join([table, "", *notes, "", self.advice()])

    def advice(self) -> str:
        """Return the recommendation with its reason and its command."""
        chosen = next(each for each in self.candidates if each.name == self.recommended)
        if chosen.few_shot is not None:
            why = self._by_probes(chosen)
        elif chosen.static:
            why = (
                f"Without labels, the choice is by length: for documents of {LONG} words or more (median), a static "
                "model that is trained on them is as good as an encoder, and much faster. A column of classes, folders "
                "or tags (probe=) allows a better choice."
            )
        else:
            why = (
                f"Without labels, the choice is by what is read: {chosen.share:.0%} of the tokens. A column of "
                "classes, folders or tags (probe=) allows a better choice."
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


@checked
def compare(
    source: Any,
    models: Sequence[str | os.PathLike[str]] = (),
    *,
    probe: str | None = None,
    sample: Sample = 500,
    device: str | None = None,
    seed: Seed = 0,
    progress: bool = True,
) -> Comparison:
    """Compare models and settings on a sample of documents, and recommend one.

    The settings are static models, as they are and with a latent semantic analysis (LSA); each encoder as it is and,
    where it truncates much, reading whole documents; the best of them with an LSA; and TF-IDF. Static models take next
    to no time and come first; this package's own is always among them.

    Args:
        source: Anything :func:`~simlte_st.data.read_documents` takes or returns.
        models: Folders or names of models to compare beside simlte-static. By default the packaged all-MiniLM-L6-v2 and
            this package's own, as far as they are installed or can be put together.
        probe: Column of classes, folders or tags. Probes with a few labels then decide which setting is best.
        sample: Maximum number of documents to compare on; fewer if they are long, but at least 100.
        device: Where to compute: cpu, cuda, cuda:1 or mps (default: a GPU, if there is one).
        seed: Random seed of the sample, the draws and the intervals.
        progress: Show progress bars.

    Raises:
        DataError: The documents cannot be read, or too few have labels for a probe.
        ModelError: A model cannot be loaded.
    """
    reader = read_documents(source)
    if probe is not None:
        reader = reader.with_options(label_column=probe)
    from simlte_st.evaluation.bench import Bench, load_models, shorten
    from simlte_st.models.language import warn_of_language
    from simlte_st.models.static import is_static

    drawn = sample_documents(reader, sample, seed)
    loaded = load_models(models, device)
    drawn, tokens = shorten(drawn, next(iter(loaded.values())), seed)
    warn_of_language(loaded, (document.text for document in drawn))
    named = shlex.join(map(str, reader.places)) or "my_documents"  # in the commands
    bench = Bench(drawn, named, probe=probe, device=device, seed=seed, progress=progress)
    for name, model in loaded.items():
        (bench.add_static if is_static(model) else bench.add_encoder)(name, model)
    bench.add_words()
    best = recommend(bench.candidates, median_words(bench.texts) >= LONG, seed).name
    return Comparison(tuple(bench.candidates), best, len(drawn), tokens, sum(map(len, bench.labelled or ())), seed)
