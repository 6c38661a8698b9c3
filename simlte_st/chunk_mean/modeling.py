"""The chunk mean as a transformers model, so that stock modules of sentence-transformers can follow it.

``import simlte_st`` imports this module together with transformers' Auto classes, and so registers the model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils.generic import can_return_tuple

from simlte_st.chunk_mean.chunks import ChunkBatch, plan_chunks
from simlte_st.chunk_mean.configuration import SimlteChunkMeanConfig
from simlte_st.errors import ModelError
from simlte_st.longformer.packing import document_spans

# Slots that go through the encoder at once, and how many of them may be padding. A CPU is fastest while what a pass
# works on stays in its caches; a GPU starts slowly. Both bound the memory of inference.
_CPU_PASS = (2048, 64)
_GPU_PASS = (32768, 4096)


class SimlteChunkMeanModel(PreTrainedModel):
    """Reads documents of any length through an encoder of short ones: the mean of the embeddings of their chunks.

    The embedding takes the place of the state of each document's first token, ``[CLS]``, for stock ``Pooling("cls")``
    to return it; all other tokens have the states of their chunk, so that a masked language model can be trained on
    them. A document that fits one chunk has the embedding that the encoder with its own pooling gives it.

    Args:
        config: The configuration. The encoder's weights are drawn anew; :func:`~simlte_st.chunk_mean.to_chunk_mean`
            makes the model from an encoder.
    """

    config: SimlteChunkMeanConfig
    config_class = SimlteChunkMeanConfig
    base_model_prefix = "chunk_mean"
    supports_gradient_checkpointing = True
    _no_split_modules: ClassVar[list[str]] = []  # type: ignore[misc]
    # The encoder has the last word on these.
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    def __init__(self, config: SimlteChunkMeanConfig) -> None:
        super().__init__(config)
        # Imported here: this module is registered with transformers while sentence-transformers may be half imported.
        from sentence_transformers.sentence_transformer.modules import Pooling

        self.encoder: PreTrainedModel = AutoModel.from_config(config.encoder_config)
        # Stock pooling, and so the original's to the bit.
        self.pooling = Pooling(config.hidden_size, config.pooling_mode, include_prompt=config.include_prompt)
        self.post_init()  # type: ignore[no-untyped-call]

    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        return True  # transformers looks for its dispatcher in this module's source; it is in the encoder's

    def get_input_embeddings(self) -> nn.Module:
        """Return the encoder's word embeddings."""
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the encoder's word embeddings."""
        self.encoder.set_input_embeddings(value)

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        prompt_length: int | Tensor | None = None,
        cu_seq_lens_q: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPooling:
        """Encode documents, each ``[CLS]``, tokens, ``[SEP]``.

        Args:
            input_ids: Token ids, ``(batch, width)``, int64; or ``(1, total)`` with ``cu_seq_lens_q``.
            attention_mask: 1 for tokens, 0 for padding on either side, ``(batch, width)``; None: all are tokens.
            token_type_ids: Segments, of the shape of ``input_ids``; passed on to an encoder that takes them.
            inputs_embeds: Embedded tokens instead of ``input_ids``, with the hidden size as a third dimension.
            prompt_length: Tokens of each document's prompt, ``[CLS]`` counted, as in sentence-transformers' features:
                they stand before every chunk. One number, or a tensor that holds it. None: no prompt.
            cu_seq_lens_q: Where each document begins in a flattened batch, and its length, ``(documents + 1,)``.
            output_attentions: Not available.
            output_hidden_states: Not available.
            **kwargs: ``return_dict=False`` for a tuple; others are not used: positions are counted anew in each chunk.

        Returns:
            ``pooler_output``, the embeddings, ``(documents, hidden)``; ``last_hidden_state``, the input's shape and the
            hidden size, with the embedding at each document's first token and zeros at padding.

        Raises:
            ModelError: No input or two of them, ``output_attentions`` or ``output_hidden_states``.
            ConfigurationError: A prompt that leaves no room in a chunk.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ModelError("Give either input_ids or inputs_embeds.")
        if output_attentions or output_hidden_states or self.config.output_hidden_states:
            raise ModelError("output_attentions= and output_hidden_states= are not available: documents are chunked.")
        inputs = inputs_embeds if input_ids is None else input_ids
        assert inputs is not None
        shape, device = inputs.shape[:2], inputs.device
        # On the CPU, where the plan is made: one wait for the device here instead of one at each decision.
        if cu_seq_lens_q is not None:
            bounds = cu_seq_lens_q.cpu().long()
            starts, lengths = bounds[:-1], bounds.diff()
        else:
            mask = torch.ones(shape, dtype=torch.int64) if attention_mask is None else attention_mask.cpu()
            starts, lengths = document_spans(mask)
        prompt = None if prompt_length is None else int(torch.as_tensor(prompt_length).flatten()[0])
        plan = [
            chunks.to(device)
            for chunks in plan_chunks(
                starts,
                lengths,
                self.config.chunk_length,
                max(1, prompt or 0),  # [CLS] stands before every chunk in any case
                *(_CPU_PASS if device.type == "cpu" else _GPU_PASS),
            )
        ]

        flat = {"inputs_embeds" if input_ids is None else "input_ids": inputs.flatten(0, 1)}
        if token_type_ids is not None and _takes(self.encoder.forward, "token_type_ids"):
            flat["token_type_ids"] = token_type_ids.expand(shape).flatten()
        if attention_mask is not None and cu_seq_lens_q is None:
            flat["attention_mask"] = attention_mask.flatten()
        passes = [self._encode(chunks, flat, prompt) for chunks in plan]
        embeddings, last = self._join(plan, passes, starts, lengths, shape.numel())
        return BaseModelOutputWithPooling(last_hidden_state=last.view(*shape, -1), pooler_output=embeddings)

    def _encode(self, chunks: ChunkBatch, flat: dict[str, Tensor], prompt_length: int | None) -> tuple[Tensor, Tensor]:
        """Return the states that are kept of a batch of chunks, and the chunks' embeddings."""
        features: dict[str, Any] = {name: values[chunks.source] for name, values in flat.items()}
        mask = chunks.inside.long()
        if "attention_mask" in features:
            mask = mask * features["attention_mask"]
        features["attention_mask"] = mask
        hidden = self.encoder(**features, return_dict=True).last_hidden_state
        tokens: dict[str, Any] = {"token_embeddings": hidden, "attention_mask": mask}
        if prompt_length is not None:
            tokens["prompt_length"] = prompt_length
        embeddings: Tensor = self.pooling(tokens)["sentence_embedding"]
        if self.config.normalize_chunks:
            embeddings = functional.normalize(embeddings, dim=1)
        return hidden.flatten(0, 1).index_select(0, chunks.kept), embeddings

    def _join(
        self,
        plan: list[ChunkBatch],
        passes: list[tuple[Tensor, Tensor]],
        starts: Tensor,
        lengths: Tensor,
        slots: int,
    ) -> tuple[Tensor, Tensor]:
        """Return the documents' embeddings, and these and the tokens' states where they stand in the flat batch."""
        if not passes:
            empty = torch.zeros(1, self.config.hidden_size, dtype=self.dtype, device=self.device)
            return empty.repeat(len(lengths), 1), empty.repeat(slots, 1)
        chunk_embeddings = torch.cat([embeddings for _, embeddings in passes])
        document = torch.cat([chunks.document for chunks in plan])
        weight = torch.cat([chunks.weight for chunks in plan])
        dtype = torch.promote_types(chunk_embeddings.dtype, torch.float32)
        means = torch.zeros(
            len(lengths), chunk_embeddings.shape[1], dtype=dtype, device=chunk_embeddings.device
        ).index_add(0, document, chunk_embeddings.to(dtype) * weight[:, None])
        embeddings = means.to(chunk_embeddings.dtype)

        filled = (lengths > 0).nonzero().squeeze(1).to(embeddings.device)
        states = [*(states for states, _ in passes), embeddings[filled].to(passes[0][0].dtype)]
        targets = [*(chunks.targets for chunks in plan), starts.to(embeddings.device)[filled]]
        values = torch.cat(states)
        last = values.new_zeros(slots, values.shape[1]).index_copy(0, torch.cat(targets), values)
        return embeddings, last


def _takes(function: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(kind.kind is inspect.Parameter.VAR_KEYWORD for kind in parameters.values())


AutoConfig.register(SimlteChunkMeanConfig.model_type, SimlteChunkMeanConfig, exist_ok=True)
AutoModel.register(SimlteChunkMeanConfig, SimlteChunkMeanModel, exist_ok=True)
