"""Tokenize texts with a transformers tokenizer, or with the ``tokenizers.Tokenizer`` of a static embedding.

Tokenizers that split at white space first, as BERT's do, have their words cached: most words were in earlier texts, and
a lookup takes a seventh of the time of tokenizing. Where the order of tokens does not matter, each distinct word of a
text is looked up once and counted.
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
"""Characters to tokenize at a time; a tokenizer takes over a hundred bytes per token."""

CPU_PASS = (2048, 64)
"""Maximum number of tokens, and padding, in a forward pass on a CPU, so that the data stay in its caches."""

MOST = 1 << 18
"""Maximum number of words in the cache, about 40 MB; as many earlier words are kept too."""

LONGEST = 32  # maximum length of a cached word; longer ones rarely occur again

_TOGETHER = 1024  # words tokenized at a time: one result for all is faster than one each

_DISPUTED = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
"""Python white space that a tokenizer may keep in a word, or drop without splitting."""

_CUTTING = (pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit)
_BY_WORD = (
    type(None), normalizers.BertNormalizer, normalizers.Lowercase,
    normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD,
)  # fmt: skip
_TOKENIZERS: WeakKeyDictionary[Tokenizer, WordTokens] = WeakKeyDictionary()

T = TypeVar("T")
S = TypeVar("S", bound=Any)
Ints = NDArray[np.int64]


def in_batches(
    items: Iterable[T], size: Callable[[T], int], largest: int, most: int | None = None
) -> Iterator[list[T]]:
    """Yield batches of items in order, up to a total size and, optionally, a number of items."""
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
        return_attention_mask=False, verbose=False,  # no warning about texts longer than the model's input
    )  # fmt: skip
    return cast("Sequence[Sequence[int]]", read["input_ids"])


def count_tokens(tokenizer: AnyTokenizer, texts: Sequence[str]) -> list[int]:
    """Count the tokens of each text, without special tokens."""
    if isinstance(tokenizer, Tokenizer):
        return cast("list[int]", flat_ids(tokenizer, texts)[1].tolist())
    batches = in_batches(texts, len, TOKENIZED_CHARACTERS)
    return [len(ids) for batch in batches for ids in token_ids(tokenizer, batch)]


def flat_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the concatenated token ids of all texts, and the number of tokens in each text."""
    ids, _, sizes = counted_ids(tokenizer, texts, once=False)
    return ids, sizes


def counted_ids(tokenizer: Tokenizer, texts: Sequence[str], once: bool = True) -> tuple[Ints, Ints, Ints]:
    """Return token ids, the count of each id, and the number of ids in each text.

    Args:
        tokenizer: The tokenizer.
        texts: The texts.
        once: Return the ids of each distinct word once, in order of first occurrence, if the tokenizer's words are
            cached; otherwise all counts are 1.
    """
    if tokenizer.truncation is not None:  # model2vec sets 512 tokens, but a static embedding has no limit
        tokenizer.no_truncation()
    if tokenizer.padding is not None:
        tokenizer.no_padding()
    words, none = word_tokens(tokenizer), np.zeros(0, dtype=np.int64)
    sizes, found, counts = np.zeros(len(texts), dtype=np.int64), [none], [none]
    parts = ((row, piece) for row, text in enumerate(texts) for piece in split_long_text(text, TOKENIZED_CHARACTERS))
    for batch in in_batches(parts, lambda part: len(part[1]), TOKENIZED_CHARACTERS):
        rows, own = zip(*batch, strict=True)
        ids, times, lengths = _cut(tokenizer, own) if words is None else words.read(tokenizer, own, once)
        found.append(ids.astype(np.int64))
        counts.append(times)
        np.add.at(sizes, np.array(rows), lengths)
    return np.concatenate(found), np.concatenate(counts), sizes


def group_sums(values: Ints, sizes: ArrayLike) -> Ints:
    """Return the sums of consecutive groups of values, whose sizes are given."""
    before = np.concatenate([[0], np.cumsum(values)])
    sums: Ints = np.diff(before[np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])])
    return sums


def _cut(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    ids = itertools.chain.from_iterable(encoding.ids for encoding in encoded)
    found = np.fromiter(ids, dtype=np.int64, count=int(lengths.sum()))
    return found, np.ones_like(found), lengths


def split_long_text(text: str, most: int) -> Iterator[str]:
    """Split a very long text before white space, since a tokenizer takes 150 bytes per token."""
    begin = 0
    while len(text) - begin > most:
        stop = max(text.rfind(space, begin + 1, begin + most) for space in " \n\t")
        stop = stop if stop > begin else begin + most
        yield text[begin:stop]
        begin = stop
    yield text[begin:] if begin else text


def vocabulary_size(tokenizer: AnyTokenizer) -> int:
    """Return the vocabulary size of a tokenizer."""
    return tokenizer.get_vocab_size() if isinstance(tokenizer, Tokenizer) else len(tokenizer)


def special_ids(tokenizer: AnyTokenizer) -> list[int]:
    """Return the ids of special tokens."""
    if isinstance(tokenizer, Tokenizer):
        return [number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    return list(tokenizer.all_special_ids)


def space_before(tokenizer: AnyTokenizer) -> str:
    """Return a space if words have different tokens after one than at the beginning, otherwise an empty string."""
    once, twice = (list(ids) for ids in token_ids(tokenizer, ["a", "a a"]))
    return "" if twice == once * 2 else " "


def unknown_id(tokenizer: AnyTokenizer) -> int | None:
    """Return the id of the unknown token; None if there is none."""
    if not isinstance(tokenizer, Tokenizer):
        return cast("int | None", tokenizer.unk_token_id)
    if (token := getattr(tokenizer.model, "unk_token", None)) is not None:
        return tokenizer.token_to_id(token)
    # A unigram model has no such attribute.
    return cast("int | None", json.loads(tokenizer.to_str())["model"].get("unk_id"))


def word_tokens(tokenizer: Tokenizer) -> WordTokens | None:
    """Return the word cache of a tokenizer; None if texts cannot be tokenized word by word."""
    if not isinstance(tokenizer.pre_tokenizer, _CUTTING) or not isinstance(tokenizer.normalizer, _BY_WORD):
        return None
    added = tokenizer.get_added_tokens_decoder()
    if any(len(token.content.split()) != 1 for token in added.values()):
        return None
    state = tokenizer.get_vocab_size(), len(added), tokenizer.encode_special_tokens
    try:
        kept = _TOKENIZERS.get(tokenizer)
    except TypeError:  # tokenizers before 0.23 has no weak references, so there is no cache
        return None
    if kept is None or kept.state != state:  # tokens have been added
        kept = _TOKENIZERS[tokenizer] = WordTokens(state)
    return kept


class WordTokens:
    """A cache of token ids by word, as int32 bytes."""

    def __init__(self, state: tuple[int, int, bool]) -> None:
        self.state = state
        self._ids: dict[str, bytes] = {}
        self._before: dict[str, bytes] = {}  # earlier words, moved back when they occur again
        self._lock = Lock()

    def read(self, tokenizer: Tokenizer, texts: Sequence[str], once: bool) -> tuple[NDArray[np.int32], Ints, Ints]:
        """Return the result of :func:`counted_ids`."""
        words: list[Any] = [Counter(_words(text)) if once else _words(text) for text in texts]
        found = self._find(tokenizer, words)
        numbers = (number for each in words for number in each.values()) if once else itertools.repeat(1, len(found))
        sizes = np.fromiter(map(len, found), np.int64, len(found)) // 4
        times = np.repeat(np.fromiter(numbers, np.int64, len(found)), sizes)
        return np.frombuffer(b"".join(found), np.int32), times, group_sums(sizes, [*map(len, words)])

    def _find(self, tokenizer: Tokenizer, words: Sequence[Collection[str]]) -> list[bytes]:
        """Return the token ids of each word."""
        every = [*itertools.chain.from_iterable(words)]
        with self._lock:
            found = [*map(self._ids.get, every)]
            if None not in found:
                return cast("list[bytes]", found)
            new = dict.fromkeys(word for word, ids in zip(every, found, strict=True) if ids is None)
            learned = {word: self._before[word] for word in new if word in self._before}
            learned.update(_cut_words(tokenizer, [word for word in new if word not in learned]))
            kept = {word: ids for word, ids in learned.items() if len(word) <= LONGEST}
            if len(self._ids) + len(kept) > MOST:
                self._before, self._ids = self._ids, {}
            self._ids.update(kept)
        return [learned[word] if ids is None else ids for word, ids in zip(every, found, strict=True)]


def _words(text: str) -> list[str]:
    """Split a text at white space; if it has unusual white space, only where every tokenizer splits."""
    return text.replace("\n", " ").split(" ") if any(map(text.__contains__, _DISPUTED)) else text.split()


def _cut_words(tokenizer: Tokenizer, words: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield words with their token ids."""
    parts = [words[start : start + _TOGETHER] for start in range(0, len(words), _TOGETHER)]
    read = tokenizer.encode_batch(parts, is_pretokenized=True, add_special_tokens=False)
    for part, encoded in zip(parts, read, strict=True):
        ids = np.array(encoded.ids, dtype=np.int32).tobytes()
        ends = np.cumsum(np.bincount(np.array(encoded.word_ids, dtype=np.int64), minlength=len(part))) * 4
        yield from zip(part, (ids[start:end] for start, end in itertools.pairwise([0, *ends.tolist()])), strict=True)


def split_by_length(order: S, sizes: Sequence[int], most: int, padding: int) -> list[S]:
    """Split rows, sorted by descending length, into batches of limited size and padding.

    Args:
        order: Row indices, as a tensor or array.
        sizes: Lengths of the rows.
        most: Maximum number of positions in a batch, including padding.
        padding: Maximum number of padding positions.
    """
    pieces, start, padded = [], 0, 0
    for index, size in enumerate(sizes):
        width = sizes[start]
        padded += width - size
        if index > start and (padded > padding or (index + 1 - start) * width > most):
            pieces.append(order[start:index])
            start, padded = index, 0
    return [*pieces, order[start:]] if len(sizes) else []
