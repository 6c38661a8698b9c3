"""The Longformer as a transformers model: padded batches in and out, packed documents inside.

``import simlte_st`` imports this module together with transformers' Auto classes, and so registers the model.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    LongformerConfig,
    PreTrainedModel,
)
from transformers import initialization as init
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.longformer.modeling_longformer import (
    LongformerBaseModelOutputWithPooling,
    LongformerIntermediate,
    LongformerLMHead,
    LongformerMaskedLMOutput,
    LongformerOutput,
    LongformerPooler,
    LongformerSelfOutput,
)
from transformers.utils.generic import can_return_tuple

from simlte_st.arguments import check_value
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer.attention import LongformerSelfAttention
from simlte_st.longformer.packing import Packing, pack_batch
from simlte_st.longformer.varlen import check_operators

GlobalTokens = Literal["cls", "none"]

SLOTS = 2048
"""Slots in a pass through the feed-forward on the CPU without gradients: their activations fit the cache."""


class SimlteLongformerConfig(LongformerConfig):
    """Configuration of a :class:`~simlte_st.longformer.SimlteLongformerModel`.

    Positions are numbered as in RoBERTa and the stock Longformer: the first token has position ``pad_token_id + 1``, so
    that the usable length is :attr:`usable_length`, not ``max_position_embeddings``. A model converted from BERT, whose
    positions begin at 0, has its table shifted: one rule holds for every model, and transformers' ``LongformerModel``
    loads its checkpoint.

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
        check_value("global_tokens", global_tokens, GlobalTokens)
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


# The modules are named as the stock ones, and work on packed hidden states, (slots, hidden).


class LongformerEmbeddings(nn.Module):
    """Words, positions and segments, summed and normalised."""

    def __init__(self, config: SimlteLongformerConfig) -> None:
        super().__init__()
        assert config.pad_token_id is not None  # the configuration has checked it
        # Together with a table of positions it means that positions begin at padding_idx + 1 (simlte_st.compat).
        self.padding_idx: int = config.pad_token_id
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=self.padding_idx)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(
            config.max_position_embeddings, config.hidden_size, padding_idx=self.padding_idx
        )
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, words: Tensor, positions: Tensor, segments: Tensor | None) -> Tensor:
        """Embed packed tokens, ``(slots,)``."""
        of_segment = self.token_type_embeddings.weight[0] if segments is None else self.token_type_embeddings(segments)
        embedded = self.word_embeddings(words) + self.position_embeddings(positions) + of_segment
        normed: Tensor = self.dropout(self.LayerNorm(embedded))
        return normed


class LongformerAttention(nn.Module):
    """Self-attention and its output projection."""

    def __init__(self, config: SimlteLongformerConfig, window: int) -> None:
        super().__init__()
        self.self = LongformerSelfAttention(
            config.hidden_size, config.num_attention_heads, window, config.attention_probs_dropout_prob
        )
        self.output = LongformerSelfOutput(config)
        self.config = config

    def forward(self, hidden: Tensor, packing: Packing) -> Tensor:
        """Return the new states."""
        attended: Tensor = self.output(self.self(hidden, packing, self.config._attn_implementation == "varlen"), hidden)
        return attended


class LongformerLayer(GradientCheckpointingLayer):
    """Attention and feed-forward; recomputed in the backward pass under gradient checkpointing."""

    def __init__(self, config: SimlteLongformerConfig, window: int) -> None:
        super().__init__()
        self.attention = LongformerAttention(config, window)
        self.intermediate = LongformerIntermediate(config)
        self.output = LongformerOutput(config)
        self.chunk_size: int = config.chunk_size_feed_forward

    def forward(self, hidden: Tensor, packing: Packing) -> Tensor:
        """Return the new states."""
        attended = self.attention(hidden, packing)
        on_cpu = attended.device.type == "cpu" and not torch.is_grad_enabled()
        size = self.chunk_size or (SLOTS if on_cpu else len(attended))
        outputs = [self.output(self.intermediate(part), part) for part in attended.split(size)]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


class LongformerEncoder(nn.Module):
    """All layers."""

    def __init__(self, config: SimlteLongformerConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(LongformerLayer(config, window) for window in config.layer_windows())

    def forward(self, hidden: Tensor, packing: Packing, keep_all: bool) -> tuple[Tensor, list[Tensor]]:
        """Run the layers."""
        states = [hidden]
        for layer in self.layer:
            hidden = layer(hidden, packing)
            if keep_all:
                states.append(hidden)
        return hidden, states if keep_all else []


class SimlteLongformerPreTrainedModel(PreTrainedModel):
    """Base of the models: names of the weights, their initialisation, and the choice of the attention backend."""

    config: SimlteLongformerConfig
    config_class = SimlteLongformerConfig
    # The stock prefix and names: a stock checkpoint is one of ours.
    base_model_prefix = "longformer"
    supports_gradient_checkpointing = True
    _no_split_modules: ClassVar[list[str]] = ["LongformerLayer"]  # type: ignore[misc]
    _supports_sdpa = True

    def get_correct_attn_implementation(self, requested_attention: str | None, is_init_check: bool = False) -> str:
        """Check the name of the attention backend."""
        check_value("attn_implementation", requested_attention, Literal["sdpa", "varlen"] | None)
        if requested_attention == "varlen":
            check_operators()
        return requested_attention or "sdpa"

    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        return True  # transformers looks for its own dispatcher in this module's source

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[no-untyped-call]
        if isinstance(module, LongformerLMHead):
            init.zeros_(module.bias)


class SimlteLongformerModel(SimlteLongformerPreTrainedModel):
    """The Longformer without a head; it takes the features of the stock one, of any length up to its positions.

    Args:
        config: The configuration.
        add_pooling_layer: Whether to have the pooler, as stock checkpoints without a head do.

    References:
        Longformer: The Long-Document Transformer, arXiv 2004.05150.
    """

    def __init__(self, config: SimlteLongformerConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = LongformerEmbeddings(config)
        self.encoder = LongformerEncoder(config)
        self.pooler = LongformerPooler(config) if add_pooling_layer else None
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        """Return the word embeddings."""
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word embeddings."""
        self.embeddings.word_embeddings = value  # type: ignore[assignment]

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> LongformerBaseModelOutputWithPooling:
        """Encode a padded batch.

        Args:
            input_ids: Token ids, ``(batch, width)``, int64.
            attention_mask: 1 for tokens, 0 for padding, ``(batch, width)``; None: all are tokens. As in the stock model
                2 is a token with global attention.
            global_attention_mask: 1 for tokens with global attention, ``(batch, width)``. Without it, and without a 2
                in the attention mask, the configuration's ``global_tokens`` decides.
            token_type_ids: Segments, ``(batch, width)``, int64; None: all 0.
            position_ids: Positions, ``(batch, width)``, int64; None: counted from ``pad_token_id + 1``.
            output_attentions: Not available: the weights are never held.
            output_hidden_states: Whether to return all layers' states.
            **kwargs: ``return_dict=False`` for a tuple; others are not used.

        Returns:
            ``last_hidden_state``, ``(batch, width, hidden)``, zeros at padding; ``pooler_output``; ``hidden_states``.

        Raises:
            ModelError: More tokens than positions, or ``output_attentions``.
        """
        if self.config.output_attentions if output_attentions is None else output_attentions:
            raise ModelError("output_attentions=True: weights are never held. transformers' LongformerModel has them.")
        shape, device = input_ids.shape, input_ids.device
        # On the CPU, where the plan is made: one wait for the device here instead of one at each decision.
        mask = torch.ones(shape, dtype=torch.int64) if attention_mask is None else attention_mask.cpu()
        global_mask = None if global_attention_mask is None else global_attention_mask.cpu() > 0
        if global_mask is None and bool((mask > 1).any()):
            global_mask = mask > 1
        packing = pack_batch(mask > 0, global_mask, cls=self.config.global_tokens == "cls", device=device)

        pad = self.embeddings.padding_idx
        if position_ids is not None:
            positions = packing.pack(position_ids.expand(shape), fill=pad)
        else:
            # Counted over the whole row as the stock model does: a padding token inside does not count.
            real = input_ids != pad
            positions = packing.pack(real.cumsum(1) * real + pad, fill=pad)
        if position_ids is not None or shape[1] > self.config.usable_length:
            self._check_positions(positions)
        segments = None if token_type_ids is None else packing.pack(token_type_ids.expand(shape), fill=0)

        keep_all = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        embedded = self.embeddings(packing.pack(input_ids, fill=pad), positions, segments)
        hidden, states = self.encoder(embedded, packing, bool(keep_all))
        last = packing.unpack(hidden)
        return LongformerBaseModelOutputWithPooling(
            last_hidden_state=last,
            pooler_output=None if self.pooler is None else self.pooler(last),
            hidden_states=tuple(packing.unpack(state) for state in states) if keep_all else None,
        )

    def _check_positions(self, positions: Tensor) -> None:
        """Raise an error before an index beyond the table, which on CUDA would end the process."""
        if positions.numel() and (highest := int(positions.max())) >= self.config.max_position_embeddings:
            usable = self.config.usable_length
            raise ModelError(
                f"A document has {highest - self.embeddings.padding_idx} tokens, the model positions for {usable}. "
                f"Truncate it (tokenizer.model_max_length={usable}) or convert the model to a longer max_length."
            )


class SimlteLongformerForMaskedLM(SimlteLongformerPreTrainedModel):
    """The Longformer with its masked-language-model head; the same tokens have global attention as without it.

    Args:
        config: The configuration.
    """

    _tied_weights_keys: ClassVar[dict[str, str]] = {  # type: ignore[misc]
        "lm_head.decoder.weight": "longformer.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }

    def __init__(self, config: SimlteLongformerConfig) -> None:
        super().__init__(config)
        self.longformer = SimlteLongformerModel(config, add_pooling_layer=False)
        self.lm_head = LongformerLMHead(config)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_output_embeddings(self) -> nn.Module:
        """Return the decoder."""
        decoder: nn.Module = self.lm_head.decoder
        return decoder

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replace the decoder."""
        self.lm_head.decoder = new_embeddings

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> LongformerMaskedLMOutput:
        """Predict tokens.

        Args:
            input_ids: Token ids.
            attention_mask: 1 for tokens, 0 for padding.
            global_attention_mask: 1 for tokens with global attention.
            labels: Token ids to predict, -100 for none, ``(batch, width)``, int64.
            **kwargs: All other arguments of :meth:`SimlteLongformerModel.forward`.

        Returns:
            ``logits``, ``(batch, width, vocab)``, and with labels ``loss``, their mean cross-entropy.
        """
        outputs = self.longformer(input_ids, attention_mask, global_attention_mask, return_dict=True, **kwargs)
        logits = self.lm_head(outputs.last_hidden_state)
        loss = None
        if labels is not None:
            loss = functional.cross_entropy(logits.flatten(0, 1), labels.to(logits.device).flatten())
        return LongformerMaskedLMOutput(loss=loss, logits=logits, hidden_states=outputs.hidden_states)


AutoConfig.register(SimlteLongformerConfig.model_type, SimlteLongformerConfig, exist_ok=True)
AutoModel.register(SimlteLongformerConfig, SimlteLongformerModel, exist_ok=True)
AutoModelForMaskedLM.register(SimlteLongformerConfig, SimlteLongformerForMaskedLM, exist_ok=True)
