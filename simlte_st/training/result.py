"""What a run did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simlte_st.data.corpus import CorpusReport, Coverage
from simlte_st.evaluation.comparison import TFIDF
from simlte_st.training.presets import Preset

if TYPE_CHECKING:
    from simlte_st.models.sentence_transformer import SentenceTransformer

RUN_FILE = "simlte.json"
"""File in a trained model's folder that says how it was made."""


@dataclass
class TrainingResult:
    """What a run did.

    Attributes:
        output: The model's folder.
        steps: Optimizer steps done.
        seconds: Seconds of training, in this process.
        documents_per_second: Rate over them.
        preset: The settings used.
        dtype: What training computed in: ``"float32"`` or ``"bfloat16"``.
        read: The reader's report: documents read, skipped and mended, with reasons.
        corpus: What became of the documents.
        coverage: What one pass sees of them.
        gain: Split-half retrieval on held-out documents for TF-IDF, the base (reading as much as the trained model,
            where it has the positions) and the trained model; None if too few documents were held out.
        interpolation: How much of the trained weights the model has (``weight``), and what led to it; None for all.
        log: The Trainer's log lines.
    """

    output: Path
    steps: int
    seconds: float
    documents_per_second: float
    preset: Preset
    dtype: str
    read: dict[str, Any]
    corpus: CorpusReport
    coverage: Coverage
    gain: dict[str, Any] | None = None
    interpolation: dict[str, Any] | None = None
    log: list[dict[str, Any]] = field(default_factory=list)

    def load(self, **options: Any) -> SentenceTransformer:
        """Load the finished model.

        Args:
            **options: Of :class:`simlte_st.SentenceTransformer`, e.g. ``device="cpu"``.
        """
        from simlte_st.models.sentence_transformer import SentenceTransformer

        return SentenceTransformer(self.output, **options)

    def summary(self) -> str:
        """Say in a few lines what was done, and whether it helped."""
        left_out = {**self.read["skipped"], **self.corpus.left_out}
        lines = [
            f"Trained on {self.corpus.documents:,} documents: {self.steps:,} steps in {self.seconds:,.0f} s "
            f"({self.documents_per_second:.2g} documents a second, in {self.dtype}).",
            f"Seen and cut: {self.coverage.summary()}.",
            "Left out: " + (", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "none") + ".",
            gain_summary(self.gain) if self.gain else "Too few documents were held out to measure the gain.",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Give the result as JSON values."""
        return {
            "steps": self.steps,
            "seconds": round(self.seconds, 1),
            "documents_per_second": round(self.documents_per_second, 2),
            "dtype": self.dtype,
            "preset": {**vars(self.preset), "view": repr(self.preset.view)},
            "read": self.read,
            "corpus": self.corpus.to_dict(),
            "coverage": {**asdict(self.coverage), "share": self.coverage.share},
            "gain": self.gain,
            "interpolation": self.interpolation,
            "log": self.log,
        }


def gain_summary(gain: Mapping[str, Any]) -> str:
    """Say the verdict in a sentence."""
    return (
        f"Split-half retrieval among {gain['documents']} held-out documents: MRR {gain['base']['mrr']:.3f} before, "
        f"{gain['trained']['mrr']:.3f} after (TF-IDF {gain[TFIDF]['mrr']:.3f}); difference "
        f"{gain['mrr_gain']:+.3f} [{gain['mrr_gain_low']:+.3f}, {gain['mrr_gain_high']:+.3f}]: {gain['verdict']}."
    )
