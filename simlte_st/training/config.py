"""Settings of training: presets, and everything else that a run can be told."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

from simlte_st.config import Config, DeviceConfig, ProgressConfig, ResumeConfig, SeedConfig, check_choice, setting
from simlte_st.data.config import ReadConfig
from simlte_st.data.drawing import View
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.views import DocSplit
from simlte_st.errors import ConfigurationError, did_you_mean
from simlte_st.extras import check_installed

Pooling = Literal["cls", "mean", "keep"]

STATIC_PRESET = "docsplit-static"
"""The preset for static models."""

ONLY_ENCODERS = {
    "pooling": "is the mean of its tokens' vectors: use pooling='keep'",
    **dict.fromkeys(("dropout", "attention_dropout"), "has no layers"),
    "max_view_length": "is trained on whole documents",
    **dict.fromkeys(("max_length", "backbone"), "reads whole documents"),
    **dict.fromkeys(("mlm_weight", "mlm_probability", "mlm_input"), "has no context to predict a masked word from"),
    "mini_batch_num_tokens": "takes a batch of any size at once",
}
"""Settings of a preset that do not apply to a static model, and why: it ..."""


@dataclass(frozen=True, kw_only=True)
class Preset(Config):
    """How to train, whatever the base and the documents are."""

    view: View = setting(DocSplit(), "how the two views of a document are drawn", option=False)
    batch_size: int = setting(36, "documents in a batch, which several processes share", least=2)
    learning_rate: float = setting(5e-5, "peak learning rate of AdamW", above=0)
    warmup: float = setting(0.0, "share of the steps in which the rate rises, to fall linearly then", least=0, below=1)
    epochs: float = setting(1.0, "passes over the corpus", above=0, most=1_000_000)
    steps: int | None = setting(
        None, "optimizer steps of a run that names neither ``epochs=`` nor ``max_steps=``", option=False
    )
    most_passes: float | None = setting(
        None,
        "passes over the documents after which such a run ends, if it has fewer than ``steps=`` then",
        option=False,
    )
    scale: float = setting(
        20.0,
        "inverse temperature 1/tau of the similarities; 20 for language models, 2 for sentence encoders and static "
        "models",
        above=0,
    )
    symmetric: bool = setting(
        False, "whether each second view shall find its first one among those of the batch, too", option=False
    )
    mlm_weight: float = setting(0.1, "weight of the masked-language-model term", least=0)
    mlm_probability: float = setting(0.15, "share of tokens masked for it", above=0, most=1)
    mlm_input: Literal["separate", "shared"] = setting(
        "separate",
        "separate: a second pass over masked copies of the views, as SimCSE and the papers do; shared: one masked pass "
        "for both terms at half the cost, as DeCLUTR does",
    )
    mini_batch_num_tokens: int | None = setting(
        None, "tokens that pass through the model at a time (gradient caching), to bound the memory of a batch"
    )
    pooling: Pooling = setting("cls", 'pooling of the model: ``"cls"``, ``"mean"``, or ``"keep"`` the base\'s')
    dropout: float | None = setting(
        None, "dropout probability inside the encoder while training; otherwise the checkpoint's", least=0, below=1
    )
    attention_dropout: float | None = setting(
        None,
        "dropout probability of attention weights, if different; it slows a Longformer on a CPU by a quarter",
        least=0,
        below=1,
    )
    max_view_length: int | None = setting(None, "tokens of a view, special tokens included; else all the model reads")
    max_length: int | Literal["base"] | None = setting(
        None,
        "tokens that the finished model reads of a document; a base that reads fewer is converted before training, see "
        '``backbone=``. ``"base"``: as many as the base reads. The default is the same, unless it would cut more than '
        "a tenth of the tokens: then the finished model reads whole documents in chunks",
    )
    backbone: str | None = setting(
        None,
        'how a base that reads fewer tokens than ``max_length=`` is converted: ``"longformer"`` (the default) makes a '
        'Longformer of it; ``"chunk-mean"`` averages the embeddings of chunks, each pooled as ``pooling=`` says',
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backbone is not None:
            check_choice("backbone", self.backbone, ("longformer", "chunk-mean"))
            if self.max_length in (None, "base"):
                raise ConfigurationError(
                    f"backbone={self.backbone!r} needs max_length=, the number of tokens that the model shall read."
                )

    def changed(self, **settings: Any) -> Preset:
        """Return a copy with some settings replaced; those that are None stay.

        Raises:
            ConfigurationError: There is no such setting, or it is out of its range.
        """
        names = [item.name for item in fields(self)]
        if unknown := sorted(set(settings) - set(names)):
            known = [*names, *(item.name for item in fields(TrainConfig))]
            raise ConfigurationError(f"Unknown settings {unknown}.{did_you_mean(unknown[0], known)}")
        return replace(self, **{name: value for name, value in settings.items() if value is not None})


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
    # whose numbers are as large as static.TABLE_SIZE. 689 steps on 6,300 posts are better (68.3, not 67.0), and slower.
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


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(SeedConfig):
    """What is trained, and how."""

    heading: ClassVar[str] = "training"

    base: str | os.PathLike[str] | None = setting(
        None,
        "model to begin with: a folder, or a name on this machine or on the Hugging Face Hub; a stock Longformer is "
        "trained as this package's, with the same weights",
        metavar="NAME_OR_PATH",
        default_help="the packaged all-MiniLM-L6-v2; simlte-static with ``static=``",
    )
    static: bool | None = setting(
        None,
        "make a static model, which has a vector for each token and no layers: it reads whole documents, and is "
        "trained and encodes in seconds. A base that is an encoder is distilled first",
        off="--encoder",
        off_help="make an encoder",
        default_help="what the base is",
    )
    preset: str | Preset = setting(
        "auto",
        "docsplit-bert and docsplit-longformer (the papers'), docsplit-tuned (for bases that are sentence encoders "
        "already), docsplit-static (for static models), or auto to choose by the base; docsplit-longformer converts a "
        "base that reads fewer than 4,096 tokens",
        metavar="NAME",
    )
    settings: Mapping[str, Any] = setting(
        {}, "settings of the preset to replace, by name; None keeps the preset's", option=False, decisive=False
    )
    segmenter: str | Segmenter = setting(
        "punkt", "what splits documents into sentences: punkt, or a callable", option=False
    )
    max_steps: int | None = setting(None, "steps of the optimizer, whatever ``epochs=`` and the preset say")
    lsa: int | None = setting(
        None,
        "append a latent semantic analysis of the documents to the embedding, of this number of dimensions (256 is "
        "good), or 0 for none; without training: simlte convert MODEL --lsa DOCUMENTS",
        least=0,
        default_help="256 for a static model, none for an encoder",
    )
    keep: Literal["verdict", "trained"] = setting(
        "verdict",
        "verdict: if training did not clearly help, the finished model is the base, and the trained model goes to "
        "OUTPUT.trained; trained: the finished model is the trained one in any case",
    )


@dataclass(frozen=True, kw_only=True)
class RunningConfig(DeviceConfig, ProgressConfig, ResumeConfig):
    """How a run proceeds: what it reads, measures and writes, and where it computes."""

    heading: ClassVar[str] = "running"

    stream: bool = setting(
        False,
        "read the documents while training goes on, from parquet files (a folder, a pattern, or any address that "
        "fsspec knows: s3://, hf://datasets/OWNER/NAME/) or hub:NAME, for corpora larger than the disk; needs "
        "``max_steps=`` if the preset has no steps. They are shuffled, and duplicates skipped, within a buffer; the "
        "first 1,000 provide the held-out documents and the estimates of lengths",
    )
    held_out: float = setting(
        0.1,
        "share of the documents, at most 500, kept out of training to measure the gain; up to three times that if "
        "it would be fewer than 100 documents; 0 for none, and no verdict",
        least=0,
        most=0.5,
    )
    probe: str | None = setting(
        None,
        "column of classes, folders or tags: a classifier on it, with a few labelled documents a class, has a say in "
        "the verdict; training does not see it",
        metavar="COLUMN",
    )
    report: bool = setting(
        False,
        "write a page of the run beside the model, OUTPUT.report.html (extra explore): loss, verdict, and the held-out "
        "documents whose nearest documents changed most, with their texts",
        decisive=False,
    )
    bf16: bool | None = setting(
        None, "compute in bfloat16", default_help="where the hardware has it, some CPUs included", decisive=False
    )
    workers: int = setting(
        0, "processes that make batches; 0 makes them in the training process", least=0, decisive=False
    )
    save_steps: int | None = setting(
        None,
        "steps between checkpoints",
        default_help="about ten checkpoints a run, four of a static model",
        decisive=False,
    )


@dataclass(frozen=True, kw_only=True)
class TrainConfig(RunningConfig, ReadConfig, TrainingConfig):
    """How :func:`~simlte_st.train` trains a model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        (self.named_preset or Preset()).changed(**self.settings)  # raises for what is wrong with them
        for name, asked in (("probe", self.probe is not None), ("report", self.report)):
            if asked and self.held_out == 0:
                raise ConfigurationError(f"{name}= needs held-out documents: held_out= must not be 0.")
        if self.report:
            check_installed("bokeh", "explore", "the report of a run")
        if self.static is False and self.preset == STATIC_PRESET:
            raise ConfigurationError(f"static=False: the preset {STATIC_PRESET!r} is for static models. Leave one out.")
        if self.stream and self.lsa:
            raise ConfigurationError(
                "lsa= analyses all documents together, which a stream never holds. Append an analysis of some of them "
                "to the finished model: simlte convert MODEL --lsa DOCUMENTS --output DIR"
            )
        others = (name for name in ("limit", "mails", "drop_quotes", "html") if getattr(self, name))
        if self.stream and (named := next(others, None)):
            raise ConfigurationError(f"{named}= does not apply to stream=, which reads max_steps= batches as they are.")

    @classmethod
    def make(cls, config: TrainConfig | None, overrides: Mapping[str, Any]) -> TrainConfig:
        """Return the settings of a call; other names are settings of the preset."""
        own = {name: value for name, value in overrides.items() if name in cls.__dataclass_fields__}
        of_preset = {name: value for name, value in overrides.items() if name not in own}
        before = own.get("settings", config.settings if isinstance(config, cls) else {})
        return super().make(config, {**own, "settings": {**before, **of_preset}})

    @classmethod
    def accepted(cls) -> list[str]:
        """Return the names that :meth:`make` takes, those of the preset's settings among them."""
        return [*super().accepted(), *Preset.accepted()]

    def decisive(self) -> dict[str, Any]:
        """Return the values that decide the outcome of a run, by name; of the preset's settings those replaced."""
        replaced = {name: value for name, value in self.settings.items() if value is not None}
        own = super().decisive()
        if self.static is None:  # the base decides, which is compared
            del own["static"]
        return {**own, **replaced}

    @property
    def named_preset(self) -> Preset | None:
        """The preset asked for; None if the base decides."""
        if isinstance(self.preset, Preset):
            return self.preset
        return None if self.preset == "auto" else get_preset(self.preset)

    def steps_of(self, preset: Preset, batches: int | None = None) -> int | None:
        """Return the number of steps that the run or else its preset names; None if ``epochs`` decide.

        The preset's are at most those of its passes over the documents, if the number of batches of one is given.
        """
        by_epochs = self.settings.get("epochs") is not None
        if self.max_steps or by_epochs or preset.steps is None:
            return self.max_steps
        if batches is None or preset.most_passes is None:
            return preset.steps
        return min(preset.steps, math.ceil(batches * preset.most_passes))


def wants_static(config: TrainConfig) -> bool:
    """Return whether a run is asked for a static model, whatever its base is."""
    return bool(config.static) or (config.static is None and config.preset == STATIC_PRESET)
