"""Tokenize texts with a transformers tokenizer or a static embedding's ``tokenizers.Tokenizer``.

For tokenizers that first split at white space, such as BERT's, words are cached, because most have occurred before and
a lookup is seven times as fast as tokenizing. If the order of tokens does not matter, each distinct word in a text is
looked up once and counted.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Tokenizer, normalizers, pre_tokenizers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    AnyTokenizer = Tokenizer | PreTrainedTokenizerBase

TOKENIZED_CHARACTERS = 1_000_000
"""Characters to tokenize at a time; a tokenizer needs over a hundred bytes of memory per token."""

CPU_PASS = (2048, 64)
"""Maximum number of positions, and of padding positions, in a CPU forward pass, so that data stay in its caches."""

MAX_CACHED_WORDS = 1 << 18
"""Maximum number of words in each of the two generations of the cache, about 40 MB each."""

MAX_CACHED_LENGTH = 32  # characters; longer words rarely recur

_WORDS_PER_CALL = 1024  # one call for many words is faster than one call per word

_DISPUTED = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
"""White space to Python that a tokenizer may keep inside a word, or drop without splitting there."""

_SPLITTERS = (pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit)
_NORMALIZERS = (
    type(None), normalizers.BertNormalizer, normalizers.Lowercase,
    normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD,
)  # fmt: skip
_CACHES: WeakKeyDictionary[Tokenizer, WordTokens] = WeakKeyDictionary()

T = TypeVar("T")
Rows = TypeVar("Rows", bound=Any)  # a list, array or tensor
Ints = NDArray[np.int64]


def in_batches(
    items: Iterable[T], size: Callable[[T], int], max_size: int, max_items: int | None = None
) -> Iterator[list[T]]:
    """Yield batches of items, in order, up to a total size and, optionally, a number of items."""
    batch: list[T] = []
    total = 0
    for item in items:
        item_size = size(item)
        if batch and (total + item_size > max_size or len(batch) == max_items):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += item_size
    if batch:
        yield batch


def token_ids(tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int | None = None) -> Sequence[Sequence[int]]:
    """Return the first ``max_length`` token ids of each text, without special tokens."""
    if isinstance(tokenizer, Tokenizer):
        flat, lengths = flat_ids(tokenizer, texts)
        return [ids[:max_length] for ids in np.split(flat, np.cumsum(lengths))[:-1]]  # type: ignore[misc]
    features = tokenizer(
        list(texts), add_special_tokens=False, truncation=max_length is not None, max_length=max_length,
        return_attention_mask=False, verbose=False,  # no warning about texts longer than the model's input
    )  # fmt: skip
    return cast("Sequence[Sequence[int]]", features["input_ids"])


def count_tokens(tokenizer: AnyTokenizer, texts: Sequence[str]) -> list[int]:
    """Count the tokens in each text, without special tokens."""
    if isinstance(tokenizer, Tokenizer):
        return cast("list[int]", flat_ids(tokenizer, texts)[1].tolist())
    return [len(ids) for batch in in_batches(texts, len, TOKENIZED_CHARACTERS) for ids in token_ids(tokenizer, batch)]


def flat_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the token ids of all texts, concatenated, and the number of tokens in each text."""
    ids, _, sizes = counted_ids(tokenizer, texts, once=False)
    return ids, sizes


def counted_ids(tokenizer: Tokenizer, texts: Sequence[str], once: bool = True) -> tuple[Ints, Ints, Ints]:
    """Return the token ids, the count of each id, and the number of ids in each text.

    Args:
        tokenizer: The tokenizer.
        texts: The texts.
        once: Whether to return each distinct word's ids only once, in order of first occurrence, if the tokenizer's
            words are cached; otherwise all counts are 1.
    """
    if tokenizer.truncation is not None:  # model2vec truncates to 512 tokens, but a static embedding has no limit
        tokenizer.no_truncation()
    if tokenizer.padding is not None:
        tokenizer.no_padding()
    cache, empty = word_tokens(tokenizer), np.zeros(0, dtype=np.int64)
    sizes, id_arrays, count_arrays = np.zeros(len(texts), dtype=np.int64), [empty], [empty]
    parts = ((row, piece) for row, text in enumerate(texts) for piece in split_long_text(text, TOKENIZED_CHARACTERS))
    for batch in in_batches(parts, lambda part: len(part[1]), TOKENIZED_CHARACTERS):
        rows, pieces = zip(*batch, strict=True)
        ids, counts, lengths = _encode(tokenizer, pieces) if cache is None else cache.encode(tokenizer, pieces, once)
        id_arrays.append(ids.astype(np.int64))
        count_arrays.append(counts)
        np.add.at(sizes, np.array(rows), lengths)
    return np.concatenate(id_arrays), np.concatenate(count_arrays), sizes


def group_sums(values: Ints, sizes: ArrayLike) -> Ints:
    """Sum the values in consecutive groups of the given sizes."""
    sums_before = np.concatenate([[0], np.cumsum(values)])
    sums: Ints = np.diff(sums_before[np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])])
    return sums


def _encode(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    lengths = np.fromiter(map(len, encodings), dtype=np.int64, count=len(encodings))
    flat = itertools.chain.from_iterable(encoding.ids for encoding in encodings)
    ids = np.fromiter(flat, dtype=np.int64, count=int(lengths.sum()))
    return ids, np.ones_like(ids), lengths


def split_long_text(text: str, max_length: int) -> Iterator[str]:
    """Split a very long text before white space, to save memory: a tokenizer needs 150 bytes per token."""
    begin = 0
    while len(text) - begin > max_length:
        stop = max(text.rfind(space, begin + 1, begin + max_length) for space in " \n\t")
        stop = stop if stop > begin else begin + max_length
        yield text[begin:stop]
        begin = stop
    yield text[begin:] if begin else text


def vocabulary_size(tokenizer: AnyTokenizer) -> int:
    """Return a tokenizer's vocabulary size."""
    return tokenizer.get_vocab_size() if isinstance(tokenizer, Tokenizer) else len(tokenizer)


def special_ids(tokenizer: AnyTokenizer) -> list[int]:
    """Return the ids of a tokenizer's special tokens."""
    if isinstance(tokenizer, Tokenizer):
        return [number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    return list(tokenizer.all_special_ids)


def space_before(tokenizer: AnyTokenizer) -> str:
    """Return a space if a preceding space changes a word's tokens, otherwise an empty string."""
    single, double = (list(ids) for ids in token_ids(tokenizer, ["a", "a a"]))
    return "" if double == single * 2 else " "


def unknown_id(tokenizer: AnyTokenizer) -> int | None:
    """Return the id of the unknown token; None if there is none."""
    if not isinstance(tokenizer, Tokenizer):
        return cast("int | None", tokenizer.unk_token_id)
    if (token := getattr(tokenizer.model, "unk_token", None)) is not None:
        return tokenizer.token_to_id(token)
    # A unigram model has no attribute for the unknown token.
    return cast("int | None", json.loads(tokenizer.to_str())["model"].get("unk_id"))


def word_tokens(tokenizer: Tokenizer) -> WordTokens | None:
    """Return a tokenizer's word cache; None if texts cannot be tokenized word by word."""
    if not isinstance(tokenizer.pre_tokenizer, _SPLITTERS) or not isinstance(tokenizer.normalizer, _NORMALIZERS):
        return None
    added = tokenizer.get_added_tokens_decoder()
    if any(len(token.content.split()) != 1 for token in added.values()):
        return None
    state = tokenizer.get_vocab_size(), len(added), tokenizer.encode_special_tokens
    try:
        cache = _CACHES.get(tokenizer)
    except TypeError:  # no cache: tokenizers before 0.23 does not support weak references
        return None
    if cache is None or cache.state != state:  # tokens have been added
        cache = _CACHES[tokenizer] = WordTokens(state)
    return cache


class WordTokens:
    """A cache of token ids by word, as int32 bytes."""

    def __init__(self, state: tuple[int, int, bool]) -> None:
        self.state = state
        self._ids: dict[str, bytes] = {}
        self._earlier: dict[str, bytes] = {}  # the previous generation; words that recur move back to _ids
        self._lock = Lock()

    def encode(self, tokenizer: Tokenizer, texts: Sequence[str], once: bool) -> tuple[NDArray[np.int32], Ints, Ints]:
        """Return the same values as :func:`counted_ids`."""
        words = [_words(text) for text in texts]
        counters = [*map(Counter, words)] if once else []
        ids = self._look_up(tokenizer, counters or words)
        counts = itertools.chain.from_iterable(map(Counter.values, counters)) if once else itertools.repeat(1, len(ids))
        sizes = np.fromiter(map(len, ids), np.int64, len(ids)) // 4
        times = np.repeat(np.fromiter(counts, np.int64, len(ids)), sizes)
        return np.frombuffer(b"".join(ids), np.int32), times, group_sums(sizes, [*map(len, counters or words)])

    def _look_up(self, tokenizer: Tokenizer, texts: Sequence[Collection[str]]) -> list[bytes]:
        """Return the token ids of each word."""
        words = [*itertools.chain.from_iterable(texts)]
        with self._lock:
            cached = [*map(self._ids.get, words)]
            if None not in cached:
                return cast("list[bytes]", cached)
            missing = dict.fromkeys(word for word, ids in zip(words, cached, strict=True) if ids is None)
            new = {word: self._earlier[word] for word in missing if word in self._earlier}
            new.update(_encode_words(tokenizer, [word for word in missing if word not in new]))
            short = {word: ids for word, ids in new.items() if len(word) <= MAX_CACHED_LENGTH}
            if len(self._ids) + len(short) > MAX_CACHED_WORDS:
                self._earlier, self._ids = self._ids, {}
            self._ids.update(short)
        return [new[word] if ids is None else ids for word, ids in zip(words, cached, strict=True)]


def _words(text: str) -> list[str]:
    """Split a text at white space or, if it has unusual white space, only where every tokenizer splits."""
    return text.replace("\n", " ").split(" ") if any(map(text.__contains__, _DISPUTED)) else text.split()


def _encode_words(tokenizer: Tokenizer, words: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield each word with its token ids."""
    parts = [words[start : start + _WORDS_PER_CALL] for start in range(0, len(words), _WORDS_PER_CALL)]
    encodings = tokenizer.encode_batch(parts, is_pretokenized=True, add_special_tokens=False)
    for part, encoding in zip(parts, encodings, strict=True):
        ids = np.array(encoding.ids, dtype=np.int32).tobytes()
        ends = np.cumsum(np.bincount(np.array(encoding.word_ids, dtype=np.int64), minlength=len(part))) * 4
        yield from zip(part, (ids[start:end] for start, end in itertools.pairwise([0, *ends.tolist()])), strict=True)


def split_by_length(order: Rows, sizes: Sequence[int], max_positions: int, max_padding: int) -> list[Rows]:
    """Split rows, sorted by descending length, into batches with limited size and padding.

    Args:
        order: The rows, or their indices.
        sizes: Lengths of the rows.
        max_positions: Maximum number of positions in a batch, including padding.
        max_padding: Maximum number of padding positions in a batch.
    """
    batches, start, padding = [], 0, 0
    for index, size in enumerate(sizes):
        width = sizes[start]
        padding += width - size
        if index > start and (padding > max_padding or (index + 1 - start) * width > max_positions):
            batches.append(order[start:index])
            start, padding = index, 0
    return [*batches, order[start:]] if len(sizes) else []
