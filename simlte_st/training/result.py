"""What a run did, and the folder that it leaves."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from simlte_st.data.corpus import CorpusReport, Coverage
from simlte_st.files import atomic_path, write_json
from simlte_st.training.model_card import extend_model_card
from simlte_st.training.presets import Preset

RUN_FILE = "simlte.json"
"""File in a trained model's folder that says how it was made."""


@dataclass
class TrainingResult:
    """What a run did.

    Attributes:
        output: The model's folder; where it will be, if the run was interrupted.
        interrupted: Whether Ctrl-C ended the run before its end; a checkpoint was written.
        steps: Optimizer steps done.
        seconds: Seconds of training, in this process.
        documents_per_second: Rate over them.
        preset: The settings used.
        read: The reader's report: documents read, skipped and mended, with reasons.
        corpus: What became of the documents.
        coverage: What one pass sees of them.
        gain: Split-half retrieval on held-out documents for TF-IDF, the base and the trained model; None if too few
            documents were held out.
        interpolation: How much of the trained weights the model has (``weight``), and what led to it; None for all.
        log: The Trainer's log lines.
    """

    output: Path
    interrupted: bool
    steps: int
    seconds: float
    documents_per_second: float
    preset: Preset
    read: dict[str, Any]
    corpus: CorpusReport
    coverage: Coverage
    gain: dict[str, Any] | None = None
    interpolation: dict[str, Any] | None = None
    log: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Give the result as JSON values."""
        return {
            "steps": self.steps,
            "seconds": round(self.seconds, 1),
            "documents_per_second": round(self.documents_per_second, 2),
            "preset": {**vars(self.preset), "view": repr(self.preset.view)},
            "read": self.read,
            "corpus": self.corpus.to_dict(),
            "coverage": {**asdict(self.coverage), "share": self.coverage.share},
            "gain": self.gain,
            "interpolation": self.interpolation,
            "log": self.log,
        }


def save_result(model: SentenceTransformer, result: TrainingResult, base: str, seed: int) -> None:
    """Write the finished model with its account, in one rename."""
    with atomic_path(result.output) as path:
        model.model_card_data.train_datasets = []  # samples of the user's documents
        model.model_card_data.model_name = result.output.name
        model.save_pretrained(str(path))
        run = {"base": base, "seed": seed, **result.to_dict()}
        write_json(path / RUN_FILE, run)
        extend_model_card(path / "README.md", run)
