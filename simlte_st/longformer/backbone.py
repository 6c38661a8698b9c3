"""The Longformer as a backbone: its settings, and a sentence encoder to a folder of a Longformer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from simlte_st.backbones.base import MAX_LENGTH, Backbone
from simlte_st.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

    from simlte_st.longformer.modeling import SimlteLongformerForMaskedLM, SimlteLongformerModel

Positions = Literal["tile", "interpolate"]
GlobalTokens = Literal["cls", "none"]


@dataclass(frozen=True)
class Longformer(Backbone):
    """An encoder with absolute positions becomes a Longformer, with the MLM head where it has one.

    A stock Longformer keeps its positions, windows and weights.

    Args:
        attention_window: Tokens that a token sees on both sides together: an even number, 512 by default, or a list of
            one a layer.
        positions: Where the positions beyond the encoder's come from: ``"tile"``, the default, repeats them as the
            paper does; ``"interpolate"`` stretches them.
        global_tokens: Tokens that see, and are seen by, the whole document: ``"cls"``, the first one, or ``"none"``. By
            default a stock Longformer that is a sentence encoder has none, as it was tuned, and others have the first.
    """

    model_type: ClassVar[str] = "simlte_longformer"
    replaces: ClassVar[tuple[str, ...]] = ("longformer",)
    packed: ClassVar[bool] = True

    attention_window: int | list[int] = 512
    positions: Positions = "tile"
    global_tokens: GlobalTokens | None = None

    @classmethod
    def register(cls) -> None:
        """Register the architecture with transformers' Auto classes."""
        from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

        from simlte_st.longformer.configuration import SimlteLongformerConfig
        from simlte_st.longformer.modeling import SimlteLongformerForMaskedLM, SimlteLongformerModel

        AutoConfig.register(cls.model_type, SimlteLongformerConfig, exist_ok=True)
        AutoModel.register(SimlteLongformerConfig, SimlteLongformerModel, exist_ok=True)
        AutoModelForMaskedLM.register(SimlteLongformerConfig, SimlteLongformerForMaskedLM, exist_ok=True)

    @classmethod
    def mlm_head(cls, encoder: PreTrainedModel) -> tuple[str, str, str, str] | None:
        """Return the places of the stock Longformer's head."""
        from simlte_st.compat import MLM_HEADS

        return MLM_HEADS["longformer"]

    def reading(self, max_length: int) -> str:
        """Say how a converted model reads so many tokens."""
        return f"a Longformer of {max_length:,} tokens"

    def convert(self, model: SentenceTransformer, path: Path, max_length: int | None, tuned: bool) -> None:
        """Write a model with a Longformer in the place of its encoder, with an MLM head where the encoder has one."""
        from simlte_st.compat import checkpoint_name, encoder_of, readable_tokens
        from simlte_st.longformer.convert import adopt_longformer, convert_to_longformer

        encoder, readable = encoder_of(model), readable_tokens(model)
        converted: SimlteLongformerModel | SimlteLongformerForMaskedLM
        if encoder.config.model_type in self.replaces:
            if max_length not in (None, readable):
                raise ConfigurationError(
                    f"max_length={max_length}: the base is a Longformer of {readable} tokens, and stays."
                )
            converted = adopt_longformer(encoder, self.global_tokens or ("none" if tuned else "cls"))
        else:
            length = max_length or MAX_LENGTH
            try:
                converted = convert_to_longformer(
                    checkpoint_name(encoder), length, self.attention_window, self.positions, self.global_tokens or "cls"
                )
            except ModelError as error:
                if readable is None or readable < length:
                    raise
                raise ModelError(
                    f"{error} But it has positions for {readable:,} tokens: set its max_seq_length."
                ) from None
        transformer: Any = model[0]
        before, own_length = transformer.model, model.max_seq_length
        transformer.model = converted
        model.max_seq_length = converted.config.usable_length  # saved with the tokenizer: where every loader cuts
        try:
            model.save_pretrained(str(path), create_model_card=False)
        finally:
            transformer.model = before
            model.max_seq_length = own_length
