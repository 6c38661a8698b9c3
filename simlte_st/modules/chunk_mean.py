"""Long documents through a short encoder: the mean of the embeddings of their chunks."""

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

from simlte_st.arguments import checked
from simlte_st.compat import readable_length, readable_tokens
from simlte_st.data.tokens import CPU_PASS, split_by_length
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer.packing import document_spans

ChunkLength = Annotated[int, Interval(ge=3)]
"""Tokens in a chunk: two special tokens and at least one of the text."""

_GPU_PASS = (32768, 4096)  # as CPU_PASS, and larger, since a GPU starts slowly; both bound the memory of inference


class ChunkMean(Transformer):
    """``Transformer`` and ``Pooling`` in one, for documents of any length: the mean of the embeddings of their chunks.

    A document that fits one chunk has the embedding that the encoder gives it. A longer one is split into chunks, each
    with the special tokens around it and with the prompt, if any, before it, as if every chunk were encoded by itself.
    A chunk's weight in the mean is its number of tokens, without special tokens and prompt. All of it can be trained
    end to end.

    Make one from a model with :func:`to_chunk_mean`. After ``import simlte_st``, sentence-transformers loads it as any
    other model.

    Args:
        model_name_or_path: The encoder, as for ``Transformer``. Its tokenizer puts one special token before and one
            behind a text.
        chunk_length: Tokens in a chunk, special tokens included.
        pooling_mode: How a chunk is pooled: a mode of ``Pooling``.
        include_prompt: Whether the tokens of a prompt are pooled too.
        normalize_chunks: Whether to scale chunk embeddings to length 1 before their mean.
        **options: Those of ``Transformer``. ``max_seq_length`` is the number of tokens to read of a document, special
            tokens included; it may exceed the encoder's positions.

    Features:
        ``input_ids`` and ``attention_mask`` ``[B, S]``, padded on either side, or flattened (``cu_seq_lens_q``), give
        ``sentence_embedding`` ``[B, d]`` and ``token_embeddings`` ``[B, S, d]``, the states of each token in its chunk,
        so that a masked language model can be trained on them.

    Raises:
        ConfigurationError: The prompt leaves no room in a chunk.
    """

    config_keys: list[str] = [  # noqa: RUF012  # as in the base class
        *Transformer.config_keys,
        *("chunk_length", "pooling_mode", "include_prompt", "normalize_chunks", "max_seq_length"),
    ]

    @checked
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
        self.chunk_length = chunk_length
        self.pooling_mode = pooling_mode
        self.include_prompt = include_prompt
        self.normalize_chunks = normalize_chunks

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add ``sentence_embedding`` and ``token_embeddings``."""
        ids: Tensor = features["input_ids"]
        device, mask = ids.device, features.get("attention_mask")
        if "cu_seq_lens_q" in features:
            bounds = features["cu_seq_lens_q"].cpu().long()
            starts, lengths = bounds[:-1], bounds.diff()
        else:
            starts, lengths = document_spans(torch.ones_like(ids).cpu() if mask is None else mask.cpu())
        inputs: dict[str, Any] = {}
        if features.get("prompt_length") is not None:
            inputs["prompt_length"] = int(torch.as_tensor(features["prompt_length"]).flatten()[0])
        prefix = max(1, inputs.get("prompt_length", 0))  # [CLS] stands before every chunk in any case
        chunks = cut_chunks(starts, lengths, self.chunk_length, prefix)
        pooling = Pooling(self.get_embedding_dimension(), self.pooling_mode, self.include_prompt)
        flat = {name: features[name].flatten() for name in ("input_ids", "token_type_ids") if name in features}
        sizes = CPU_PASS if device.type == "cpu" else _GPU_PASS
        embeddings, states = [], []
        for part in split_by_length(chunks, [len(chunk.places) for chunk in chunks], *sizes):
            places = pad_sequence([chunk.places for chunk in part], batch_first=True).to(device)
            inside = pad_sequence([torch.ones_like(chunk.places) for chunk in part], batch_first=True).to(device)
            batch: dict[str, Any] = {name: values[places] for name, values in flat.items()}
            outputs = pooling(super().forward({**inputs, **batch, "attention_mask": inside}, **kwargs))
            embedding: Tensor = outputs["sentence_embedding"]
            embeddings.append(functional.normalize(embedding, dim=1) if self.normalize_chunks else embedding)
            rows = zip(outputs["token_embeddings"].unbind(), part, strict=True)
            states += [row[chunk.begin : chunk.end] for row, chunk in rows]
        document = torch.tensor([chunk.document for chunk in chunks])
        share = torch.tensor([max(1, len(chunk.places) - prefix - 1) for chunk in chunks]).float()
        weight = share / torch.zeros(len(lengths)).index_add(0, document, share)[document]
        found = torch.cat(embeddings)
        weighted = found.float() * weight.to(device)[:, None]
        sums = torch.zeros(len(lengths), found.shape[1], device=device).index_add(0, document.to(device), weighted)
        own = torch.cat([chunk.places[chunk.begin : chunk.end] for chunk in chunks]).to(device)
        values = states[0].new_zeros(ids.numel(), states[0].shape[1]).index_copy(0, own, torch.cat(states))
        features["token_embeddings"] = values.view(*ids.shape, -1)
        features["sentence_embedding"] = sums.to(values.dtype)
        return features

    def __repr__(self) -> str:
        return "ChunkMean" + super().__repr__().removeprefix("Transformer")


class Chunk(NamedTuple):
    """A chunk of a document."""

    document: int
    places: Tensor  # (tokens,), int64, the places of its tokens in the flattened batch
    begin: int  # the states from here ...
    end: int  # ... to here are its tokens' states in the document; each token's are in one chunk


def cut_chunks(starts: Tensor, lengths: Tensor, chunk_length: int, prefix: int = 1) -> list[Chunk]:
    """Cut documents into chunks, and return them by their length, the longest first.

    A document that fits a chunk is one, as it is. Each chunk of a longer one has the document's ``prefix`` first tokens
    (``[CLS]`` and the prompt), a stretch of the tokens between, and the document's last token (``[SEP]``). All
    stretches but the last are as long as possible.

    Raises:
        ConfigurationError: A document does not fit a chunk, and the prefix leaves no room.
    """
    room = chunk_length - prefix - 1
    chunks = []
    for document, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        tokens = torch.arange(start, start + length)
        if length <= chunk_length:
            chunks += [Chunk(document, tokens, 0, length)] if length else []
            continue
        if room <= 0:
            raise ConfigurationError(
                f"A prompt of {prefix - 1} tokens leaves no room in chunks of {chunk_length}: use longer chunks or a "
                "shorter prompt."
            )
        stretches = tokens[prefix:-1].split(room)
        for number, stretch in enumerate(stretches):
            chunk = torch.cat([tokens[:prefix], stretch, tokens[-1:]])
            end = len(chunk) if number == len(stretches) - 1 else len(chunk) - 1
            chunks.append(Chunk(document, chunk, prefix if number else 0, end))
    return sorted(chunks, key=lambda chunk: -len(chunk.places))


@checked
def to_chunk_mean(model: Any, max_length: int = 4096, chunk_length: ChunkLength | None = None) -> SentenceTransformer:
    """Return a model that reads long documents in chunks: :class:`ChunkMean`.

    Where the model ends with ``Normalize``, chunk embeddings are scaled to length 1 before their mean, and so is the
    mean.

    Args:
        model: ``Transformer``, ``Pooling`` with a single mode, and at most a ``Normalize``; or a model that reads in
            chunks already. It is not changed.
        max_length: Tokens to read of a document, special tokens included. ``max_seq_length`` of the result may be
            changed at any time.
        chunk_length: Tokens in a chunk, special tokens included; None for as many as the model reads now.

    Returns:
        The new model, on the same device, in the same dtype and mode. Weights are copies.

    Raises:
        ModelError: The model is not of this kind; the message says why.
        ConfigurationError: A ``chunk_length`` beyond the encoder's positions.
    """
    if not can_read_in_chunks(model):
        raise ModelError(
            "This model cannot read in chunks: it must consist of Transformer, Pooling with one mode and at most "
            "Normalize, and have a tokenizer that puts one special token before and one behind a text."
        )
    made = copy.deepcopy(model)
    if isinstance(made[0], ChunkMean):
        made[0].chunk_length = chunk_length or made[0].chunk_length
    else:
        readable, length = readable_tokens(model), chunk_length or readable_length(model)
        if readable is not None and length is not None and length > readable:
            raise ConfigurationError(f"chunk_length={length}: the encoder has positions for {readable} tokens.")
        transformer, pooling, *after = made
        reader = ChunkMean.__new__(ChunkMean)
        vars(reader).update(
            vars(transformer),
            chunk_length=length,
            pooling_mode=pooling.pooling_mode,
            include_prompt=pooling.include_prompt,
            normalize_chunks=bool(after),
        )
        made[0] = reader
        del made[1]
    made[0].max_seq_length = max_length
    return cast("SentenceTransformer", made)


def chunk_length(model: SentenceTransformer) -> int | None:
    """Return the number of tokens in the chunks that a model reads documents in; None where it does not."""
    return model[0].chunk_length if isinstance(model[0], ChunkMean) else None


def can_read_in_chunks(model: SentenceTransformer) -> bool:
    """Return whether :func:`to_chunk_mean` takes a model."""
    kinds = [type(module) for module in model]
    if kinds[0] is ChunkMean:
        return True
    if kinds[:2] != [Transformer, Pooling] or kinds[2:] not in ([], [Normalize]):
        return False
    transformer, pooling = cast(Transformer, model[0]), cast(Pooling, model[1])
    if not isinstance(pooling.pooling_mode, str) or transformer.module_output_name != "token_embeddings":
        return False
    tokenizer: Any = transformer.tokenizer
    marks = tokenizer("a a a", return_special_tokens_mask=True)["special_tokens_mask"]
    return len(marks) > 2 and bool(marks[0] and marks[-1]) and sum(marks) == 2
