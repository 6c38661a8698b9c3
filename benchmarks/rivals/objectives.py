"""The objectives that DocSplit is compared with, itself among them; one entry each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.rivals.contrastive_tension import train_contrastive_tension
from benchmarks.rivals.job import Outcome, RivalJob
from benchmarks.rivals.tsdae import train_tsdae
from benchmarks.rivals.word_deletion import WordDeletion
from simlte_st.data.views import Crop, Identity, InverseCloze
from simlte_st.errors import ConfigurationError
from simlte_st.training.train import train

_TWO_VIEWS = "2 passes of the encoder, one a view; as many again over masked copies where mlm_weight is above 0"


def train_views(job: RivalJob) -> Outcome:
    """Train a rival that differs from DocSplit in nothing but its view: :func:`simlte_st.train` on all documents."""
    result = train(
        job.documents,
        job.path,
        base=job.base,
        preset=job.preset.changed(max_length=job.preset.max_length or "base"),
        held_out=0.0,
        max_steps=job.steps,
        seed=job.seed,
        bf16=job.bf16,
        save_steps=job.steps,  # nobody resumes it
        progress=job.progress,
    )
    return Outcome(result.corpus.documents, result.seconds, result.log)


@dataclass(frozen=True)
class Rival:
    """An objective that trains an encoder on documents without labels.

    Attributes:
        title: What tables call it.
        source: Where it comes from.
        passes: What a document costs in a step.
        settings: Settings of the preset without which it would not be itself; all others are the same for all.
        train: Does the job.
    """

    title: str
    source: str
    passes: str = _TWO_VIEWS
    settings: dict[str, Any] = field(default_factory=dict)
    train: Callable[[RivalJob], Outcome] = train_views


# Nothing but dropout tells SimCSE's views apart, so it has its own: BERT's.
RIVALS: dict[str, Rival] = {
    "docsplit": Rival("DocSplit", "the DocSplit and SimLTE papers"),
    "simcse": Rival("SimCSE", "Gao et al., 2021", settings={"view": Identity(unit="sentence"), "dropout": 0.1}),
    "simcse-long": Rival("SimCSE-long", "the SimLTE paper, 3.3", settings={"view": Identity(), "dropout": 0.1}),
    "contriever": Rival("Contriever (crops)", "Izacard et al., 2021", settings={"view": Crop()}),
    "inverse-cloze": Rival("Inverse cloze", "Lee et al., 2019", settings={"view": InverseCloze()}),
    "word-deletion": Rival("Word deletion", "CLEAR, Wu et al., 2020", settings={"view": WordDeletion()}),
    "contrastive-tension": Rival(
        "Contrastive Tension",
        "Carlsson et al., 2021",
        "a document is a pair: 2 passes, one in each of two encoders, of which the second is kept",
        train=train_contrastive_tension,
    ),
    "tsdae": Rival(
        "TSDAE",
        "Wang et al., 2021",
        "1 pass of the encoder over the 40% of the words that are left, 1 of the decoder over all",
        train=train_tsdae,
    ),
}
"""Every rival by name."""


def get_rival(name: str) -> Rival:
    """Find a rival."""
    if name not in RIVALS:
        raise ConfigurationError(f"Unknown rival {name!r}: use one of {', '.join(RIVALS)}.")
    return RIVALS[name]
