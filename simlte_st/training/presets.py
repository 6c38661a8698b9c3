"""Presets: how to train, whatever the base and the documents are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

from annotated_types import Interval

from simlte_st.arguments import Count, Positive, check_fields
from simlte_st.data.views import DocSplit, View
from simlte_st.errors import ConfigurationError, did_you_mean

BatchSize = Annotated[int, Interval(ge=2, le=2**31 - 1)]
Warmup = Annotated[float, Interval(ge=0, lt=1)]
Epochs = Annotated[float, Interval(gt=0, le=1_000_000)]
Weight = Annotated[float, Interval(ge=0)]
MaskedShare = Annotated[float, Interval(gt=0, le=1)]
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
"""Fields of a preset that do not apply to a static model, which has no layers and reads whole documents."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """How to train, whatever the base and the documents are.

    All fields but ``steps`` and ``most_passes`` are arguments of :func:`simlte_st.train`, which explains them.

    Attributes:
        view: How the two views of a document are drawn.
        batch_size: Documents in a batch, shared by all processes.
        learning_rate: Peak learning rate of AdamW.
        warmup: Share of the steps in which the learning rate rises; it then falls linearly.
        epochs: Passes over the documents, if ``steps`` is None.
        steps: Optimizer steps, whatever the number of documents.
        most_passes: Passes over few documents after which a run ends before ``steps``.
        scale: Inverse temperature of the similarities, 1/tau.
        symmetric: Whether the second view must also find the first among those of the batch.
        mlm_weight: Weight of the masked-language-model term of the loss.
        mlm_probability: Share of the tokens masked for it.
        mlm_input: ``"separate"`` or ``"shared"``.
        mini_batch_num_tokens: Tokens that pass through the model at a time (gradient caching).
        pooling: ``"cls"``, ``"mean"``, or ``"keep"`` for the base's.
        dropout: Dropout probability in the encoder; None for the checkpoint's.
        attention_dropout: Dropout probability of attention weights, if it is another one.
        max_view_length: Maximum view length in tokens; None for as many as the model reads.
        max_length: Tokens of a document that the finished model reads; ``"base"`` for as many as the base.
        backbone: How a base that reads fewer tokens than ``max_length`` is converted.

    Raises:
        ConfigurationError: A value is out of its range, or ``backbone`` lacks a ``max_length``.
    """

    view: View = field(default_factory=DocSplit)
    batch_size: BatchSize = 36
    learning_rate: Positive = 5e-5
    warmup: Warmup = 0.0
    epochs: Epochs = 1.0
    steps: Count | None = None
    most_passes: Positive | None = None
    scale: Positive = 20.0
    symmetric: bool = False
    mlm_weight: Weight = 0.1
    mlm_probability: MaskedShare = 0.15
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
            raise ConfigurationError(
                f"backbone={self.backbone!r} needs max_length=, the number of tokens for the model to read."
            )

    def changed(self, **changes: Any) -> Preset:
        """Return a copy with some fields replaced; those that are None stay.

        Raises:
            ConfigurationError: A value is out of its range.
        """
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def planned_steps(self, batches: int) -> int:
        """Return the number of optimizer steps on documents that make a number of batches."""
        if self.steps is None:
            return math.ceil(batches * self.epochs)
        if self.most_passes is None:
            return self.steps
        return min(self.steps, math.ceil(batches * self.most_passes))


PRESETS: dict[str, Preset] = {
    # DocSplit, section 4.1, and SimLTE, section 3.1: BERT and Longformer, [CLS], batches of 36 and 12.
    "docsplit-bert": Preset(batch_size=36),
    # Twelve papers at once do not fit a laptop; tokens of four do.
    "docsplit-longformer": Preset(batch_size=12, attention_dropout=0.0, mini_batch_num_tokens=16384, max_length=4096),
    # For bases that are sentence encoders already. At the papers' temperature, 0.05, the most similar documents are
    # pushed apart, which undoes what such a base knows; at 0.5 all are, a little, and the halves of a document are
    # drawn together. Measured in benchmarks/results/recipe.md, with these steps and this length of views: longer
    # training and longer views gain more on some corpora (AG News) and lose on others (20 Newsgroups, FakeNews).
    "docsplit-tuned": Preset(
        batch_size=32,
        learning_rate=2e-5,
        warmup=0.1,
        steps=30,
        scale=2.0,
        mlm_weight=0.0,
        pooling="keep",
        dropout=0.0,
        max_view_length=64,
    ),
    # For static models, whose views are all of a document, since they read it a hundred times as fast as an encoder.
    # At a lower temperature, or after more passes over few documents, most sets are worse; the rate is that of a table
    # whose numbers are as large as load_model.TABLE_SIZE. 689 steps on 6,300 posts are better (68.3, not 67.0), and
    # slower.
    STATIC_PRESET: Preset(
        batch_size=128,
        learning_rate=2e-2,
        steps=500,
        most_passes=14,
        scale=1.0,
        symmetric=True,
        mlm_weight=0.0,
        pooling="keep",
    ),
}
"""Every preset by name."""


def get_preset(name: str) -> Preset:
    """Return a preset by its name.

    Raises:
        ConfigurationError: There is no preset of that name.
    """
    if name not in PRESETS:
        names = ", ".join(PRESETS)
        raise ConfigurationError(
            f"Unknown preset {name!r}: use one of {names}, or 'auto'.{did_you_mean(name, [*PRESETS, 'auto'])}"
        )
    return PRESETS[name]


def preset_changes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a preset that the arguments of a run replace; its steps give way to the run's."""
    names = (item.name for item in fields(Preset))
    changes = {name: value for name in names if (value := arguments.get(name)) is not None}
    if "epochs" in changes:
        changes["steps"] = None
    if arguments["max_steps"] is not None:
        changes |= {"steps": arguments["max_steps"], "most_passes": None}
    return changes
