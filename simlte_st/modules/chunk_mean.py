"""Embed long documents as the mean of their chunks' embeddings."""

from __future__ import annotations

import copy
from typing import Annotated, Any, NamedTuple, cast

import torch
from annotated_types import Interval
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from simlte_st.arguments import check_arguments
from simlte_st.compat import Features, readable_length, readable_tokens
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer.packing import document_spans
from simlte_st.words.tokens import CPU_PASS, split_by_length

ChunkLength = Annotated[int, Interval(ge=3)]
"""Tokens in a chunk: two special tokens and at least one token of text."""

_OWN_KEYS = ("chunk_length", "pooling_mode", "include_prompt", "normalize_chunks", "max_seq_length")

_GPU_PASS = (32768, 4096)  # like CPU_PASS, but larger, because small passes underuse a GPU


class ChunkMean(Transformer):
    """``Transformer`` and ``Pooling`` in one, for documents of any length: the mean embedding of their chunks.

    A document that fits in one chunk gets the encoder's embedding. A longer one is split into chunks, each encoded with
    its own special tokens and any prompt. Each chunk's weight in the mean is its number of tokens, excluding special
    tokens and the prompt. The module can be trained end to end.

    Convert a model with :func:`to_chunk_mean`. After ``import simlte_st``, sentence-transformers loads the result like
    any other model.

    Args:
        model_name_or_path: The encoder, as for ``Transformer``. Its tokenizer must add one special token before and one
            after a text.
        chunk_length: Tokens in a chunk, including special tokens.
        pooling_mode: Mode of ``Pooling`` within a chunk.
        include_prompt: Whether to include prompt tokens in the pooling.
        normalize_chunks: Whether to scale chunk embeddings to length 1 before the mean.
        **options: Options of ``Transformer``. ``max_seq_length`` is the number of tokens to read from a document,
            including special tokens; it may exceed the encoder's positions.

    Features:
        Reads ``input_ids`` and ``attention_mask`` ``[B, S]``, padded on either side, or flattened (``cu_seq_lens_q``).
        Writes ``sentence_embedding`` ``[B, d]`` and ``token_embeddings`` ``[B, S, d]``, each token's state in its
        chunk, for use in an MLM loss.

    Raises:
        ConfigurationError: The prompt leaves no room for text in a chunk.
    """

    config_keys: list[str] = [*Transformer.config_keys, *_OWN_KEYS]  # noqa: RUF012  # as in the base class

    @check_arguments
    def __init__(
        self,
        model_name_or_path: str,
        *,
        chunk_length: ChunkLength,
        pooling_mode: str = "mean",
        include_prompt: bool = True,
        normalize_chunks: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(model_name_or_path, **options)
        self.chunk_length, self.pooling_mode = chunk_length, pooling_mode
        self.include_prompt, self.normalize_chunks = include_prompt, normalize_chunks

    def __call__(self, features: Features, **kwargs: Any) -> Features:
        """Call :meth:`forward`, or AdaptiveLayerLoss's replacement for it, which selects the states of a layer."""
        outputs: Features = super().__call__(features, **kwargs)
        if (layers := outputs.get("all_layer_embeddings")) is not None:
            layer = next(number for number, states in enumerate(layers) if states is outputs["token_embeddings"])
            outputs["sentence_embedding"] = outputs["all_layer_sentence_embeddings"][layer]
        return outputs

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """Add ``sentence_embedding`` and ``token_embeddings``; of all layers, if ``config.output_hidden_states``."""
        ids: Tensor = features["input_ids"]
        device, mask = ids.device, features.get("attention_mask")
        if "cu_seq_lens_q" in features:
            bounds = features["cu_seq_lens_q"].cpu().long()
            starts, lengths = bounds[:-1], bounds.diff()
        else:
            starts, lengths = document_spans(torch.ones_like(ids).cpu() if mask is None else mask.cpu())
        prompt = features.get("prompt_length")
        inputs = {} if prompt is None else {"prompt_length": int(torch.as_tensor(prompt).flatten()[0])}
        prefix = max(1, inputs.get("prompt_length", 0))  # every chunk begins with [CLS]
        chunks = cut_chunks(starts, lengths, self.chunk_length, prefix)
        pooling = Pooling(self.get_embedding_dimension(), self.pooling_mode, self.include_prompt)
        flat = {name: features[name].flatten() for name in ("input_ids", "token_type_ids") if name in features}
        sizes = CPU_PASS if device.type == "cpu" else _GPU_PASS
        layers: dict[int, tuple[list[Tensor], list[Tensor]]] = {}  # chunk embeddings and token states by layer
        for part in split_by_length(chunks, [len(chunk.places) for chunk in chunks], *sizes):
            places = pad_sequence([chunk.places for chunk in part], batch_first=True).to(device)
            inside = pad_sequence([torch.ones_like(chunk.places) for chunk in part], batch_first=True).to(device)
            batch: Features = {name: values[places] for name, values in flat.items()}
            outputs = super().forward({**inputs, **batch, "attention_mask": inside}, **kwargs)
            last = outputs["token_embeddings"]
            for number, tokens in enumerate([*outputs.get("all_layer_embeddings", (last,))[:-1], last]):
                embeddings, states = layers.setdefault(number, ([], []))
                embedding: Tensor = pooling({**outputs, "token_embeddings": tokens})["sentence_embedding"]
                embeddings.append(functional.normalize(embedding, dim=1) if self.normalize_chunks else embedding)
                states += [row[chunk.begin : chunk.end] for row, chunk in zip(tokens.unbind(), part, strict=True)]
        document = torch.tensor([chunk.document for chunk in chunks])
        tokens = torch.tensor([max(1, len(chunk.places) - prefix - 1) for chunk in chunks]).float()
        weight = tokens / torch.zeros(len(lengths)).index_add(0, document, tokens)[document]
        places = torch.cat([chunk.places[chunk.begin : chunk.end] for chunk in chunks]).to(device)
        token_embeddings, sentence_embeddings = [], []
        for embeddings, states in layers.values():
            vectors = torch.cat(embeddings)
            weighted, empty = vectors.float() * weight.to(device)[:, None], (len(lengths), vectors.shape[1])
            means = torch.zeros(empty, device=device).index_add(0, document.to(device), weighted)
            token_states = states[0].new_zeros(ids.numel(), states[0].shape[1]).index_copy(0, places, torch.cat(states))
            token_embeddings.append(token_states.view(*ids.shape, -1))
            sentence_embeddings.append(means.to(token_states.dtype))
        features["token_embeddings"], features["sentence_embedding"] = token_embeddings[-1], sentence_embeddings[-1]
        if len(layers) > 1:
            features["all_layer_embeddings"] = token_embeddings
            features["all_layer_sentence_embeddings"] = sentence_embeddings
        return features

    def __repr__(self) -> str:
        return "ChunkMean" + super().__repr__().removeprefix("Transformer")


class Chunk(NamedTuple):
    """A chunk of a document."""

    document: int
    places: Tensor  # (tokens,), int64: indices of its tokens in the flattened batch
    begin: int  # document tokens begin:end get their states from this chunk; these ranges do not overlap
    end: int


def cut_chunks(starts: Tensor, lengths: Tensor, chunk_length: int, prefix: int = 1) -> list[Chunk]:
    """Split documents into chunks, and return the longest chunks first.

    A document that fits becomes one chunk. Each chunk of a longer one consists of the document's first ``prefix``
    tokens (``[CLS]`` and the prompt), a stretch of its text, and its last token (``[SEP]``). All stretches except the
    last have full length.

    Raises:
        ConfigurationError: A document needs several chunks, but the prefix leaves no room for text in them.
    """
    room = chunk_length - prefix - 1
    chunks = []
    for document, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        tokens = torch.arange(start, start + length)
        if length <= chunk_length:
            chunks += [Chunk(document, tokens, 0, length)] if length else []
            continue
        if room <= 0:
            problem = f"A prompt of {prefix - 1} tokens leaves no room in {chunk_length}-token chunks"
            raise ConfigurationError(f"{problem}: use longer chunks or a shorter prompt.")
        stretches = tokens[prefix:-1].split(room)
        for number, stretch in enumerate(stretches):
            chunk = torch.cat([tokens[:prefix], stretch, tokens[-1:]])
            end = len(chunk) if number == len(stretches) - 1 else len(chunk) - 1
            chunks.append(Chunk(document, chunk, prefix if number else 0, end))
    return sorted(chunks, key=lambda chunk: -len(chunk.places))


@check_arguments
def to_chunk_mean(
    model: SentenceTransformer, max_length: int = 4096, chunk_length: ChunkLength | None = None
) -> SentenceTransformer:
    """Convert a model so that it reads long documents in chunks, with :class:`ChunkMean`.

    If the model ends with ``Normalize``, the chunk embeddings and their mean are scaled to length 1.

    Args:
        model: A model of ``Transformer``, ``Pooling`` with a single mode, and optionally ``Normalize``; or one that
            already reads in chunks. It is not modified.
        max_length: Tokens to read from a document, including special tokens. You can change the result's
            ``max_seq_length`` at any time.
        chunk_length: Tokens in a chunk, including special tokens; None for the model's current limit.

    Returns:
        The new model, with copied weights, on the same device and in the same dtype and mode.

    Raises:
        ModelError: The model has other modules, or its tokenizer adds other special tokens.
        ConfigurationError: ``chunk_length`` exceeds the encoder's positions.

    Example:
        ::

            model = to_chunk_mean(SentenceTransformer("sentence-transformers/all-MiniLM-L6-v2"), max_length=4096)
            vectors = model.encode(["A long document ...", "Another one ..."])
    """
    if not can_read_in_chunks(model):
        raise ModelError(
            "This model cannot read in chunks: it must consist of Transformer, Pooling with one mode and optionally "
            "Normalize, and its tokenizer must add one special token before and one after a text."
        )
    converted = copy.deepcopy(model)
    if isinstance(converted[0], ChunkMean):
        converted[0].chunk_length = chunk_length or converted[0].chunk_length
    else:
        positions, length = readable_tokens(model), chunk_length or readable_length(model)
        if positions is not None and length is not None and length > positions:
            raise ConfigurationError(f"chunk_length={length} exceeds the encoder's limit of {positions} tokens.")
        transformer, pooling, *normalize = converted
        reader = ChunkMean.__new__(ChunkMean)
        settings = {name: getattr(pooling, name) for name in ("pooling_mode", "include_prompt")}
        vars(reader).update(vars(transformer), chunk_length=length, normalize_chunks=bool(normalize), **settings)
        converted[0] = reader
        del converted[1]
    converted.max_seq_length = max_length
    return converted


def chunk_length(model: SentenceTransformer) -> int | None:
    """Return the length of a model's chunks in tokens; None if it does not read in chunks."""
    return model[0].chunk_length if isinstance(model[0], ChunkMean) else None


def can_read_in_chunks(model: SentenceTransformer) -> bool:
    """Return whether :func:`to_chunk_mean` can convert a model."""
    kinds = [type(module) for module in model]
    if kinds[0] is ChunkMean:
        return True
    if kinds[:2] != [Transformer, Pooling] or kinds[2:] not in ([], [Normalize]):
        return False
    transformer, pooling = cast(Transformer, model[0]), cast(Pooling, model[1])
    if not isinstance(pooling.pooling_mode, str) or transformer.module_output_name != "token_embeddings":
        return False
    tokenizer: Any = transformer.tokenizer
    is_special = tokenizer("a a a", return_special_tokens_mask=True)["special_tokens_mask"]
    return len(is_special) > 2 and bool(is_special[0] and is_special[-1]) and sum(is_special) == 2
