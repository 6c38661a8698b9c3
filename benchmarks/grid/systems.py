"""The systems at each scale: untrained encoders, training objectives, and ablations of DocSplit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from benchmarks.grid.views import FrozenView, WordSplit
from benchmarks.rivals import RIVALS
from simlte_st.data import DocSplit
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training import Preset, get_preset

DOCSPLIT, WITHOUT_MLM = "docsplit", "docsplit-no-mlm"
SIMCSE = "simcse"
Group = Literal["untrained", "hub", "trained", "ablations"]
GROUPS: tuple[Group, ...] = ("untrained", "hub", "trained", "ablations")

SHOTS = {"fakenews": 10, "arxiv": 10}
"""Few-shot examples per class, if not 5 (DocSplit, Appendix A.1)."""


@dataclass(frozen=True)
class Scale:
    """Size and settings of the experiments.

    Attributes:
        name: Name on the command line.
        base: The model that all systems start from.
        preset: The papers' settings, which all trained systems share except for their own changes.
        seeds: Seeds of the training runs.
        corpus_documents: Training documents, drawn once from the corpus; None for all.
        steps: Optimizer steps; None for one pass over the corpus.
        batch_size: Documents per step.
        tokens: Maximum number of tokens of a view; None for the base's limit.
        learning_rate: Peak learning rate.
        bf16: Train and embed in bfloat16.
        read: Maximum number of tokens of an embedded text.
        train_documents: Training documents of the probe, drawn once from each data set; None for all.
        test_documents: Test documents of the probe, drawn once from each data set; None for all.
        test_share: Share of each class for the test if a data set has no split.
        head: The probe: the papers' ``"mlp"``, or ``"logistic"``.
        draws: Draws of the few-shot experiment.
        ablation_data: Data sets of the ablations.
        link_seeds: Draws of parts, negatives and head in link classification.
        redundancy_documents: Maximum number of documents per data set for redundancy.
        attention_documents: Maximum number of documents for attention.
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
    bf16: bool = False
    read: int = 512
    train_documents: int | None = None
    test_documents: int | None = None
    test_share: float = 0.1
    head: Literal["mlp", "logistic"] = "mlp"
    draws: int = 10
    ablation_data: tuple[str, ...] = ("20news", "bbc")
    link_seeds: int = 3
    redundancy_documents: int = 10_000
    attention_documents: int = 1000


SCALES = {
    "cpu": Scale(
        "cpu", corpus_documents=3000, steps=40, tokens=128, read=256, train_documents=1000, test_documents=1000,
        test_share=0.5, link_seeds=1, redundancy_documents=1000, attention_documents=100,
    ),
    # The papers' scale: BERT, one pass over the corpus, 512 tokens, whole data sets. A tenth of a data set without a
    # split is for testing, as the papers' accuracies on BBC suggest.
    "gpu": Scale("gpu", base="bert-base-uncased"),
    # The papers' experiments with Longformer.
    "gpu-long": Scale("gpu-long", "allenai/longformer-base-4096", "docsplit-longformer", batch_size=12, read=4096),
}  # fmt: skip
"""All scales by name."""


@dataclass(frozen=True)
class System:
    """One row of the tables.

    Attributes:
        name: Name on the command line and in file names.
        title: Name in tables.
        group: Group of rows in the tables.
        rival: Training objective; empty for untrained systems.
        changes: Changes to the scale's preset.
        corpus_share: Share of the budget's documents to train on repeatedly; None for the whole corpus.
        against: The reference system of an ablation.
        repository: Repository of a model on the Hub.
        pooling: Pooling of an untrained encoder.
        prompt: Prefix of each text.
        trained_on: Data sets in the model's training data, on which it is not measured.
    """

    name: str
    title: str
    group: Group
    rival: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    corpus_share: float | None = None
    against: str = DOCSPLIT
    repository: str = ""
    pooling: str = "keep"
    prompt: str = ""
    trained_on: tuple[str, ...] = ()

    @property
    def embeds(self) -> bool:
        """Whether the system has dense vectors."""
        return self.name not in ("tfidf", "bm25")

    def file_name(self, seed: int) -> str:
        """Return the stem of the system's files, with a seed for trained systems."""
        return f"{self.name}-{seed}" if self.rival else self.name


def _hub_system(name: str, title: str, repository: str, pooling: str = "keep", **fields: Any) -> System:
    return System(name, f"{title} (Hub)", "hub", repository=repository, pooling=pooling, **fields)


def _trained_system(name: str, **changes: Any) -> System:
    return System(name, RIVALS[name].title, "trained", name, changes)


def _ablation_system(name: str, title: str, **changes: Any) -> System:
    fields = {key: changes.pop(key) for key in ("corpus_share", "against") if key in changes}
    return System(f"ablation-{name}", title, "ablations", DOCSPLIT, changes, **fields)


PROMPT = "Represent the document for classification: "
SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        System("tfidf", "TF-IDF", "untrained"),
        System("bm25", "BM25", "untrained"),
        System("base-cls", "base, [CLS]", "untrained", pooling="cls"),
        System("base-mean", "base, mean", "untrained", pooling="mean"),
        _hub_system("facebook-contriever", "Contriever", "facebook/contriever", "mean"),
        # Trained on labelled tasks that include 20 Newsgroups, for which DocSplit (4.2) prints no score.
        _hub_system("instructor", "INSTRUCTOR", "hkunlp/instructor-large", prompt=PROMPT, trained_on=("20news",)),
        _hub_system("longformer", "LongFormer", "allenai/longformer-base-4096", "cls"),
        _hub_system("bigbird", "BigBird", "google/bigbird-roberta-base", "cls"),
        # Only DocSplit has the MLM term; the others have none, as published.
        _trained_system(SIMCSE, mlm_weight=0.0),
        _trained_system("simcse-long", mlm_weight=0.0),
        _trained_system("contrastive-tension"),
        _trained_system("tsdae"),
        _trained_system("contriever", mlm_weight=0.0),
        _trained_system("inverse-cloze", mlm_weight=0.0),
        _trained_system(DOCSPLIT),
        System(WITHOUT_MLM, "DocSplit, without MLM", "trained", DOCSPLIT, {"mlm_weight": 0.0}),
        _ablation_system("split-0.3", "split ratio: 0.3", view=DocSplit(p=0.3)),
        _ablation_system("unit-word", "unit: words", view=WordSplit()),
        _ablation_system("mlm-shared", "MLM input: shared", mlm_input="shared"),
        _ablation_system("pooling-mean", "pooling: mean", pooling="mean"),
        _ablation_system("temperature-0.1", "temperature: 0.1", scale=10.0),
        _ablation_system("batch-12", "batch size: 12", batch_size=12),
        _ablation_system("epochs-fresh", "epochs: 4 of a quarter, fresh splits", corpus_share=0.25),
        _ablation_system(
            "epochs-frozen", "epochs: 4 of a quarter, frozen splits", view=FrozenView(DocSplit()), corpus_share=0.25,
            against="ablation-epochs-fresh",
        ),
    )
}  # fmt: skip
"""All systems by name, in the order of the tables."""


def select_systems(requested: Sequence[str] | None) -> list[System]:
    """Return systems by names or groups (default: all except those on the Hub)."""
    unknown = set(requested or ()) - set(SYSTEMS) - set(GROUPS)
    if unknown:
        raise SystemExit(f"Unknown systems: {', '.join(sorted(unknown))}. Choose from: {', '.join(SYSTEMS)}.")
    selected = set(requested) if requested else set(GROUPS) - {"hub"}
    return [system for system in SYSTEMS.values() if system.name in selected or system.group in selected]


def system_preset(system: System, scale: Scale, seed: int = 0) -> Preset:
    """Return a system's training settings, to which its objective adds its own."""
    preset = get_preset(scale.preset).changed(
        batch_size=scale.batch_size, max_view_length=scale.tokens, learning_rate=scale.learning_rate, pooling="cls"
    )
    preset = preset.changed(**system.changes)
    if system.rival == "contrastive-tension":
        # One pair in eight is positive. The budget still counts documents; see step_count.
        preset = preset.changed(batch_size=max(8, preset.batch_size // 8 * 8))
    if isinstance(preset.view, FrozenView):
        preset = preset.changed(view=replace(preset.view, seed=seed))
    return preset


def step_count(system: System, scale: Scale, corpus_documents: int) -> int:
    """Return the number of steps that exhaust the scale's budget of documents."""
    budget = corpus_documents if scale.steps is None else scale.steps * scale.batch_size
    return max(1, round(budget / system_preset(system, scale).batch_size))
