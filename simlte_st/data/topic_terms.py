"""Names of topics: terms that more of a topic's documents have than of the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from simlte_st.data.analyzer import terms_of
from simlte_st.data.document import CJK

WORDS = 4
"""Terms in a name."""

_READ = 5_000  # characters of a document
_VOCABULARY = 50_000
_APOSTROPHES = "'\u2019\u02bc"
# A word begins with a letter, and is whole: not the end of "1.5bn", nor a part of "didn't", "they've" or "we'll".
_SIGN = rf"[^\W_{CJK}]"
_WORD = rf"(?<!{_SIGN})[^\W\d_{CJK}][^\W{CJK}]*{_SIGN}(?![{_APOSTROPHES}]t\b|{_SIGN})"
_PATTERN = rf"[{CJK}]|(?!(?<=\w[{_APOSTROPHES}])(?:ll|re|ve)\b){_WORD}"
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+\.\S+")
_CJK_PAIR = re.compile(rf"(?<=[{CJK}]) (?=[{CJK}])")


def topic_terms(texts: Sequence[str], assigned: NDArray[np.int64], number: int) -> list[list[str]]:
    """Return up to :data:`WORDS` words or pairs of words for each topic, by a class-based TF-IDF.

    A term weighs the share of the topic's documents that have it, times the logarithm of the ratio of that share to the
    share in all other documents. With BERTopic's sums of counts, words of every topic such as "said" came first on BBC
    News. English stop words, URLs and mail addresses are ignored.

    References:
        Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", 2022.
    """
    if not number:
        return []
    vectorizer = CountVectorizer(
        ngram_range=(1, 2),
        stop_words="english",
        token_pattern=_PATTERN,
        binary=True,
        min_df=1 if len(texts) < 200 else 3,
        max_features=_VOCABULARY,
        dtype=np.float32,
    )
    try:
        counts = vectorizer.fit_transform(_ADDRESS.sub(" ", text[:_READ]) for text in texts)
    except ValueError:  # no text has a word
        return [[] for _ in range(number)]
    terms = vectorizer.get_feature_names_out()
    having = np.stack([np.asarray(counts[assigned == topic].sum(axis=0))[0] for topic in range(number)])
    sizes = np.array([np.count_nonzero(assigned == topic) for topic in range(number)])[:, None]
    others = np.asarray(counts.sum(axis=0)) - having
    share, elsewhere = having / np.maximum(sizes, 1), (others + 1) / (len(texts) - sizes + 1)
    weights = share * np.log(np.maximum(share / elsewhere, 1))
    return [_heaviest(terms, row) for row in weights]


def _heaviest(terms: NDArray[np.str_], weights: NDArray[np.float64]) -> list[str]:
    """Return the terms with the largest weights, no two of which share a stem."""
    chosen: list[str] = []
    for place in np.argsort(-weights, kind="stable")[: 10 * WORDS]:
        term = str(terms[place])
        words = _stems(term)
        if weights[place] <= 0 or len(chosen) == WORDS:
            break
        inside = [each for each in chosen if _stems(each) < words]
        if inside:  # a pair takes the place of its single words
            chosen[chosen.index(inside[0])] = term
            chosen = [each for each in chosen if each not in inside]
        elif not any(words & _stems(each) for each in chosen):
            chosen.append(term)
    return [_CJK_PAIR.sub("", term) for term in chosen]


def _stems(term: str) -> set[str]:
    return {each.term for word in term.split() for each in islice(terms_of(word, "en"), 1)}
