"""What is compared: encoders that need no training, objectives trained alike, and DocSplit with one thing changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from benchmarks.grid.scales import Scale
from benchmarks.grid.views import FrozenView, WordSplit
from benchmarks.rivals import ENCODERS, HUB_MODELS, RIVALS
from simlte_st.data import DocSplit
from simlte_st.training import Preset, get_preset

DOCSPLIT, WITHOUT_MLM = "docsplit", "docsplit-no-mlm"
SIMCSE = "simcse"
Group = Literal["untrained", "hub", "trained", "ablations"]
GROUPS: tuple[Group, ...] = ("untrained", "hub", "trained", "ablations")


@dataclass(frozen=True)
class System:
    """One row of the tables.

    Attributes:
        name: Its name on the command line and in file names.
        title: What tables call it.
        group: Which rows it stands among.
        rival: The objective that trains it; empty where nothing does.
        changes: What it has other than the scale's preset.
        corpus_share: Share of the budget's documents that it meets, as often as it needs to; None for the whole corpus.
        factor: Of an ablation: what is changed.
        value: And to what.
        against: The system that it differs from in this alone.
    """

    name: str
    title: str
    group: Group
    rival: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    corpus_share: float | None = None
    factor: str = ""
    value: str = ""
    against: str = DOCSPLIT

    @property
    def ranks_only(self) -> bool:
        """Whether it has scores for pairs but no vectors."""
        return self.name == "bm25"

    @property
    def embeds(self) -> bool:
        """Whether it has dense vectors."""
        return self.name != "tfidf" and not self.ranks_only

    def contaminated(self, data: str) -> bool:
        """Return whether it was trained on the texts of a data set, so that its numbers there mean nothing."""
        return self.name in HUB_MODELS and data in HUB_MODELS[self.name].contaminated


def _trained(name: str, **changes: Any) -> System:
    return System(name, RIVALS[name].title, "trained", name, changes)


# The MLM term is DocSplit's; the others are as they were published, without one.
TRAINED = (
    _trained(SIMCSE, mlm_weight=0.0),
    _trained("simcse-long", mlm_weight=0.0),
    _trained("contrastive-tension"),
    _trained("tsdae"),
    _trained("contriever", mlm_weight=0.0),
    _trained("inverse-cloze", mlm_weight=0.0),
    _trained("word-deletion", mlm_weight=0.0),
    _trained(DOCSPLIT),
    System("simcse-mlm", "SimCSE, with MLM", "trained", SIMCSE),
    System(WITHOUT_MLM, "DocSplit, without MLM", "trained", DOCSPLIT, {"mlm_weight": 0.0}),
)


def _ablation(name: str, factor: str, value: str, against: str = DOCSPLIT, **other: Any) -> System:
    share = other.pop("corpus_share", None)
    return System(f"ablation-{name}", f"{factor}: {value}", "ablations", DOCSPLIT, other, share, factor, value, against)


QUARTER = "ablation-epochs-fresh"
ABLATIONS = (
    _ablation("split-0.3", "split ratio", "0.3", view=DocSplit(p=0.3)),
    _ablation("split-0.7", "split ratio", "0.7", view=DocSplit(p=0.7)),
    _ablation("unit-word", "unit", "words", view=WordSplit()),
    _ablation("mlm-0.5", "MLM weight", "0.5", mlm_weight=0.5),
    _ablation("mlm-shared", "MLM input", "shared", mlm_input="shared"),
    _ablation("pooling-cls", "pooling", "[CLS]", pooling="cls"),
    _ablation("pooling-mean", "pooling", "mean", pooling="mean"),
    _ablation("temperature-0.01", "temperature", "0.01", scale=100.0),
    _ablation("temperature-0.1", "temperature", "0.1", scale=10.0),
    _ablation("batch-12", "batch size", "12", batch_size=12),
    _ablation("batch-108", "batch size", "108", batch_size=108),
    _ablation("epochs-fresh", "epochs", "4 of a quarter, fresh splits", corpus_share=0.25),
    _ablation("epochs-frozen", "epochs", "4 of a quarter, frozen splits", QUARTER, view=FrozenView(DocSplit()),
              corpus_share=0.25),
)  # fmt: skip
"""DocSplit with one thing changed. MLM weight 0 is ``docsplit-no-mlm``, among the trained."""

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        System("tfidf", "TF-IDF", "untrained"),
        System("bm25", "BM25", "untrained"),
        *(System(name, title, "hub" if name in HUB_MODELS else "untrained") for name, title in ENCODERS.items()),
        *TRAINED,
        *ABLATIONS,
    )
}
"""Every system by name, in the order of the tables."""


def chosen_systems(scale: Scale, asked: Sequence[str] | None) -> list[System]:
    """Choose by names of systems or groups; without any, all but those of the Hub where the scale leaves them out.

    An ablation that would be the scale's DocSplit itself (another pooling than that of the scale) is left out.
    """
    unknown = set(asked or ()) - set(SYSTEMS) - set(GROUPS)
    if unknown:
        raise SystemExit(f"No system is called {', '.join(sorted(unknown))}; there are: {', '.join(SYSTEMS)}.")
    groups = set(GROUPS) if scale.hub else set(GROUPS) - {"hub"}
    wanted = set(asked) if asked else groups
    return [
        system
        for system in SYSTEMS.values()
        if (system.name in wanted or system.group in wanted) and not is_default(system, scale)
    ]


def is_default(system: System, scale: Scale) -> bool:
    """Return whether an ablation changes nothing at a scale."""
    if system.group != "ablations" or system.corpus_share is not None:
        return False
    return preset_of(system, scale) == preset_of(SYSTEMS[DOCSPLIT], scale)


def preset_of(system: System, scale: Scale, seed: int = 0) -> Preset:
    """Return all settings that a system is trained with, but for what its objective sets itself."""
    preset = get_preset(scale.preset).changed(
        batch_size=scale.batch_size,
        max_view_length=scale.tokens,
        learning_rate=scale.learning_rate,
        pooling=scale.pooling,
    )
    preset = preset.changed(**system.changes)
    if system.rival == "contrastive-tension":
        # One pair in eight is positive. The budget stays that of documents: see steps_of.
        preset = preset.changed(batch_size=max(8, preset.batch_size // 8 * 8))
    if isinstance(preset.view, FrozenView):
        preset = preset.changed(view=replace(preset.view, seed=seed))
    return preset


def steps_of(system: System, scale: Scale, corpus_documents: int) -> int:
    """Return the steps that make the scale's budget of documents in the system's batches."""
    budget = corpus_documents if scale.steps is None else scale.steps * scale.batch_size
    return max(1, round(budget / preset_of(system, scale).batch_size))
