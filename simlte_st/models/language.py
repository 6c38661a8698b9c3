"""Warn about models trained on another language, whose tokenizers split the documents' frequent words."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING

import regex

from simlte_st.words.tokens import space_before, token_ids, unknown_id

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from simlte_st.models.vectors import TokenVectors
    from simlte_st.words.tokens import AnyTokenizer

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
"""Number of documents to read, and of characters in each."""

# Short words are in any vocabulary. In scripts without spaces, characters or pairs of letters count. Kana is left out
# because English vocabularies contain it.
_WORD = regex.compile(
    r"(?V1)\p{Han}|\p{Hangul}{2,}|(?:[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*){2}"
    r"|[[\p{L}\p{M}]--[\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]{4,}"
)


def warn_of_language(models: Mapping[str, SentenceTransformer | TokenVectors], texts: Iterable[str]) -> None:
    """Warn about models that were trained on a different language from most texts."""
    words = frequent_words(texts)
    if len(words) < FEWEST:
        return
    min_share = KNOWN_CHARACTERS if sum(map(len, words)) < 1.5 * len(words) else KNOWN
    shares = {name: known_share(model.tokenizer, words) for name, model in models.items()}
    if foreign := {name: share for name, share in shares.items() if share < min_share}:
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
    vocabularies = (set(_WORD.findall(text[:CHARACTERS])) for text in islice(texts, DOCUMENTS))
    counts = Counter(chain.from_iterable(vocabularies))
    return sorted((word for word, count in counts.items() if count > 2), key=lambda word: (-counts[word], word))[:WORDS]


def known_share(tokenizer: AnyTokenizer, words: list[str]) -> float:
    """Return the share of words that are a single known token."""
    space, vocabulary, unknown = space_before(tokenizer), tokenizer.get_vocab(), unknown_id(tokenizer)
    spaces = {vocabulary.get(token) for token in ("\u2581", "\u0120")}  # some tokenizers put one before a character
    tokens = token_ids(tokenizer, [space + word for word in words])
    words_as_ids = [[token_id for token_id in ids if token_id not in spaces] for ids in tokens]
    return sum(len(ids) == 1 and ids[0] != unknown for ids in words_as_ids) / len(words)
