"""Configuration of the Longformer: the stock one's fields, and which tokens attend globally."""

from __future__ import annotations

from typing import Any, Literal, get_args

from transformers import LongformerConfig

from simlte_st.config import check_choice
from simlte_st.errors import ConfigurationError

GlobalTokens = Literal["cls", "none"]


class SimlteLongformerConfig(LongformerConfig):
    """Configuration of a :class:`~simlte_st.longformer.SimlteLongformerModel`.

    Positions are numbered as in RoBERTa and the stock Longformer: the first token has position ``pad_token_id + 1``, so
    that the usable length is :attr:`usable_length`, not ``max_position_embeddings``. A model converted from BERT, whose
    positions begin at 0, has its table shifted: one rule holds for every model, and every model can be saved as a stock
    checkpoint.

    Args:
        attention_window: Tokens that a token sees on both sides together; even, one number or one a layer.
        global_tokens: Tokens with global attention where the features have no ``global_attention_mask``: ``"cls"``, the
            first token of each document, or ``"none"``.
        **kwargs: The fields of ``transformers.LongformerConfig``.

    Raises:
        ConfigurationError: An unknown ``global_tokens``, no ``pad_token_id``, or windows that are not positive even
            numbers, one or one a layer.

    References:
        Longformer, section 3.1 ("Attention pattern"); transformers' ``LongformerConfig``.
    """

    model_type = "simlte_longformer"

    def __init__(self, global_tokens: GlobalTokens = "cls", **kwargs: Any) -> None:
        # A constructor of its own, not a field: transformers 5.0 has no dataclass configurations yet.
        self.global_tokens: GlobalTokens = global_tokens
        super().__init__(**kwargs)
        check_choice("global_tokens", global_tokens, get_args(GlobalTokens))
        if self.pad_token_id is None:
            raise ConfigurationError("pad_token_id=None: it is needed, positions are numbered from pad_token_id + 1.")
        for window in self.layer_windows():
            if not isinstance(window, int) or window <= 0 or window % 2:
                raise ConfigurationError(f"attention_window={window!r}: must be a positive even number.")

    def layer_windows(self) -> list[int]:
        """Return the window of every layer."""
        if isinstance(self.attention_window, int):
            return [self.attention_window] * self.num_hidden_layers
        windows = list(self.attention_window)
        if len(windows) != self.num_hidden_layers:
            raise ConfigurationError(
                f"attention_window has {len(windows)} numbers for {self.num_hidden_layers} layers: give one a layer."
            )
        return windows

    @property
    def usable_length(self) -> int:
        """Largest number of tokens of a document, special tokens included, that the model has positions for."""
        assert self.pad_token_id is not None  # the constructor has checked it
        return int(self.max_position_embeddings - self.pad_token_id - 1)
