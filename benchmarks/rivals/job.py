"""What a rival is told and what it tells: the job, its outcome, and the record that stays with the model."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from simlte_st.training.config import Preset

RIVAL_FILE = "rival.json"
"""File in a rival's folder that says how it was trained, and on what budget."""


@dataclass(frozen=True)
class RivalJob:
    """One training run.

    Attributes:
        documents: Anything :func:`~simlte_st.data.read_documents` takes.
        base: The model to begin with.
        path: Folder to write, which nobody sees before the run is over. What lies beside it is removed with it.
        preset: The settings that all rivals share, with the rival's own in them.
        steps: Optimizer steps.
        seed: Decides everything that is drawn.
        bf16: Compute in bfloat16.
        progress: Show progress bars.
    """

    documents: Any
    base: str | os.PathLike[str]
    path: Path
    preset: Preset
    steps: int
    seed: int
    bf16: bool
    progress: bool

    @property
    def work(self) -> Path:
        """Folder for what is needed until the model is there."""
        return self.path.with_name(f"{self.path.name}.work")


@dataclass(frozen=True)
class Outcome:
    """What a run did.

    Attributes:
        documents: Documents of the corpus that the objective can use.
        seconds: Seconds of training; reading, segmenting and tokenizing are not in them.
        log: The Trainer's log lines.
    """

    documents: int
    seconds: float
    log: list[dict[str, Any]]


@dataclass(frozen=True)
class RivalRecord:
    """How a rival was trained, and on what budget. Written to the model's folder as ``rival.json``.

    Attributes:
        rival: Its name in :data:`~benchmarks.rivals.RIVALS`.
        title: What tables call it.
        output: The model's folder.
        base: The model that it began with.
        seed: The seed.
        steps: Optimizer steps.
        batch_size: Documents in a batch; pairs of documents where the objective is one of pairs.
        max_view_length: Most tokens of a text, special tokens included.
        dtype: What training computed in: ``"float32"`` or ``"bfloat16"``.
        preset: All settings, those named above too.
        documents: Documents of the corpus that the objective can use.
        passes: What a document costs in a step, in words.
        encoder_tokens: Tokens that went through encoders in training, padding not counted; see
            :class:`~benchmarks.rivals.train.TokenCount`.
        decoder_tokens: The same of a decoder.
        seconds: Seconds of training; reading, segmenting and tokenizing are not in them.
        log: The Trainer's log lines.
    """

    rival: str
    title: str
    output: Path
    base: str
    seed: int
    steps: int
    batch_size: int
    max_view_length: int | None
    dtype: str
    preset: Preset
    documents: int
    passes: str
    encoder_tokens: int
    decoder_tokens: int
    seconds: float
    log: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, without the place of the output."""
        values = {name: value for name, value in asdict(self).items() if name != "output"}
        values["preset"] = {**vars(self.preset), "view": repr(self.preset.view)}
        return values
