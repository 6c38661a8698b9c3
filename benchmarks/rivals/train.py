"""Train DocSplit or a competing objective on the same base, documents and budget."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.rivals.contrastive_tension import train_contrastive_tension
from benchmarks.rivals.stock import RivalJob
from benchmarks.rivals.tsdae import train_tsdae
from simlte_st import train
from simlte_st.data import Crop, Identity, SegmentedDocument
from simlte_st.files import atomic_path
from simlte_st.training import Preset, get_preset
from simlte_st.training.run import RunFolder
from simlte_st.views.views import ViewSpans, choose_window, whole_sentences

CONTRASTIVE = get_preset("docsplit-bert").changed(batch_size=32, warmup=0.1, mlm_weight=0.0, dropout=0.0)
"""The papers' objective without MLM and dropout, for a base that is already a sentence encoder."""


def train_views(job: RivalJob) -> None:
    """Train a rival that differs from DocSplit only in its view, with :func:`simlte_st.train`, on all documents.

    An interrupted run continues from its last checkpoint in ``OUTPUT.run``.
    """
    train(
        job.documents,
        job.path,
        base=job.base,
        preset=job.preset.changed(max_length=job.preset.max_length or "base"),
        held_out=0.0,
        max_steps=job.steps,
        seed=job.seed,
        bf16=job.bf16,
        resume=bool(RunFolder(job.path).saved_settings),
        overwrite=True,  # an interrupted caller may not have recorded the finished model
        progress=False,
    )


@dataclass(frozen=True)
class InverseCloze:
    """The inverse cloze task (Lee et al., 2019): a sentence and its context.

    Attributes:
        keep_sentence: Probability that the sentence stays in the context; Lee et al. use 0.1.
    """

    keep_sentence: float = 0.1

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document with at least two sentences, because a single sentence has no context."""
        return len(document.tokens) > 1

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Draw a sentence of a window as the first view; the window is the second. See :meth:`View.draw`."""
        window = choose_window(document.tokens, budget, rng)
        sentence = rng.choice(window)
        keep = rng.random() < self.keep_sentence
        return whole_sentences([sentence]), whole_sentences([index for index in window if keep or index != sentence])


@dataclass(frozen=True)
class Rival:
    """A label-free training objective.

    Attributes:
        title: Name in tables.
        settings: Changes to the common preset.
        train: Function that trains it.
    """

    title: str
    settings: dict[str, Any] = field(default_factory=dict)
    train: Callable[[RivalJob], None] = train_views


# SimCSE's two views differ only by dropout, so it keeps BERT's.
RIVALS: dict[str, Rival] = {
    "docsplit": Rival("DocSplit"),
    "simcse": Rival("SimCSE", {"view": Identity(unit="sentence"), "dropout": 0.1}),  # Gao et al., 2021
    "simcse-long": Rival("SimCSE-long", {"view": Identity(), "dropout": 0.1}),  # the SimLTE paper, 3.3
    "contriever": Rival("Contriever (crops)", {"view": Crop()}),  # Izacard et al., 2021
    "inverse-cloze": Rival("Inverse cloze", {"view": InverseCloze()}),  # Lee et al., 2019
    "contrastive-tension": Rival("Contrastive Tension", train=train_contrastive_tension),  # Carlsson et al., 2021
    "tsdae": Rival("TSDAE", train=train_tsdae),  # Wang et al., 2021
}
"""All rivals by name."""


def train_rival(
    name: str,
    documents: Any,
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    steps: int,
    preset: Preset,
    seed: int = 0,
    bf16: bool = False,
) -> Preset:
    """Train one of :data:`RIVALS` on the common budget and return its settings.

    The budget is ``steps`` batches of the preset's size and view length, with its optimizer and learning rate. Compute
    per document differs: two passes of an encoder (four with MLM), or one pass each of an encoder and a decoder
    (TSDAE). SimCSE reads sentences, and TSDAE's encoder the undeleted words of a text. No documents are held out. The
    same call continues an interrupted run; Contrastive Tension and TSDAE start again.
    """
    rival = RIVALS[name]
    settings = preset.changed(**rival.settings)
    job = RivalJob(documents, base, Path(output), settings, steps, seed, bf16)
    if rival.train is train_views:
        train_views(job)
    else:
        with atomic_path(job.path) as path:
            rival.train(replace(job, path=path))
    return settings
