"""Presets: training settings for each kind of base."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

from annotated_types import Interval

from simlte_st.arguments import Count, NotNegative, Plural, Positive, PositiveShare, check_arguments, check_fields
from simlte_st.errors import ConfigurationError, did_you_mean
from simlte_st.views.views import DocSplit, View

Warmup = Annotated[float, Interval(ge=0, lt=1)]
Epochs = Annotated[float, Interval(gt=0, le=1_000_000)]
MLMInput = Literal["separate", "shared"]
Pooling = Literal["cls", "mean", "keep"]
Dropout = Annotated[float, Interval(ge=0, lt=1)]
MaxLength = Count | Literal["base"]
Backbone = Literal["longformer", "chunk-mean"]

STATIC_PRESET = "docsplit-static"
"""The preset for static models."""

ONLY_ENCODERS = (
    "mlm_weight", "mlm_probability", "mlm_input", "mini_batch_num_tokens", "pooling", "dropout", "attention_dropout",
    "max_view_length", "max_length", "backbone",
)  # fmt: skip
"""Fields that do not apply to static models, which have no layers and no length limit."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Training settings.

    All fields except ``steps`` and ``most_passes`` are arguments of :func:`simlte_st.train`.

    Attributes:
        view: How to draw the two views of a document.
        batch_size: Batch size in documents, over all processes.
        learning_rate: Peak learning rate of AdamW.
        warmup: Fraction of the steps used for learning-rate warmup; a linear decay follows.
        epochs: Number of passes over the documents; used only if ``steps`` is None.
        steps: Number of optimizer steps.
        most_passes: Maximum number of passes over the documents, which can end a run before it reaches ``steps``.
        scale: Inverse temperature of the similarities, 1/tau.
        symmetric: Whether to compute the contrastive loss in both directions.
        mlm_weight: Weight of the masked-language-model (MLM) loss.
        mlm_probability: Fraction of the tokens to mask for the MLM loss.
        mlm_input: ``"separate"`` for an extra pass over masked views, ``"shared"`` for one pass for both losses.
        mini_batch_num_tokens: Number of tokens per forward pass (gradient caching), or None for the whole batch.
        pooling: ``"cls"``, ``"mean"``, or ``"keep"`` to keep the base's pooling.
        dropout: Dropout probability in the encoder (default: as in the checkpoint).
        attention_dropout: Dropout probability of attention weights (default: ``dropout``).
        max_view_length: Maximum view length in tokens (default: the model's limit).
        max_length: Maximum document length of the finished model in tokens; ``"base"`` for the base's limit.
        backbone: How to convert a base that reads fewer than ``max_length`` tokens.

    Raises:
        ConfigurationError: A value is out of range, or ``backbone`` is set without ``max_length``.

    Example:
        ::

            preset = get_preset("docsplit-tuned").changed(learning_rate=1e-5)
            result = train("my_documents", "my-model", preset=preset)
    """

    view: View = field(default_factory=DocSplit)
    batch_size: Plural = 36
    learning_rate: Positive = 5e-5
    warmup: Warmup = 0.0
    epochs: Epochs = 1.0
    steps: Count | None = None
    most_passes: Positive | None = None
    scale: Positive = 20.0
    symmetric: bool = False
    mlm_weight: NotNegative = 0.1
    mlm_probability: PositiveShare = 0.15
    mlm_input: MLMInput = "separate"
    mini_batch_num_tokens: Count | None = None
    pooling: Pooling = "cls"
    dropout: Dropout | None = None
    attention_dropout: Dropout | None = None
    max_view_length: Count | None = None
    max_length: MaxLength | None = None
    backbone: Backbone | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.backbone is not None and self.max_length in (None, "base"):
            raise ConfigurationError(f"backbone={self.backbone!r} requires max_length=, the number of tokens to read.")

    def changed(self, **changes: Any) -> Preset:
        """Return a copy with some fields replaced; a field given as None stays the same.

        Raises:
            ConfigurationError: A value is out of range.
        """
        return replace(self, **{name: setting for name, setting in changes.items() if setting is not None})

    def planned_steps(self, batches: int) -> int:
        """Return the number of optimizer steps, given the number of batches per epoch."""
        if self.steps is None:
            return math.ceil(batches * self.epochs)
        return self.steps if self.most_passes is None else min(self.steps, math.ceil(batches * self.most_passes))


PRESETS: dict[str, Preset] = {
    # From DocSplit, section 4.1, and SimLTE, section 3.1: [CLS] pooling; batches of 36 for BERT, 12 for Longformer.
    "docsplit-bert": Preset(batch_size=36),
    # A laptop's memory holds about four long papers at a time (16,384 tokens), not the whole batch of twelve.
    "docsplit-longformer": Preset(batch_size=12, attention_dropout=0.0, mini_batch_num_tokens=16384, max_length=4096),
    # For sentence encoders. The papers' temperature of 0.05 pushes the most similar documents apart, which destroys the
    # base's knowledge; 0.5 pushes all documents apart a little. Steps and view length come from
    # benchmarks/results/recipe.md: longer training and longer views help on some corpora (AG News) but hurt on others
    # (20 Newsgroups, FakeNews).
    "docsplit-tuned": Preset(
        batch_size=32, learning_rate=2e-5, warmup=0.1, steps=30, scale=2.0, mlm_weight=0.0, pooling="keep", dropout=0.0,
        max_view_length=64,
    ),
    # For static models, whose views are whole halves of documents. A lower temperature, or more passes over a small
    # corpus, hurts on most data sets. The learning rate suits token vectors scaled to teaching.TABLE_SIZE. On
    # 6,300 posts, 689 steps would score better (68.3 instead of 67.0) but take longer. With the taught simlte-static as
    # the base, learning rates of .005, .01 and .04, and 7 or 28 passes, did not score better on both six labelled sets
    # and five search sets.
    STATIC_PRESET: Preset(
        batch_size=128, learning_rate=2e-2, steps=500, most_passes=14, scale=1.0, symmetric=True, mlm_weight=0.0,
        pooling="keep",
    ),
}  # fmt: skip
"""Presets by name."""


@check_arguments
def get_preset(name: str) -> Preset:
    """Return the preset with a given name.

    Raises:
        ConfigurationError: No preset has this name.
    """
    if name not in PRESETS:
        names = [*PRESETS, "auto"]
        raise ConfigurationError(f"Unknown preset {name!r}: use one of {', '.join(names)}.{did_you_mean(name, names)}")
    return PRESETS[name]


def preset_changes(arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return the preset fields that a run's arguments replace, with their new values."""
    names = (preset_field.name for preset_field in fields(Preset))
    changes = {name: argument for name in names if (argument := arguments.get(name)) is not None}
    if "epochs" in changes:
        changes["steps"] = None
    if arguments["max_steps"] is not None:
        changes |= {"steps": arguments["max_steps"], "most_passes": None}
    return changes
