"""Train DocSplit or a competing objective from the same base, documents and budget."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.rivals.contrastive_tension import train_contrastive_tension
from benchmarks.rivals.stock import RivalJob
from benchmarks.rivals.tsdae import train_tsdae
from simlte_st.data.views import Crop, Identity, InverseCloze
from simlte_st.files import atomic_path
from simlte_st.training.presets import Preset, get_preset
from simlte_st.training.train import train

CHEAP: dict[str, Any] = {"batch_size": 32, "warmup": 0.1, "mlm_weight": 0.0, "dropout": 0.0}
CONTRASTIVE = get_preset("docsplit-bert").changed(**CHEAP)
"""The papers' objective for a base that is a sentence encoder already: without MLM and dropout."""


def train_views(job: RivalJob) -> None:
    """Train a rival that differs from DocSplit only in its view: :func:`simlte_st.train` on all documents."""
    train(
        job.documents,
        job.path,
        base=job.base,
        preset=job.preset.changed(max_length=job.preset.max_length or "base"),
        held_out=0.0,
        max_steps=job.steps,
        seed=job.seed,
        bf16=job.bf16,
        save_steps=job.steps,  # nobody resumes it
        progress=False,
    )


@dataclass(frozen=True)
class Rival:
    """An objective that trains an encoder on documents without labels.

    Attributes:
        title: Its name in tables.
        settings: Settings of the preset that make it itself; all others are the same for all.
        train: Does the job.
    """

    title: str
    settings: dict[str, Any] = field(default_factory=dict)
    train: Callable[[RivalJob], None] = train_views


# Only dropout tells SimCSE's views apart, so it has its own: BERT's.
RIVALS: dict[str, Rival] = {
    "docsplit": Rival("DocSplit"),
    "simcse": Rival("SimCSE", {"view": Identity(unit="sentence"), "dropout": 0.1}),  # Gao et al., 2021
    "simcse-long": Rival("SimCSE-long", {"view": Identity(), "dropout": 0.1}),  # the SimLTE paper, 3.3
    "contriever": Rival("Contriever (crops)", {"view": Crop()}),  # Izacard et al., 2021
    "inverse-cloze": Rival("Inverse cloze", {"view": InverseCloze()}),  # Lee et al., 2019
    "contrastive-tension": Rival("Contrastive Tension", train=train_contrastive_tension),  # Carlsson et al., 2021
    "tsdae": Rival("TSDAE", train=train_tsdae),  # Wang et al., 2021
}
"""Every rival by name."""


def train_rival(
    name: str,
    documents: Any,
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    steps: int,
    batch_size: int,
    max_view_length: int | None,
    preset: Preset,
    seed: int = 0,
    bf16: bool = False,
) -> Preset:
    """Train one of :data:`RIVALS` from a base, on a budget that is the same for all, and return its settings.

    The budget is ``steps`` batches of ``batch_size`` documents, of which at most ``max_view_length`` tokens are read as
    one text, with the same optimizer and learning rate. The work differs: two passes of an encoder a document (as many
    again for masked copies with MLM), or one of an encoder and one of a decoder (TSDAE); SimCSE reads sentences, TSDAE
    the rest of a text. No document is held out.
    """
    rival = RIVALS[name]
    settings = preset.changed(batch_size=batch_size, max_view_length=max_view_length).changed(**rival.settings)
    with atomic_path(Path(output)) as path:
        rival.train(RivalJob(documents, base, path, settings, steps, seed, bf16))
    return settings
