"""The result of a run, in words and as JSON values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simlte_st.data.reader import counted
from simlte_st.training.run import trained_path

if TYPE_CHECKING:
    from simlte_st.data.corpus import CorpusReport
    from simlte_st.models.sentence_transformer import SentenceTransformer
    from simlte_st.models.truncation import Truncation
    from simlte_st.training.presets import Preset


STATIC = (
    "The model is static: each token has one vector, and a text's vector is their mean. It reads documents of any "
    "length whole. For an encoder: static=False."
)
"""Description of a static model."""

WHOLE = (
    "The model reads documents whole, in chunks, because the base by itself cuts more than a tenth of the tokens; it "
    "loads after import simlte_st. With max_length='base' it reads as much as the base, and loads anywhere."
)
"""Description of a model that reads more than its base."""


@dataclass
class TrainingResult:
    """The result of a run.

    Attributes:
        output: Folder of the finished model.
        steps: Optimizer steps done.
        seconds: Seconds of training, in this process.
        preset: The preset of the run, with the arguments that replaced its fields.
        dtype: What training computed in: ``"float32"`` or ``"bfloat16"``.
        read: The reader's report: documents read, skipped and mended, with reasons.
        corpus: Report of the documents trained on, and the documents left out.
        truncation: How much the finished model reads of the documents trained on; of a stream, of its first ones.
        kept: The finished model: ``"trained"``, or ``"base"`` if training did not clearly help; the trained model is
            then in ``OUTPUT.trained``.
        gain: The verdict on held-out documents and its numbers for TF-IDF, the base (reading as much as the trained
            model, if it has the positions) and the trained model; None if too few documents were held out.
        static: Whether the model is static: a vector for each token, and no layers.
        lsa: Dimensions of the latent semantic analysis that is appended to the model, or folded into a static one; None
            without.
        whole: Whether the finished model reads documents in chunks, because they are longer than the base reads.
        log: The Trainer's log lines.
        report: The page of the run, or None.
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
            **options: Of :class:`simlte_st.SentenceTransformer`, e.g. ``device="cpu"``.
        """
        from simlte_st.models.sentence_transformer import SentenceTransformer

        return SentenceTransformer(self.output, **options)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def summary(self) -> str:
        """Return a few lines on what was done and whether it helped, with a table of the measures."""
        verdict = self.gain["summary"] if self.gain else "No documents, or too few, were held out to measure the gain."
        if self.kept == "base":
            verdict += (
                f" So {self.output} holds the untrained base{', with the analysis' if self.lsa else ''}; the trained "
                f"model is in {trained_path(self.output)} (keep='trained' keeps it in any case)."
            )
        lines = [*self.facts(self.truncation), verdict]
        if self.report is not None:
            lines.append(f"Open {self.report} in a browser: it shows the run, and texts of held-out documents.")
        return "\n".join([*lines, *([f"\n{self.gain['table']}"] if self.gain else [])])

    def facts(self, truncation: Truncation) -> list[str]:
        """Return what training did and what the model reads, in sentences, without names of files."""
        left_out = {**self.read["skipped"], **self.corpus.left_out}
        steps = f"{self.steps:,} step{'' if self.steps == 1 else 's'}"
        return [
            f"Trained on {self.corpus.documents:,} documents: {steps} in {self.seconds:,.0f} s, in {self.dtype}. "
            f"Left out: {', '.join(counted(count, reason) for reason, count in left_out.items()) or 'none'}.",
            STATIC if self.static else f"{truncation.summary()} {truncation.advice}".rstrip(),
            *([WHOLE] if self.whole else []),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values to publish with the model: without names of files, ids or texts."""
        return {
            **{name: value for name, value in vars(self).items() if name not in ("output", "report")},
            "seconds": round(self.seconds, 1),
            "preset": {**vars(self.preset), "view": repr(self.preset.view)},
            "read": {name: value for name, value in self.read.items() if name not in ("source", "examples")},
            "corpus": self.corpus.to_dict(),
            "truncation": replace(self.truncation, model=self.output.name).to_dict(),
        }
