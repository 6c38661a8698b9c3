"""The Longformer as a transformers model, with padded batches as input and output but packed documents inside.

``import simlte_st`` registers the model with transformers' Auto classes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, LongformerConfig, PreTrainedModel
from transformers import AutoModelForSequenceClassification as Classifiers
from transformers import initialization as init
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.longformer import modeling_longformer as stock
from transformers.utils.generic import can_return_tuple

from simlte_st.arguments import check_value
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer.attention import LongformerSelfAttention
from simlte_st.longformer.packing import BLOCK, Packing, pack_batch

GlobalTokens = Literal["cls", "none"]

SLOTS = 2048
"""Number of slots per feed-forward pass on the CPU without gradients, so that activations fit in the cache."""


EAGER_SLOTS = 4096
"""Maximum number of slots in a batch for eager attention, whose memory grows with their square."""


class SimlteLongformerConfig(LongformerConfig):
    """Configuration of a :class:`~simlte_st.longformer.SimlteLongformerModel`.

    Positions are numbered as in RoBERTa and the stock Longformer: the first token has position ``pad_token_id + 1``.
    The model therefore reads :attr:`usable_length` tokens, fewer than ``max_position_embeddings``. A converted BERT,
    whose positions begin at 0, gets a shifted table, so that transformers' ``LongformerModel`` can load the checkpoint.

    Args:
        attention_window: Total window size in tokens (both sides), an even number; or a list with one size per layer.
        global_tokens: Tokens with global attention when the features have no ``global_attention_mask``: ``"cls"``, the
            first token of each document, or ``"none"``.
        **kwargs: Fields of ``transformers.LongformerConfig``.

    Raises:
        ConfigurationError: ``global_tokens`` is unknown, ``pad_token_id`` is None, or a window is not a positive even
            number.

    References:
        Longformer, section 3.1 ("Attention pattern"); transformers' ``LongformerConfig``.
    """

    model_type = "simlte_longformer"

    def __init__(self, global_tokens: GlobalTokens = "cls", **kwargs: Any) -> None:
        # Set in a constructor rather than a field, because configurations are not dataclasses in transformers 5.0.
        self.global_tokens: GlobalTokens = global_tokens
        super().__init__(**kwargs)
        check_value("global_tokens", global_tokens, GlobalTokens)
        if self.pad_token_id is None:
            raise ConfigurationError("Set pad_token_id=: positions are numbered from pad_token_id + 1.")
        for window in self.layer_windows():
            if not isinstance(window, int) or window <= 0 or window % 2:
                raise ConfigurationError(f"attention_window={window!r} must be a positive even number.")

    def layer_windows(self) -> list[int]:
        """Return the window size of every layer."""
        if isinstance(self.attention_window, int):
            return [self.attention_window] * self.num_hidden_layers
        windows = list(self.attention_window)
        if len(windows) != self.num_hidden_layers:
            problem = f"attention_window has {len(windows)} sizes for {self.num_hidden_layers} layers"
            raise ConfigurationError(f"{problem}: give one per layer.")
        return windows

    @property
    def usable_length(self) -> int:
        """The maximum number of tokens per document, special tokens included."""
        assert self.pad_token_id is not None  # checked by the constructor
        return int(self.max_position_embeddings - self.pad_token_id - 1)


# Modules are named as in the stock Longformer, so that checkpoints match. Hidden states are packed, (slots, hidden).


class LongformerEmbeddings(stock.LongformerEmbeddings):
    """Normalised sum of word, position and segment embeddings."""

    def forward(  # type: ignore[override]  # packed, and never without positions
        self, words: Tensor, positions: Tensor, segments: Tensor | None
    ) -> Tensor:
        """Embed packed token ids, ``(slots,)``."""
        segment = self.token_type_embeddings.weight[0] if segments is None else self.token_type_embeddings(segments)
        total = self.word_embeddings(words) + self.position_embeddings(positions) + segment
        embeddings: Tensor = self.dropout(self.LayerNorm(total))
        return embeddings


class LongformerAttention(nn.Module):
    """Self-attention and its output projection."""

    def __init__(self, config: SimlteLongformerConfig, window: int) -> None:
        super().__init__()
        heads, dropout = config.num_attention_heads, config.attention_probs_dropout_prob
        self.self = LongformerSelfAttention(config.hidden_size, heads, window, dropout)
        self.output = stock.LongformerSelfOutput(config)

    def forward(self, hidden: Tensor, packing: Packing) -> Tensor:
        """Return the new hidden states."""
        states: Tensor = self.output(self.self(hidden, packing), hidden)
        return states


class LongformerLayer(GradientCheckpointingLayer):
    """Attention and feed-forward network, with gradient checkpointing."""

    def __init__(self, config: SimlteLongformerConfig, window: int) -> None:
        super().__init__()
        self.attention = LongformerAttention(config, window)
        self.intermediate = stock.LongformerIntermediate(config)
        self.output = stock.LongformerOutput(config)
        self.chunk_size: int = config.chunk_size_feed_forward

    def forward(self, hidden: Tensor, packing: Packing) -> Tensor:
        """Return the new hidden states."""
        attended = self.attention(hidden, packing)
        limited = attended.device.type == "cpu" and not torch.is_grad_enabled()
        size = self.chunk_size or (SLOTS if limited else len(attended))
        outputs = [self.output(self.intermediate(part), part) for part in attended.split(size)]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


class LongformerEncoder(nn.Module):
    """The stack of layers."""

    def __init__(self, config: SimlteLongformerConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(LongformerLayer(config, window) for window in config.layer_windows())

    def forward(self, hidden: Tensor, packing: Packing, keep_all: bool) -> tuple[Tensor, list[Tensor]]:
        """Return the last hidden states and, if ``keep_all``, the states of all layers."""
        states = [hidden]
        for layer in self.layer:
            hidden = layer(hidden, packing)
            if keep_all:
                states.append(hidden)
        return hidden, states if keep_all else []


class SimlteLongformerPreTrainedModel(PreTrainedModel):
    """Base class that sets weight names, initialisation and attention backends."""

    config: SimlteLongformerConfig
    config_class = SimlteLongformerConfig
    # As in the stock model, so that its checkpoints load.
    base_model_prefix = "longformer"
    supports_gradient_checkpointing = True
    _no_split_modules: ClassVar[list[str]] = ["LongformerLayer"]  # type: ignore[misc]
    _supports_sdpa = True

    def get_correct_attn_implementation(self, requested_attention: str | None, is_init_check: bool = False) -> str:
        """Return the attention backend: ``"sdpa"``, fused kernels, or ``"eager"``, which can return its weights."""
        check_value("attn_implementation", requested_attention, Literal["sdpa", "eager"] | None)
        return requested_attention or "sdpa"

    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        return True  # otherwise transformers searches this module's source for its own dispatcher

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[no-untyped-call]
        if isinstance(module, stock.LongformerLMHead):
            init.zeros_(module.bias)


class SimlteLongformerModel(SimlteLongformerPreTrainedModel):
    """The Longformer without a head. It takes the same inputs as the stock model, padded to any width.

    Args:
        config: The configuration.
        add_pooling_layer: Whether to add a pooler, as in stock checkpoints without a head.

    Example:
        ::

            import torch
            from simlte_st.longformer import SimlteLongformerConfig, SimlteLongformerModel

            config = SimlteLongformerConfig(
                vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, attention_window=[16, 64]
            )
            states = SimlteLongformerModel(config)(torch.randint(5, 100, (2, 300))).last_hidden_state  # (2, 300, 32)

    References:
        Longformer: The Long-Document Transformer, arXiv 2004.05150.
    """

    def __init__(self, config: SimlteLongformerConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = LongformerEmbeddings(config)  # type: ignore[no-untyped-call]
        self.encoder = LongformerEncoder(config)
        self.pooler = stock.LongformerPooler(config) if add_pooling_layer else None
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        """Return the word embeddings."""
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word embeddings."""
        self.embeddings.word_embeddings = value  # type: ignore[assignment]

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, global_attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None, position_ids: Tensor | None = None,
        output_attentions: bool | None = None, output_hidden_states: bool | None = None, **kwargs: Any,
    ) -> stock.LongformerBaseModelOutputWithPooling:  # fmt: skip
        """Encode a padded batch.

        Args:
            input_ids: Token ids, ``(batch, width)``, int64.
            attention_mask: 1 for tokens, 0 for padding, ``(batch, width)`` (default: all tokens). As in the stock
                model, 2 marks a token with global attention.
            global_attention_mask: 1 for tokens with global attention, ``(batch, width)`` (default: tokens marked with 2
                in the attention mask or, without any, the configuration's ``global_tokens``).
            token_type_ids: Segment ids, ``(batch, width)``, int64 (default: 0).
            position_ids: Positions, ``(batch, width)``, int64 (default: counted from ``pad_token_id + 1``).
            output_attentions: Whether to return the attention weights; needs ``attn_implementation="eager"``.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: ``return_dict=False`` to return a tuple; other keywords are ignored.

        Returns:
            ``last_hidden_state``, ``(batch, width, hidden)``, zero at padding; ``pooler_output``; ``hidden_states``;
            ``attentions``, for each layer the weights before dropout, ``(batch, heads, width, width)``.

        Raises:
            ModelError: A document has more tokens than the model has positions, or a batch more than
                :data:`EAGER_SLOTS` with eager attention; or ``output_attentions=True`` without eager attention.
        """
        eager = self.config._attn_implementation == "eager"
        keep_weights = self.config.output_attentions if output_attentions is None else output_attentions
        if keep_weights and not eager:
            raise ModelError("output_attentions=True needs eager attention: model.set_attn_implementation('eager').")
        shape, device = input_ids.shape, input_ids.device
        # Plan on the CPU, to synchronize with the device only once.
        mask = torch.ones(shape, dtype=torch.int64) if attention_mask is None else attention_mask.cpu()
        global_mask = None if global_attention_mask is None else global_attention_mask.cpu() > 0
        if global_mask is None and bool((mask > 1).any()):
            global_mask = mask > 1
        packing = pack_batch(mask > 0, global_mask, cls=self.config.global_tokens == "cls", device=device)
        if eager:
            if packing.slots > EAGER_SLOTS:
                raise ModelError(
                    f"Eager attention takes at most {EAGER_SLOTS:,} tokens per batch, padded to multiples of {BLOCK}; "
                    f"this batch has {packing.slots:,}. Use smaller batches or attn_implementation='sdpa'."
                )
            packing = replace(packing, weights=[])

        pad = self.embeddings.padding_idx
        if position_ids is not None:
            positions = packing.pack(position_ids.expand(shape), fill=pad)
        else:
            # As in the stock model, padding tokens inside a row do not advance the position.
            real = input_ids != pad
            positions = packing.pack(real.cumsum(1) * real + pad, fill=pad)
        if position_ids is not None or shape[1] > self.config.usable_length:
            self._check_positions(positions)
        segments = None if token_type_ids is None else packing.pack(token_type_ids.expand(shape), fill=0)

        keep_all = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        embedded = self.embeddings(packing.pack(input_ids, fill=pad), positions, segments)
        hidden, states = self.encoder(embedded, packing, bool(keep_all))
        last = packing.unpack(hidden)
        return stock.LongformerBaseModelOutputWithPooling(
            last_hidden_state=last,
            pooler_output=None if self.pooler is None else self.pooler(last),
            hidden_states=tuple(packing.unpack(state) for state in states) if keep_all else None,
            attentions=tuple(map(packing.unpack_pairs, packing.weights or ())) if keep_weights else None,
        )

    def _check_positions(self, positions: Tensor) -> None:
        """Reject positions beyond the table; on CUDA, they would crash the process."""
        if positions.numel() and (highest := int(positions.max())) >= self.config.max_position_embeddings:
            usable = self.config.usable_length
            raise ModelError(
                f"A document has {highest - self.embeddings.padding_idx} tokens, but the model has positions for "
                f"{usable}. Truncate it (tokenizer.model_max_length={usable}) or convert with a larger max_length."
            )


def layer_states(outputs: stock.LongformerBaseModelOutputWithPooling) -> dict[str, Any]:
    """Return the outputs that a model with a head passes on."""
    return {name: getattr(outputs, name) for name in ("hidden_states", "attentions")}


class SimlteLongformerForMaskedLM(SimlteLongformerPreTrainedModel):
    """The Longformer with its masked-language-model head.

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
        self.lm_head = stock.LongformerLMHead(config)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_output_embeddings(self) -> nn.Module:
        """Return the output projection."""
        decoder: nn.Module = self.lm_head.decoder
        return decoder

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replace the output projection."""
        self.lm_head.decoder = new_embeddings

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, global_attention_mask: Tensor | None = None,
        labels: Tensor | None = None, **kwargs: Any,
    ) -> stock.LongformerMaskedLMOutput:  # fmt: skip
        """Predict tokens.

        Args:
            input_ids: Token ids; see :meth:`SimlteLongformerModel.forward` for these and the two masks.
            attention_mask: 1 for tokens, 0 for padding.
            global_attention_mask: 1 for tokens with global attention.
            labels: Token ids to predict, or -100 to ignore a token, ``(batch, width)``, int64.
            **kwargs: Other arguments of :meth:`SimlteLongformerModel.forward`.

        Returns:
            ``logits``, ``(batch, width, vocab)``; and, if ``labels`` are given, ``loss``, the mean cross-entropy.
        """
        outputs = self.longformer(input_ids, attention_mask, global_attention_mask, return_dict=True, **kwargs)
        logits = self.lm_head(outputs.last_hidden_state)
        loss = None
        if labels is not None:
            loss = functional.cross_entropy(logits.flatten(0, 1), labels.to(logits.device).flatten())
        return stock.LongformerMaskedLMOutput(loss=loss, logits=logits, **layer_states(outputs))


class SimlteLongformerForSequenceClassification(SimlteLongformerPreTrainedModel):
    """The Longformer with a new classification head on its first token, for ``CrossEncoder``: train it before use."""

    def __init__(self, config: SimlteLongformerConfig) -> None:
        super().__init__(config)
        self.longformer = SimlteLongformerModel(config, add_pooling_layer=False)
        self.classifier = stock.LongformerClassificationHead(config)
        self.post_init()  # type: ignore[no-untyped-call]

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, global_attention_mask: Tensor | None = None,
        labels: Tensor | None = None, **kwargs: Any,
    ) -> stock.LongformerSequenceClassifierOutput:  # fmt: skip
        """Return ``logits``, ``(batch, num_labels)``, and the loss if there are ``labels``."""
        outputs = self.longformer(input_ids, attention_mask, global_attention_mask, return_dict=True, **kwargs)
        logits = self.classifier(outputs.last_hidden_state)
        loss = None if labels is None else self.loss_function(labels, logits, self.config)
        return stock.LongformerSequenceClassifierOutput(loss=loss, logits=logits, **layer_states(outputs))


AutoConfig.register(SimlteLongformerConfig.model_type, SimlteLongformerConfig, exist_ok=True)
AutoModel.register(SimlteLongformerConfig, SimlteLongformerModel, exist_ok=True)
AutoModelForMaskedLM.register(SimlteLongformerConfig, SimlteLongformerForMaskedLM, exist_ok=True)
Classifiers.register(SimlteLongformerConfig, SimlteLongformerForSequenceClassification, exist_ok=True)
