"""Long documents through a short encoder: the mean of the embeddings of their chunks."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import torch
from annotated_types import Interval
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, PreTrainedModel
from typing_extensions import Self

from simlte_st.arguments import checked
from simlte_st.compat import readable_length, readable_tokens
from simlte_st.data.tokens import split_by_length
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import read_json
from simlte_st.longformer.packing import document_spans

ChunkLength = Annotated[int, Interval(ge=3)]
"""Tokens in a chunk: two special tokens and at least one of the text."""

OLD_TYPE = "simlte_chunk_mean"
"""Version 0.1 saved such models as an architecture of transformers with this ``model_type``."""

# Tokens that go through the encoder at once, and how many of them may be padding. A CPU is fastest while its data stay
# in its caches; a GPU starts slowly. Both bound the memory of inference.
_CPU_PASS = (2048, 64)
_GPU_PASS = (32768, 4096)


class ChunkMean(Transformer):
    """``Transformer`` and ``Pooling`` in one, for documents of any length: the mean of the embeddings of their chunks.

    A document that fits one chunk has the embedding that the encoder gives it. A longer one is split into chunks, each
    with the special tokens around it and with the prompt, if any, before it, as if every chunk were encoded by itself.
    A chunk's weight in the mean is its number of tokens, without special tokens and prompt. All of it can be trained
    end to end.

    Make one from a model with :func:`to_chunk_mean`. ``simlte_st.SentenceTransformer`` loads it as any other model; the
    stock class needs ``trust_remote_code=True``.

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
        if is_old(model_name_or_path):
            del self.model._weight_conversions  # else it would be saved with the old names of its weights
        self.chunk_length = chunk_length
        self.pooling_mode = pooling_mode
        self.include_prompt = include_prompt
        self.normalize_chunks = normalize_chunks

    @classmethod
    def around(cls, transformer: Transformer, **settings: Any) -> Self:
        """Return a module with a copy of the encoder and tokenizer of another one."""
        made = cls.__new__(cls)
        vars(made).update(vars(copy.deepcopy(transformer)), **settings)
        return made

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add ``sentence_embedding`` and ``token_embeddings``."""
        ids: Tensor = features["input_ids"]
        mask = features.get("attention_mask")
        if "cu_seq_lens_q" in features:
            bounds = features["cu_seq_lens_q"].cpu().long()
            starts, lengths = bounds[:-1], bounds.diff()
        else:
            starts, lengths = document_spans(torch.ones_like(ids).cpu() if mask is None else mask.cpu())
        prompt = features.get("prompt_length")
        prompt = None if prompt is None else int(torch.as_tensor(prompt).flatten()[0])
        pooling = Pooling(self.get_embedding_dimension(), self.pooling_mode, self.include_prompt)
        flat = {name: features[name].flatten() for name in ("input_ids", "token_type_ids") if name in features}
        sizes = _CPU_PASS if ids.device.type == "cpu" else _GPU_PASS
        # [CLS] stands before every chunk in any case.
        plan = list(plan_chunks(starts, lengths, self.chunk_length, max(1, prompt or 0), *sizes))
        embeddings, states = [], []
        for chunks in plan:
            inputs: dict[str, Any] = {name: values[chunks.places.to(ids.device)] for name, values in flat.items()}
            inputs["attention_mask"] = chunks.inside.long().to(ids.device)
            if prompt is not None:
                inputs["prompt_length"] = prompt
            outputs = pooling(super().forward(inputs, **kwargs))
            embedding: Tensor = outputs["sentence_embedding"]
            embeddings.append(functional.normalize(embedding, dim=1) if self.normalize_chunks else embedding)
            states.append(outputs["token_embeddings"].flatten(0, 1)[chunks.own.flatten().to(ids.device)])
        document = torch.cat([chunks.document for chunks in plan]).to(ids.device)
        weight = torch.cat([chunks.weight for chunks in plan]).to(ids.device)
        found = torch.cat(embeddings)
        sums = torch.zeros(len(lengths), found.shape[1], device=ids.device)
        means = sums.index_add(0, document, found.float() * weight[:, None]).to(states[0].dtype)
        targets = torch.cat([chunks.places[chunks.own] for chunks in plan]).to(ids.device)
        values = states[0].new_zeros(ids.numel(), states[0].shape[1]).index_copy(0, targets, torch.cat(states))
        features["token_embeddings"] = values.view(*ids.shape, -1)
        features["sentence_embedding"] = means
        features["cls_token_embeddings"] = means  # for the Pooling("cls") that comes next in models of version 0.1
        return features

    def __repr__(self) -> str:
        return "ChunkMean" + super().__repr__().removeprefix("Transformer")

    # Folders of version 0.1 have the settings and the encoder's configuration in config.json.

    @classmethod
    def _load_init_kwargs(cls, model_name_or_path: str, *args: Any, **options: Any) -> dict[str, Any]:
        values: dict[str, Any] = super()._load_init_kwargs(model_name_or_path, *args, **options)
        if is_old(model_name_or_path):
            old = read_json(Path(model_name_or_path, "config.json"))
            names = ("chunk_length", "pooling_mode", "include_prompt", "normalize_chunks")
            values |= {name: old[name] for name in names}
            values["max_seq_length"] = read_json(Path(model_name_or_path, "tokenizer_config.json"))["model_max_length"]
            values["model_kwargs"]["key_mapping"] = {r"^encoder\.": ""}
        return values

    def _load_config(self, model_name_or_path: str, backend: str, config_kwargs: dict[str, Any]) -> tuple[Any, bool]:
        if is_old(model_name_or_path):
            return AutoConfig.for_model(**read_json(Path(model_name_or_path, "config.json"))["encoder_config"]), False
        return cast("tuple[Any, bool]", super()._load_config(model_name_or_path, backend, config_kwargs))


def is_old(source: str) -> bool:
    """Return whether a folder holds a chunk mean that version 0.1 saved."""
    config = Path(source, "config.json")
    return config.is_file() and read_json(config).get("model_type") == OLD_TYPE


class Chunks(NamedTuple):
    """Chunks that go through the encoder together, the longest first, padded on the right."""

    places: Tensor  # (chunks, width), int64, index of a slot's token in the flattened batch; 0 at padding
    inside: Tensor  # (chunks, width), bool, whether a slot belongs to the chunk, as opposed to padding
    own: Tensor  # (chunks, width), bool, whether the slot's state is its token's; true once for each token
    document: Tensor  # (chunks,), int64, number of the chunk's document
    weight: Tensor  # (chunks,), float32, weight of the chunk in its document's mean; a document's weights sum to 1


def plan_chunks(
    starts: Tensor, lengths: Tensor, chunk_length: int, prefix: int = 1, slots: int = 2048, padding: int = 64
) -> Iterator[Chunks]:
    """Split documents into chunks, and yield chunks of similar lengths together.

    A document that fits a chunk is one, as it is. Each chunk of a longer one has the document's ``prefix`` first tokens
    (``[CLS]`` and the prompt), a stretch of the tokens between, and the document's last token (``[SEP]``). All
    stretches but the last are as long as possible.

    Raises:
        ConfigurationError: A document does not fit a chunk, and the prefix leaves no room.
    """
    room = chunk_length - prefix - 1
    if room <= 0 and bool((lengths > chunk_length).any()):
        raise ConfigurationError(
            f"A prompt of {prefix - 1} tokens leaves no room in chunks of {chunk_length}: use longer chunks or a "
            "shorter prompt."
        )
    places, owned, document = [], [], []
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        tokens = torch.arange(start, start + length)
        stretches = [tokens[prefix:-1]] if length <= chunk_length else list(tokens[prefix:-1].split(room))
        for number, stretch in enumerate(stretches if length else []):
            chunk = torch.cat([tokens[:prefix], stretch, tokens[-1:]]) if len(stretches) > 1 else tokens
            first, last = number == 0, number == len(stretches) - 1
            places.append(chunk)
            owned.append((0 if first else prefix, len(chunk) - (not last)))
            document.append(row)
    rows, size, (begin, end) = torch.tensor(document), torch.tensor([*map(len, places)]), torch.tensor(owned).T
    share = (size - prefix - 1).clamp(min=1).float()
    weight = share / torch.zeros(len(lengths)).index_add(0, rows, share)[rows]
    order = size.argsort(descending=True, stable=True)
    for chosen in split_by_length(order, size[order].tolist(), slots, padding):
        slot = torch.arange(int(size[chosen[0]]))
        own = (slot >= begin[chosen, None]) & (slot < end[chosen, None])
        padded = pad_sequence([places[index] for index in chosen.tolist()], batch_first=True)
        yield Chunks(padded, slot < size[chosen, None], own, rows[chosen], weight[chosen])


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
        ConfigurationError: A ``chunk_length`` beyond the encoder's positions, or for a model that has chunks already.
    """
    first, *after = model
    if isinstance(first, ChunkMean):
        if chunk_length not in (None, first.chunk_length):
            raise ConfigurationError(
                "The model reads in chunks already: leave out chunk_length=, or convert the model it was made from."
            )
        reader = copy.deepcopy(first)
    else:
        if obstacle := _obstacle(model):
            raise ModelError(f"This model cannot read in chunks: {obstacle}.")
        readable, (pooling, *after) = readable_tokens(model), after
        length = chunk_length or readable_length(model)
        if length is None:
            raise ConfigurationError("The model has no limit to its length: set chunk_length=.")
        if readable is not None and length > readable:
            raise ConfigurationError(f"chunk_length={length}: the encoder has positions for {readable} tokens.")
        reader = ChunkMean.around(
            first,
            chunk_length=length,
            pooling_mode=pooling.pooling_mode,
            include_prompt=pooling.include_prompt,
            normalize_chunks=bool(after),
        )
    reader.max_seq_length = max_length
    made = SentenceTransformer(
        modules=[reader, *copy.deepcopy(after)],
        device=str(model.device),
        prompts={name: prompt for name, prompt in model.prompts.items() if prompt is not None},
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name=model.similarity_fn_name,
        truncate_dim=model.truncate_dim,
    )
    return made.train(model.training)


def chunk_length(model: SentenceTransformer) -> int | None:
    """Return the number of tokens in the chunks that a model reads documents in; None where it does not."""
    return model[0].chunk_length if isinstance(model[0], ChunkMean) else None


def can_read_in_chunks(model: SentenceTransformer) -> bool:
    """Return whether :func:`to_chunk_mean` takes a model."""
    return isinstance(model[0], ChunkMean) or not _obstacle(model)


def _obstacle(model: SentenceTransformer) -> str:
    """Return why a model cannot read in chunks; empty for one that can."""
    kinds = [type(module) for module in model]
    if kinds[:2] != [Transformer, Pooling] or kinds[2:] not in ([], [Normalize]):
        names = ", ".join(kind.__name__ for kind in kinds)
        return f"it consists of {names}, not of Transformer, Pooling and at most Normalize"
    transformer, pooling = cast(Transformer, model[0]), cast(Pooling, model[1])
    if not isinstance(pooling.pooling_mode, str):
        return f"it pools {' and '.join(pooling.pooling_mode)} together"
    if not isinstance(transformer.model, PreTrainedModel):
        return f"its encoder is a {type(transformer.model).__name__}"
    if transformer.module_output_name != "token_embeddings":
        return f"its architecture, {transformer.config.model_type!r}, returns no states of the tokens of a text"
    tokenizer: Any = transformer.tokenizer
    marks = tokenizer("a a a", return_special_tokens_mask=True)["special_tokens_mask"]
    if sum(marks) != 2 or len(marks) < 3 or not (marks[0] and marks[-1]):
        return f"{type(tokenizer).__name__} does not put one special token before and one behind a text"
    return ""
