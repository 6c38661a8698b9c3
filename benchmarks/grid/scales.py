"""How large the grid is: for a test, for an evening on two cores, or as in the papers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.grid.printed import DATA
from simlte_st.models.names import PACKAGED_BASE

PAPERS_SHOTS = {"fakenews": 10, "arxiv": 10}
"""Examples a class of the few-shot experiment where they are not 5: DocSplit, Appendix A.1."""


@dataclass(frozen=True)
class Scale:
    """The grid's size. What decides a number stands in the settings of that number's cell.

    Attributes:
        name: What it is called.
        base: The model that all systems begin with; empty where base, corpus and data are made on the spot.
        preset: The papers' settings, which all trained systems share but for what makes each of them itself.
        seeds: Trainings of each trained system.
        corpus_documents: Documents of the corpus to train on, drawn once; None for all.
        steps: Steps of a training; None for one pass over the corpus.
        batch_size: Documents in a step.
        tokens: Most tokens of a view; None for what the base reads.
        learning_rate: Peak learning rate.
        pooling: Of all trained systems.
        bf16: Whether systems are trained, and texts embedded, in bfloat16.
        read: Tokens read of a text when it is embedded.
        chunk_tokens: Tokens that chunk-mean reads of it.
        train_documents: Documents of a data set to learn from, drawn once; None for all.
        test_documents: Documents to score on, likewise.
        test_share: Share of each class for the test, where a data set has no split.
        head: The probe: the papers' ``"mlp"``, or ``"logistic"``.
        draws: Draws of the few-shot experiment.
        shots: Examples a class of the few-shot experiment, where they are not 5.
        curve: Examples a class of the learning curve.
        curve_data: The data set of the learning curve.
        ablation_data: Data sets that ablations are measured on; None for all.
        hub: Whether models of the Hub are measured if nothing else is said.
        link_seeds: Draws of parts, negatives and head in link classification.
        redundancy_documents: Documents of a corpus whose redundancy is measured.
        attention_documents: Documents whose attention is measured.
        mteb_documents: Test documents of a task of mteb.
    """

    name: str
    base: str = PACKAGED_BASE
    preset: str = "docsplit-bert"
    seeds: tuple[int, ...] = (0, 1, 2)
    corpus_documents: int | None = None
    steps: int | None = None
    batch_size: int = 36
    tokens: int | None = None
    learning_rate: float = 5e-5
    pooling: Literal["cls", "mean"] = "cls"
    bf16: bool = False
    read: int = 512
    chunk_tokens: int = 4096
    train_documents: int | None = None
    test_documents: int | None = None
    test_share: float = 0.5
    head: Literal["mlp", "logistic"] = "mlp"
    draws: int = 10
    shots: Mapping[str, int] = field(default_factory=lambda: PAPERS_SHOTS)
    curve: tuple[int, ...] = (1, 2, 5, 10, 20, 50)
    curve_data: str = "20news"
    ablation_data: tuple[str, ...] | None = None
    hub: bool = False
    link_seeds: int = 3
    redundancy_documents: int = 1000
    attention_documents: int = 100
    mteb_documents: int = 500

    @property
    def dtype(self) -> str:
        """What systems are trained in, and texts embedded."""
        return "bfloat16" if self.bf16 else "float32"


_WHOLE: dict[str, Any] = {
    "test_share": 0.1,
    "redundancy_documents": 10_000,
    "attention_documents": 1000,
    "mteb_documents": 2048,
}

SCALES = {
    "tiny": Scale(
        name="tiny",
        base="",
        seeds=(0,),
        corpus_documents=128,
        steps=2,
        batch_size=8,
        tokens=32,
        learning_rate=1e-3,
        read=48,
        chunk_tokens=96,
        train_documents=40,
        test_documents=40,
        head="logistic",
        draws=2,
        shots=dict.fromkeys(DATA, 2),
        curve=(1, 2, 4),
        ablation_data=("20news",),
        link_seeds=1,
        redundancy_documents=12,
        attention_documents=6,
        mteb_documents=24,
    ),
    "cpu": Scale(
        name="cpu",
        corpus_documents=3000,
        steps=40,
        tokens=128,
        read=256,
        chunk_tokens=1024,
        train_documents=1000,
        test_documents=1000,
        ablation_data=("20news", "bbc"),
        link_seeds=1,
    ),
    # The papers': BERT, [CLS], one pass over the corpus, 512 tokens, data sets whole. Where a data set has no split,
    # a tenth is the test, as the papers' accuracies on BBC tell.
    "gpu": Scale(name="gpu", base="bert-base-uncased", hub=True, **_WHOLE),
    # Their other half, from Longformer.
    "gpu-long": Scale(
        name="gpu-long",
        base="allenai/longformer-base-4096",
        preset="docsplit-longformer",
        batch_size=12,
        read=4096,
        **_WHOLE,
    ),
}
"""Every scale by name."""
