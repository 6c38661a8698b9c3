"""Whether a model was trained on the language of documents: if so, its tokenizer has their frequent words whole."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING

import regex

from simlte_st.data.tokens import space_before, token_ids, unknown_id

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from simlte_st.data.tokens import AnyTokenizer

logger = logging.getLogger(__name__)

WORDS, FEWEST = 400, 100
"""Frequent words to look up, and how many there must be: words of three documents and more."""

KNOWN = 0.4
"""Least share of them that a tokenizer has whole. The English one of all-MiniLM-L6-v2 has 89% and more of English prose
and tweets, 83% of papers with formulas, 72% and more of source code, and at most 33% of texts in other languages
(French; Japanese 28%, Chinese 20%, German 11%, Russian, Hindi and Arabic 0%). That of multilingual-e5-small has 65% and
more of texts in languages that it was trained on (Amharic; Arabic 76%, German 94%), and 52% and more of source code."""

KNOWN_CHARACTERS = 0.8
"""The same where most are Chinese characters: of the 100 to 400 most frequent ones the English vocabulary has 19% to
51%, a Chinese or multilingual one 99% and more."""

DOCUMENTS, CHARACTERS = 1_000, 2_000
"""How many documents are looked at, and characters of each."""

# Short words are tokens of any vocabulary. Without spaces there are no words: characters, or pairs where these are
# letters. Kana is left out, which English vocabularies have as far as they have Japanese at all.
_WORD = regex.compile(
    r"(?V1)\p{Han}|\p{Hangul}{2,}|(?:[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*){2}"
    r"|[[\p{L}\p{M}]--[\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]{4,}"
)


def warn_of_language(models: Mapping[str, SentenceTransformer], texts: Iterable[str]) -> None:
    """Warn of models that were trained on another language than most of some texts are in."""
    words = frequent_words(texts)
    if len(words) < FEWEST:
        return
    least = KNOWN_CHARACTERS if sum(map(len, words)) < 1.5 * len(words) else KNOWN
    shares = {name: known_share(model.tokenizer, words) for name, model in models.items()}
    if foreign := {name: share for name, share in shares.items() if share < least}:
        logger.warning(
            "%s: trained on another language than most of these documents are in. At most %.0f%% of their %d most "
            "frequent words are in the vocabulary. Use a base of their language, or a multilingual one such as "
            "intfloat/multilingual-e5-small.",
            ", ".join(foreign),
            100 * max(foreign.values()),
            len(words),
        )


def frequent_words(texts: Iterable[str]) -> list[str]:
    """Return the words that most texts have, from the most frequent on."""
    own = (set(_WORD.findall(text[:CHARACTERS])) for text in islice(texts, DOCUMENTS))
    counts = Counter(chain.from_iterable(own))
    return sorted((word for word, count in counts.items() if count > 2), key=lambda word: (-counts[word], word))[:WORDS]


def known_share(tokenizer: AnyTokenizer, words: list[str]) -> float:
    """Return the share of words that are one token, and not the unknown one."""
    space, vocabulary = space_before(tokenizer), tokenizer.get_vocab()
    other = {unknown_id(tokenizer)}
    blank = {vocabulary.get(sign) for sign in ("\u2581", "\u0120")}  # which some tokenizers put before a character
    read = token_ids(tokenizer, [space + word for word in words])
    pieces = [[number for number in ids if number not in blank] for ids in read]
    return sum(len(ids) == 1 and ids[0] not in other for ids in pieces) / len(words)
