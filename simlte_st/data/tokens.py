"""Sentences to token ids, so that ids can be put together as their texts would be.

A view is sentences joined by single spaces. Its token ids are those of its sentences, one after another, if each
sentence is tokenized as it stands *after a space*; only the first one, which opens the text, may begin otherwise. For
tokenizers that drop white space before they look at words (BERT's) the two forms are the same. For the others (the
byte-level BPE of RoBERTa and Longformer, some SentencePiece models) the opening form is kept beside the ids: the few
tokens in which it differs.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase

from simlte_st.data.words import word_spans
from simlte_st.errors import ModelError

Ints = NDArray[np.int32]

_CONTEXT = "."  # what stands before the space when the form after a space is wanted: most sentences end so

# Pre-tokenizers that cut at white space and drop it, and normalizers that leave it where it is: behind these, what
# stands before a space can have no effect on the tokens after it.
_DROP_SPACE = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
_KEEP_PLACE = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents"}


@dataclass(frozen=True, eq=False)
class TokenizedSentences:
    """Several sentences as token ids. All arrays are int32.

    Attributes:
        ids: Token ids of all sentences as they stand after a space, ``(tokens,)``; no special tokens.
        sizes: Tokens of each sentence, ``(sentences,)``.
        words: Words of each sentence, ``(sentences,)``.
        word_starts: Index in ``ids`` of each word's first token, ``(words,)``. A token belongs to the word in which it
            begins.
        head_ids: Tokens with which sentences begin where they open a text, ``(heads,)``.
        head_sizes: How many of them each sentence has, ``(sentences,)``; empty where no sentence differs.
        head_replaces: How many of its first tokens they stand for, ``(sentences,)``; empty likewise.
    """

    ids: Ints
    sizes: Ints
    words: Ints
    word_starts: Ints
    head_ids: Ints
    head_sizes: Ints
    head_replaces: Ints


class SentenceTokenizer:
    """Tokenizes sentences so that views can be put together from their ids.

    Args:
        tokenizer: A fast tokenizer of transformers. It is copied: its padding, truncation and later changes have no
            effect here.

    Attributes:
        identity: 32 hexadecimal digits that change whenever the token ids might.
        drops_space: Whether white space before a sentence can have no effect on its tokens.

    Raises:
        ModelError: The tokenizer is not a fast one (of the ``tokenizers`` library).
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            raise ModelError(
                f"{type(tokenizer).__name__} is not a fast tokenizer (one of the 'tokenizers' library), which "
                "token-level views need: use views of text (DocSplitCollator)."
            )
        self._backend: Tokenizer = copy.deepcopy(backend)
        self._backend.no_padding()
        self._backend.no_truncation()
        self._backend.encode_special_tokens = bool(getattr(tokenizer, "split_special_tokens", False))
        state = json.loads(self._backend.to_str())
        whole = [state, self._backend.encode_special_tokens, tokenizers.__version__]
        self.identity = hashlib.blake2b(json.dumps(whole, sort_keys=True).encode(), digest_size=16).hexdigest()
        self.drops_space = _drops_space(state)
        self._context = self.encode(_CONTEXT)

    def encode(self, text: str) -> list[int]:
        """Tokenize one text, without special tokens."""
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def __call__(self, sentences: Sequence[str]) -> TokenizedSentences:
        """Tokenize sentences, all at once.

        Args:
            sentences: None of them empty, or with white space at its ends.
        """
        opening = self._backend.encode_batch(list(sentences), add_special_tokens=False)
        heads: list[list[int]] = []
        replaces: list[int] = []
        if self.drops_space:
            ids = [encoding.ids for encoding in opening]
            starts = [[start for start, _ in encoding.offsets] for encoding in opening]
        else:
            inside = self._backend.encode_batch(
                [f"{_CONTEXT} {sentence}" for sentence in sentences], add_special_tokens=False
            )
            after = [self._after_space(one, other) for one, other in zip(inside, opening, strict=True)]
            ids, starts = [ids for ids, _ in after], [starts for _, starts in after]
            for first, other in zip(opening, ids, strict=True):
                shared = _shared_end(first.ids, other)
                heads.append(first.ids[: len(first.ids) - shared])
                replaces.append(len(other) - shared)
            if not any(heads) and not any(replaces):
                heads, replaces = [], []
        sizes = _ints(map(len, ids))
        words, word_starts = _word_starts(sentences, starts, sizes)
        return TokenizedSentences(
            ids=_ints(chain.from_iterable(ids)),
            sizes=sizes,
            words=words,
            word_starts=word_starts,
            head_ids=_ints(chain.from_iterable(heads)),
            head_sizes=_ints(map(len, heads)),
            head_replaces=_ints(replaces),
        )

    def _after_space(self, inside: Encoding, opening: Encoding) -> tuple[list[int], list[int]]:
        """Take the context off: ids, and the character of the sentence at which each begins."""
        count, before = len(self._context), len(_CONTEXT)
        ids, offsets = inside.ids, inside.offsets
        if ids[:count] != self._context or any(stop > before for _, stop in offsets[:count]):
            # The context has grown together with the sentence: there is no form after a space apart from it.
            return opening.ids, [start for start, _ in opening.offsets]
        return ids[count:], [max(0, start - before - 1) for start, _ in offsets[count:]]

    def joins(self, sentences: Sequence[str]) -> bool:
        """Tell whether the ids of sentences, put together, are those of their text, joined by single spaces."""
        tokenized = self(sentences)
        ids = tokenized.ids.tolist()
        if len(tokenized.head_sizes):
            ids[: tokenized.head_replaces[0]] = tokenized.head_ids[: tokenized.head_sizes[0]].tolist()
        return bool(ids == self.encode(" ".join(sentences)))


def _drops_space(state: dict[str, Any]) -> bool:
    normalizer = state["normalizer"] or {"type": "Sequence", "normalizers": []}
    steps = normalizer["normalizers"] if normalizer["type"] == "Sequence" else [normalizer]
    cut = state["pre_tokenizer"] or {"type": None}
    return cut["type"] in _DROP_SPACE and all(step["type"] in _KEEP_PLACE for step in steps)


def _ints(values: Any) -> Ints:
    return np.fromiter(values, dtype=np.int32)


def _shared_end(one: list[int], other: list[int]) -> int:
    """Count the tokens that two lists have in common at their ends."""
    length = min(len(one), len(other))
    if not length:
        return 0
    different = np.nonzero(np.asarray(one[-length:]) != np.asarray(other[-length:]))[0]
    return length - 1 - int(different[-1]) if len(different) else length


def _word_starts(sentences: Sequence[str], starts: list[list[int]], sizes: Ints) -> tuple[Ints, Ints]:
    """Count words, and find the token with which each begins, for all sentences in one search.

    Args:
        sentences: The sentences.
        starts: The character at which each token of each sentence begins.
        sizes: Tokens of each sentence.

    Returns:
        Words of each sentence, and for each word the index of its first token among all tokens. Words without a token
        of their own (they are part of another's, or the tokenizer drops them) have the next word's.
    """
    spans = [word_spans(sentence) for sentence in sentences]
    words = _ints(map(len, spans))
    # Sentences are laid side by side, so that positions grow through all of them.
    places = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)])[:-1]
    stops = np.fromiter((stop for each in spans for _, stop in each), dtype=np.int64) + np.repeat(places, words)
    begins = np.fromiter(chain.from_iterable(starts), dtype=np.int64) + np.repeat(places, sizes)
    # A token that begins in white space belongs to the word behind it, or to the sentence's last word.
    word_of = np.minimum(np.searchsorted(stops, begins, side="right"), np.repeat(np.cumsum(words) - 1, sizes))
    word_of = np.maximum.accumulate(word_of) if len(word_of) else word_of
    return words, np.searchsorted(word_of, np.arange(len(stops)), side="left").astype(np.int32)
