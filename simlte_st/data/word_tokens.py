"""The tokens of words, kept: most words of a text stood in others before, and looking up takes a seventh of cutting.

Only for tokenizers that cut at white space before anything else, as BERT's do, so that the tokens of a text are those
of its words, one after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, normalizers, pre_tokenizers

MOST = 1 << 18
"""Words kept, in about 40 MB; as many that came before them are kept too."""

LONGEST = 32  # characters of a word that is kept: longer ones are hardly ever seen again

_CUTTING = (pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit)
_BY_WORD = (
    type(None), normalizers.BertNormalizer, normalizers.Lowercase,
    normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD,
)  # fmt: skip
_TOKENIZERS: WeakKeyDictionary[Tokenizer, WordTokens] = WeakKeyDictionary()


def word_tokens(tokenizer: Tokenizer) -> WordTokens | None:
    """Return what is kept of a tokenizer; None where the tokens of a text are not those of its words."""
    if not isinstance(tokenizer.pre_tokenizer, _CUTTING) or not isinstance(tokenizer.normalizer, _BY_WORD):
        return None
    added = tokenizer.get_added_tokens_decoder()
    if any(len(token.content.split()) != 1 for token in added.values()):
        return None
    state = tokenizer.get_vocab_size(), len(added), tokenizer.encode_special_tokens
    try:
        kept = _TOKENIZERS.get(tokenizer)
    except TypeError:  # tokenizers before 0.23 allow no weak references: nothing is kept
        return None
    if kept is None or kept.state != state:  # tokens were added
        kept = _TOKENIZERS[tokenizer] = WordTokens(state)
    return kept


class WordTokens:
    """Token ids by word, as bytes of int32, which are joined at once."""

    def __init__(self, state: tuple[int, int, bool]) -> None:
        self.state = state
        self._ids: dict[str, bytes] = {}
        self._before: dict[str, bytes] = {}  # words from which those that come again are taken over
        self._lock = Lock()

    def cut(self, tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the token ids of all texts, one after the other, and the number of each text's."""
        words = [text.replace("\n", " ").split(" ") for text in texts]  # other white space is left to the tokenizer
        with self._lock:
            found = {*itertools.chain.from_iterable(words)}
            if len(self._ids) + len(found.difference(self._ids)) > MOST:
                self._before, self._ids = self._ids, {}
            found.difference_update(self._ids)
            self._ids.update((word, self._before[word]) for word in found.intersection(self._before))
            new = [*found.difference(self._ids)]
            for word, encoding in zip(new, tokenizer.encode_batch_fast(new, add_special_tokens=False), strict=True):
                self._ids[word] = np.array(encoding.ids, dtype=np.int32).tobytes()
            joined = [b"".join(map(self._ids.__getitem__, each)) for each in words]
            for word in new:
                if len(word) > LONGEST:
                    del self._ids[word]
        lengths = np.fromiter(map(len, joined), dtype=np.int64, count=len(joined)) // 4
        return np.frombuffer(b"".join(joined), dtype=np.int32), lengths
