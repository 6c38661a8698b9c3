"""The result of a training run, printable and convertible to JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simlte_st.errors import format_count
from simlte_st.reading.documents import format_reason
from simlte_st.training.run import trained_path

if TYPE_CHECKING:
    import sentence_transformers

    from simlte_st.models.limits import Truncation
    from simlte_st.models.sentence_transformers import SentenceTransformer
    from simlte_st.training.presets import Preset
    from simlte_st.views.corpus import CorpusReport


STATIC = (
    "The model is static: each token has one vector, and a text's vector is their mean. It reads documents of any "
    "length in full."
)
WHOLE = (
    "It reads them in chunks and averages the chunk embeddings, because the base alone would truncate over a tenth of "
    "the tokens."
)
WHOLE_ADVICE = (
    "Loading the model requires simlte_st. A model trained with max_length='base' does not, but reads no more of a "
    "text than its base."
)


@dataclass
class TrainingResult:
    """The result of a training run.

    Attributes:
        output: Folder of the finished model.
        steps: Number of optimizer steps.
        seconds: Training time of this process, in seconds.
        preset: The preset, with fields replaced by the run's arguments.
        dtype: Training dtype, ``"float32"`` or ``"bfloat16"``.
        read: The reader's report: numbers of documents read, skipped and repaired, with reasons.
        corpus: Report on the training documents and the documents left out.
        truncation: How much of the training documents (for a stream, of its first documents) the finished model reads.
        kept: Which model was kept: ``"trained"``, or ``"base"`` if training did not clearly help. In the latter case,
            the trained model is in ``OUTPUT.trained``.
        gain: The verdict on held-out documents, with the scores of TF-IDF, the base (reading as much as the trained
            model, if it has enough positions) and the trained model; None if too few documents were held out.
        static: Whether the model is static, with one vector for each token and no layers.
        lsa: Dimensions of the latent semantic analysis (LSA) appended to an encoder or folded into a static model.
        whole: Whether the finished model reads whole documents in chunks, because the base would truncate them.
        log: The Trainer's log history.
        report: Path of the HTML report, or None.

    Example:
        ::

            result = train("my_documents", "my-model")
            print(result.summary())
            vectors = result.load().encode(["A long document ...", "Another one ..."])
    """

    output: Path
    steps: int
    seconds: float
    preset: Preset
    dtype: str
    read: dict[str, Any]
    corpus: CorpusReport
    truncation: Truncation
    kept: Literal["trained", "base"] = "trained"
    gain: dict[str, Any] | None = None
    static: bool = False
    lsa: int | None = None
    whole: bool = False
    log: list[dict[str, Any]] = field(default_factory=list)
    report: Path | None = None

    def load(self, **options: Any) -> SentenceTransformer:
        """Load the finished model.

        Args:
            **options: Arguments of :class:`simlte_st.SentenceTransformer`, for example ``device="cpu"``.
        """
        from simlte_st.models.sentence_transformers import SentenceTransformer

        return SentenceTransformer(self.output, **options)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def summary(self) -> str:
        """Describe the training, and give the verdict and a table of its measures."""
        gain = self.gain or {"summary": "Too few documents were held out to measure the gain."}
        lines = [f"{' '.join(self.facts())} {WHOLE_ADVICE if self.whole else self.truncation.advice}".rstrip()]
        lines.append(gain["summary"])
        if self.kept == "base":
            lines.append(
                f"So {self.output} holds the untrained base{' with LSA' if self.lsa else ''}; the trained "
                f"model is in {trained_path(self.output)} (keep='trained' always keeps it)."
            )
        if self.report is not None:
            lines.append(f"Open {self.report} in a browser to see the run and texts of held-out documents.")
        return "\n".join([*lines, *([f"\n{gain['table']}\n"] if self.gain else [])])

    def facts(self) -> list[str]:
        """Return sentences about the training and how much the model reads, without file names."""
        left_out = {**self.read["skipped"], **self.corpus.left_out}
        skipped = ", ".join(format_reason(reason, count) for reason, count in left_out.items())
        documents, steps = format_count(self.corpus.documents, "document"), format_count(self.steps, "step")
        trained = f"Trained on {documents}: {steps} in {self.seconds:,.0f} s, in {self.dtype}."
        return [
            f"{trained} Left out: {skipped}." if skipped else trained,
            STATIC if self.static else self.truncation.summary() + f" {WHOLE}" * self.whole,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values to publish with the model, without file names, ids or texts."""
        return {
            **{name: value for name, value in vars(self).items() if name not in ("output", "report")},
            "seconds": round(self.seconds, 1),
            "preset": {**vars(self.preset), "view": repr(self.preset.view)},
            "read": {name: value for name, value in self.read.items() if name not in ("source", "examples")},
            "corpus": self.corpus.to_dict(),
            "truncation": replace(self.truncation, model=self.output.name).to_dict(),
        }


@dataclass(frozen=True)
class ModelChoice:
    """The finished models of a run, the verdict, and which model to keep.

    Attributes:
        trained: The trained model, ready to be saved.
        base: The base, finished the same way, or None if no documents were held out.
        gain: The verdict on the held-out documents, with its measures, or None.
        winner: The model to keep.
        lsa: Number of dimensions of the trained model's latent semantic analysis, or None.
        truncation: How many tokens the trained model truncates from the documents.
    """

    trained: sentence_transformers.SentenceTransformer
    base: sentence_transformers.SentenceTransformer | None
    gain: dict[str, Any] | None
    winner: Literal["trained", "base"]
    lsa: int | None
    truncation: Truncation
