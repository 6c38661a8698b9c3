"""Name topics by terms that are more frequent in their documents than in the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import regex
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from simlte_st.words.analyzer import is_stop_word, normal, plain_words, word_to_term
from simlte_st.words.languages import UNSPACED, LanguageFinder

WORDS = 4
"""Terms in a name."""

_READ = 5_000  # characters read per document
_VOCABULARY = 50_000
# A block of "Name: value" lines at the start of a text, as in front matter and e-mails.
_HEADER = regex.compile(r"\A\s*(?:---\n)?(?:[\w-]+:.*\n(?:[ \t]+\S.*\n)*+){2,}+(?:---)?\s*\n(?=\s*\S)")
_MARKUP = regex.compile(  # addresses, targets of links, directives and roles of reStructuredText
    r"(?:https?://|www\.)\S+|\S+@\S+\.\S+|(?<=\])\([^()\s]*\)|(?m:^\s*\.\. [\w-]+::)|:[\w:-]+:(?=`)"
)
_BREAK = regex.compile(r"(?V1)\n\s*\n|[[\p{P}\p{S}]--[-'\u2019_@/&+#.]]+|\.(?=\s)|(?<!\S)[-+#/.]+(?=\s)|[-.]{2,}")
_UNIT = rf"(?!\p{{M}})[{UNSPACED}]\p{{M}}*"
_SYLLABLE = regex.compile(rf"(?V1)[[{UNSPACED}]--\p{{Han}}]\p{{M}}*")  # says nothing by itself
_PAIR = regex.compile(rf"({_UNIT}) (?={_UNIT})")


def topic_terms(
    texts: Sequence[str], assigned: NDArray[np.int64], number: int, language: str | None = None
) -> list[list[str]]:
    """Return up to :data:`WORDS` words or word pairs for each topic, by class-based TF-IDF.

    A term's weight is the share of the topic's documents that contain it, times the logarithm of the ratio of this
    share to the share in all other documents. BERTopic's sums of counts ranked general words such as "said" first on
    BBC News. Stop words of each document's language, header lines, URLs, e-mail addresses and markup are ignored. The
    words of a pair are adjacent, without punctuation or a stop word between them. In scripts without spaces, the terms
    are pairs of characters, and single Chinese characters.

    References:
        Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", 2022.
    """
    if not number:
        return []
    beginnings = [_MARKUP.sub(" ", _HEADER.sub("", text[:_READ])) for text in texts]
    find = LanguageFinder(beginnings, language)
    vectorizer = CountVectorizer(
        analyzer=lambda text: _phrases(text, find(text)),
        binary=True,
        min_df=1 if len(texts) < 200 else 3,
        max_features=_VOCABULARY,
        dtype=np.float32,
    )
    try:
        counts = vectorizer.fit_transform(beginnings)
    except ValueError:  # no text has a word
        return [[] for _ in range(number)]
    terms = vectorizer.get_feature_names_out()
    having = np.stack([np.asarray(counts[assigned == topic].sum(axis=0))[0] for topic in range(number)])
    sizes = np.array([np.count_nonzero(assigned == topic) for topic in range(number)])[:, None]
    others = np.asarray(counts.sum(axis=0)) - having
    share, elsewhere = having / np.maximum(sizes, 1), (others + 1) / (len(texts) - sizes + 1)
    weights = share * np.log(np.maximum(share / elsewhere, 1))
    names = []
    for row in weights:
        names.append([_PAIR.sub(r"\1", term) for term in _heaviest(terms, row, find.languages[0])])
    return names


def _phrases(text: str, language: str) -> Iterator[str]:
    """Return the words and pairs of words that can name a text."""
    for part in _BREAK.split(text):
        before = ""
        for word in plain_words(part):
            plain = normal(word)
            if is_stop_word(plain, language):
                before = ""
                continue
            if not _SYLLABLE.fullmatch(plain):
                yield plain
            if before and not is_stop_word(before + plain, language):
                yield f"{before} {plain}"
            before = plain


def _heaviest(terms: NDArray[np.str_], weights: NDArray[np.float64], language: str) -> list[str]:
    """Return the terms with the largest weights, without repeating a stem."""
    chosen: list[str] = []
    for place in np.argsort(-weights, kind="stable")[: 10 * WORDS]:
        term = str(terms[place])
        words = _stems(term, language)
        if weights[place] <= 0 or len(chosen) == WORDS:
            break
        inside = [each for each in chosen if _stems(each, language) < words]
        if inside:  # a pair replaces its single words
            chosen[chosen.index(inside[0])] = term
            chosen = [each for each in chosen if each not in inside]
        elif not any(words & _stems(each, language) for each in chosen):
            chosen.append(term)
    return chosen


def _stems(term: str, language: str) -> set[str]:
    return {word_to_term(word, language) for word in term.split()}
