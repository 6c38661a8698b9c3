"""Named settings of training runs."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from simlte_st.backbones.registry import BACKBONES
from simlte_st.checks import check_choice, check_count, check_number
from simlte_st.data.drawing import View
from simlte_st.data.views import DocSplit
from simlte_st.errors import ConfigurationError, did_you_mean

Pooling = Literal["cls", "mean", "keep"]


@dataclass(frozen=True)
class Preset:
    """How to train, apart from what on.

    Attributes:
        view: How the two views of a document are drawn.
        batch_size: Documents in a batch, which several processes share.
        batch_tokens: Tokens in a batch, both views and padding counted, instead of ``batch_size``: as many documents of
            similar lengths as fit. None: ``batch_size`` decides.
        learning_rate: Peak learning rate of AdamW.
        warmup: Share of the steps over which the learning rate rises; it falls linearly afterwards.
        epochs: Passes over the corpus.
        steps: Optimizer steps of a run that names neither ``epochs`` nor ``max_steps``. Few documents are passed
            several times, in other views each time; of many a random part is seen. None: as many as ``epochs`` take.
        scale: Inverse temperature of the similarities in a batch: 20 is the papers' tau = 0.05, for language models; 2
            is for sentence encoders.
        mlm_weight: Weight of the masked-language-model term.
        mlm_probability: Share of tokens masked for it.
        mlm_input: ``"separate"``, a pass of its own over masked copies of the views (SimCSE's, and so the papers');
            ``"shared"``, one masked pass for both terms, at half the cost (DeCLUTR's).
        mlm_share: Share of the views that the MLM pass sees.
        mini_batch_num_tokens: Tokens that pass through the model at a time (gradient caching): they decide the memory,
            for a batch of any size. None: the whole batch at once.
        pooling: Pooling of the model: ``"cls"``, ``"mean"``, or ``"keep"`` the base's.
        dropout: Dropout probability inside the encoder while training. None: the checkpoint's.
        attention_dropout: Probability of dropping an attention weight, where it differs from ``dropout``. On a CPU it
            makes the training of a Longformer take a quarter more time.
        max_view_length: Tokens a view may have while training, special tokens included. None: as many as the model
            reads.
        max_length: Tokens that the finished model reads of a document; a base that reads fewer is converted as
            ``backbone`` says before training. ``"base"``: as many as the base reads. By default as many as the base
            reads, if that cuts at most a tenth of the tokens of the documents; otherwise the base is trained, and the
            finished model reads whole documents in chunks.
        backbone: How a base that reads fewer tokens than ``max_length`` is converted: ``"longformer"``, or None, makes
            a Longformer of it; ``"chunk-mean"`` averages the embeddings of chunks, each pooled as ``pooling`` says.
    """

    view: View = field(default_factory=DocSplit)
    batch_size: int = 36
    batch_tokens: int | None = None
    learning_rate: float = 5e-5
    warmup: float = 0.0
    epochs: float = 1.0
    steps: int | None = None
    scale: float = 20.0
    mlm_weight: float = 0.1
    mlm_probability: float = 0.15
    mlm_input: Literal["separate", "shared"] = "separate"
    mlm_share: float = 1.0
    mini_batch_num_tokens: int | None = None
    pooling: Pooling = "cls"
    dropout: float | None = None
    attention_dropout: float | None = None
    max_view_length: int | None = None
    max_length: int | Literal["base"] | None = None
    backbone: str | None = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "scale"):
            check_number(name, getattr(self, name), above=0)
        check_number("epochs", self.epochs, above=0, most=1_000_000)
        for name in ("dropout", "attention_dropout", "warmup"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=0, below=1)
        for name in ("mlm_probability", "mlm_share"):
            check_number(name, getattr(self, name), above=0, most=1)
        check_number("mlm_weight", self.mlm_weight, least=0)
        if isinstance(self.max_length, str) and self.max_length != "base":
            raise ConfigurationError(f"max_length={self.max_length!r}: use a number of tokens, or 'base'.")
        for name in ("steps", "max_view_length", "max_length", "mini_batch_num_tokens", "batch_tokens"):
            if getattr(self, name) not in (None, "base"):
                check_count(name, getattr(self, name))
        check_count("batch_size", self.batch_size)
        if self.batch_size < 2:
            raise ConfigurationError("batch_size=1: the negatives are the other documents of the batch; use 2 or more.")
        if self.mlm_weight == 0 and self.mlm_share != 1:
            raise ConfigurationError("mlm_share= is for a run with an MLM term: give mlm_weight= too, such as 0.1.")
        check_choice("pooling", self.pooling, ("cls", "mean", "keep"))
        if self.backbone is not None:
            check_choice("backbone", self.backbone, BACKBONES)
            if self.max_length in (None, "base"):
                raise ConfigurationError(
                    f"backbone={self.backbone!r} needs max_length=, the tokens that the model shall read, as a number."
                )

    def summary(self) -> str:
        """Say the main settings in a line."""
        size = f"{self.batch_size} documents" if self.batch_tokens is None else f"{self.batch_tokens:,} tokens"
        passes = f"{self.epochs:g} pass{'' if self.epochs == 1 else 'es'} over the documents"
        passes = passes if self.steps is None else f"{self.steps} step{'' if self.steps == 1 else 's'}"
        mlm = f"an MLM term of weight {self.mlm_weight:g}" if self.mlm_weight else "no MLM term"
        pooling = "the base's pooling" if self.pooling == "keep" else f"{self.pooling.upper()} pooling"
        return (
            f"Batches of {size}, {passes}, learning rate {self.learning_rate:g}, temperature "
            f"{1 / self.scale:g}, {mlm}, {pooling}."
        )

    def changed(self, **settings: Any) -> Preset:
        """Return a copy with some settings replaced; those that are None stay.

        Raises:
            ConfigurationError: A setting that does not exist or is out of its range.
        """
        unknown = set(settings) - {item.name for item in fields(self)}
        if unknown:
            raise ConfigurationError(
                f"Unknown settings {sorted(unknown)}; there are {[item.name for item in fields(self)]}."
            )
        return replace(self, **{name: value for name, value in settings.items() if value is not None})


PRESETS: dict[str, Preset] = {
    # DocSplit, section 4.1, and SimLTE, section 3.1: BERT and Longformer, [CLS], batches of 36 and 12.
    "docsplit-bert": Preset(batch_size=36),
    # Twelve papers at once do not fit a laptop; tokens of four do.
    "docsplit-longformer": Preset(batch_size=12, attention_dropout=0.0, mini_batch_num_tokens=16384, max_length=4096),
    # For bases that are sentence encoders already. At the papers' temperature, 0.05, those documents are pushed apart
    # that are most alike, which undoes what such a base knows; at 0.5 all are, a little, and the halves of a document
    # are drawn together. Measured in benchmarks/results/recipe.md, with these steps and this length of views: longer
    # training and longer views gain more on some piles (AG News) and lose on others (20 Newsgroups, FakeNews).
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
}
"""Every preset by name."""


def get_preset(name: str) -> Preset:
    """Find a preset.

    Raises:
        ConfigurationError: There is none of that name.
    """
    if name not in PRESETS:
        names = ", ".join(PRESETS)
        raise ConfigurationError(
            f"Unknown preset {name!r}: use one of {names}, or 'auto'.{did_you_mean(name, [*PRESETS, 'auto'])}"
        )
    return PRESETS[name]
