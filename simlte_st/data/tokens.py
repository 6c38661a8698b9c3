"""Tokens of texts, by either kind of tokenizer: transformers' own, or the bare one of a static embedding.

A ``StaticEmbedding`` of sentence-transformers holds a ``tokenizers.Tokenizer``, which cannot be called, and has no
special tokens to put around a text.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from simlte_st.data.word_tokens import word_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    AnyTokenizer = Tokenizer | PreTrainedTokenizerBase

TOKENIZED_CHARACTERS = 1_000_000
"""Characters that a tokenizer gets at once: it holds over a hundred bytes per token."""

T = TypeVar("T")
S = TypeVar("S", bound=Any)


def in_batches(
    items: Iterable[T], size: Callable[[T], int], largest: int, most: int | None = None
) -> Iterator[list[T]]:
    """Return batches of items in their order, up to a total size and, if given, a number of items."""
    batch: list[T] = []
    total = 0
    for item in items:
        own = size(item)
        if batch and (total + own > largest or len(batch) == most):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += own
    if batch:
        yield batch


def token_ids(tokenizer: AnyTokenizer, texts: Sequence[str], longest: int | None = None) -> Sequence[Sequence[int]]:
    """Return the token ids of each text, without special tokens, up to ``longest`` of them."""
    if isinstance(tokenizer, Tokenizer):
        ids, lengths = flat_ids(tokenizer, texts)
        return [own[:longest] for own in np.split(ids, np.cumsum(lengths))[:-1]]  # type: ignore[misc]
    read = tokenizer(
        list(texts), add_special_tokens=False, truncation=longest is not None, max_length=longest,
        return_attention_mask=False, verbose=False,  # no warning of texts longer than the model's input
    )  # fmt: skip
    return cast("Sequence[Sequence[int]]", read["input_ids"])


def count_tokens(tokenizer: AnyTokenizer, texts: Sequence[str]) -> list[int]:
    """Count the tokens of each text, special ones not counted."""
    if isinstance(tokenizer, Tokenizer):
        return cast("list[int]", flat_ids(tokenizer, texts)[1].tolist())
    return [len(ids) for ids in token_ids(tokenizer, texts)]


def flat_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the token ids of all texts, one after the other, and the number of each text's."""
    if tokenizer.truncation is not None:  # model2vec writes 512 tokens into it, and a static embedding has no limit
        tokenizer.no_truncation()
    if tokenizer.padding is not None:
        tokenizer.no_padding()
    words = word_tokens(tokenizer)
    lengths, found = np.zeros(len(texts), dtype=np.int64), [np.zeros(0, dtype=np.int64)]
    pieces = ((row, piece) for row, text in enumerate(texts) for piece in _pieces(text))
    for batch in in_batches(pieces, lambda piece: len(piece[1]), TOKENIZED_CHARACTERS):
        rows, own = zip(*batch, strict=True)
        ids, counts = _cut(tokenizer, own) if words is None else words.cut(tokenizer, own)
        found.append(ids.astype(np.int64))
        np.add.at(lengths, np.array(rows), counts)
    return np.concatenate(found), lengths


def _cut(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    ids = itertools.chain.from_iterable(encoding.ids for encoding in encoded)
    return np.fromiter(ids, dtype=np.int64, count=int(lengths.sum())), lengths


def _pieces(text: str) -> Iterator[str]:
    """Cut a very long text at spaces, so that the tokenizer, which takes 150 bytes a token, gets a part at a time."""
    begin = 0
    while len(text) - begin > TOKENIZED_CHARACTERS:
        stop = max(text.rfind(space, begin + 1, begin + TOKENIZED_CHARACTERS) for space in " \n")
        stop = stop if stop > begin else begin + TOKENIZED_CHARACTERS
        yield text[begin:stop]
        begin = stop
    yield text[begin:] if begin else text


def vocabulary_size(tokenizer: AnyTokenizer) -> int:
    """Return the number of tokens that a tokenizer knows."""
    return tokenizer.get_vocab_size() if isinstance(tokenizer, Tokenizer) else len(tokenizer)


def special_ids(tokenizer: AnyTokenizer) -> list[int]:
    """Return the ids of special tokens."""
    if isinstance(tokenizer, Tokenizer):
        return [number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    return list(tokenizer.all_special_ids)


def space_before(tokenizer: AnyTokenizer) -> str:
    """Return a space if words have other tokens after one than at the beginning of a text, else nothing."""
    once, twice = (list(ids) for ids in token_ids(tokenizer, ["a", "a a"]))
    return "" if twice == once * 2 else " "


def unknown_id(tokenizer: AnyTokenizer) -> int | None:
    """Return the id of the token that stands for what the vocabulary lacks; None where there is none."""
    if not isinstance(tokenizer, Tokenizer):
        return cast("int | None", tokenizer.unk_token_id)
    if (token := getattr(tokenizer.model, "unk_token", None)) is not None:
        return tokenizer.token_to_id(token)
    number: int | None = json.loads(tokenizer.to_str())["model"].get("unk_id")  # a unigram model does not tell
    return number


def split_by_length(order: S, sizes: Sequence[int], most: int, padding: int) -> list[S]:
    """Split rows that are sorted by length, the longest first, where a batch would be too large or too padded.

    Args:
        order: Numbers of the rows, as a tensor or array.
        sizes: Their lengths.
        most: Largest number of slots in a batch, padding included.
        padding: How many of them may be padding.
    """
    pieces, start, padded = [], 0, 0
    for index, size in enumerate(sizes):
        width = sizes[start]
        padded += width - size
        if index > start and (padded > padding or (index + 1 - start) * width > most):
            pieces.append(order[start:index])
            start, padded = index, 0
    return [*pieces, order[start:]] if len(sizes) else []
