"""Warn about models of another language, whose tokenizer splits the frequent words of the documents."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any

import regex

from simlte_st.words.tokens import space_before, token_ids, unknown_id

logger = logging.getLogger(__name__)

WORDS, FEWEST = 400, 100
"""Maximum and minimum number of frequent words to look up, each in three or more documents."""

KNOWN = 0.4
"""Minimum share of these words in the vocabulary. The vocabulary of all-MiniLM-L6-v2 has 89% or more for English prose
and tweets, 83% for papers with formulas, 72% or more for source code, and at most 33% for other languages (French;
Japanese 28%, Chinese 20%, German 11%, Russian, Hindi and Arabic 0%). That of multilingual-e5-small has 65% or more for
its training languages (Amharic; Arabic 76%, German 94%), and 52% or more for source code."""

KNOWN_CHARACTERS = 0.8
"""Minimum share for Chinese characters: an English vocabulary has 19% to 51% of the 100 to 400 most frequent ones, a
Chinese or multilingual vocabulary 99% or more."""

DOCUMENTS, CHARACTERS = 1_000, 2_000
"""Number of documents to look at, and of characters of each."""

# Short words are in any vocabulary. Scripts without spaces count by characters, or by pairs of letters. Kana is left
# out because English vocabularies contain it.
_WORD = regex.compile(
    r"(?V1)\p{Han}|\p{Hangul}{2,}|(?:[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*){2}"
    r"|[[\p{L}\p{M}]--[\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]{4,}"
)


def warn_of_language(models: Mapping[str, Any], texts: Iterable[str]) -> None:
    """Warn about models, in torch or NumPy, that were trained on a different language from most texts."""
    words = frequent_words(texts)
    if len(words) < FEWEST:
        return
    least = KNOWN_CHARACTERS if sum(map(len, words)) < 1.5 * len(words) else KNOWN
    shares = {name: known_share(model.tokenizer, words) for name, model in models.items()}
    if foreign := {name: share for name, share in shares.items() if share < least}:
        logger.warning(
            "%s: trained on a different language from most documents. At most %.0f%% of their %d most frequent "
            "words are in the vocabulary. Use a base for their language, or a multilingual one such as "
            "intfloat/multilingual-e5-small.",
            ", ".join(foreign),
            100 * max(foreign.values()),
            len(words),
        )


def frequent_words(texts: Iterable[str]) -> list[str]:
    """Return the words that occur in most texts, most frequent first."""
    own = (set(_WORD.findall(text[:CHARACTERS])) for text in islice(texts, DOCUMENTS))
    counts = Counter(chain.from_iterable(own))
    return sorted((word for word, count in counts.items() if count > 2), key=lambda word: (-counts[word], word))[:WORDS]


def known_share(tokenizer: Any, words: list[str]) -> float:
    """Return the share of words that are a single known token."""
    space, vocabulary = space_before(tokenizer), tokenizer.get_vocab()
    other = {unknown_id(tokenizer)}
    blank = {vocabulary.get(sign) for sign in ("\u2581", "\u0120")}  # some tokenizers put it before a character
    read = token_ids(tokenizer, [space + word for word in words])
    pieces = [[number for number in ids if number not in blank] for ids in read]
    return sum(len(ids) == 1 and ids[0] not in other for ids in pieces) / len(words)
