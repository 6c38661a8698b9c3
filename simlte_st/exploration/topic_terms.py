"""Name topics by the terms that are more frequent in their documents than elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import regex
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from simlte_st.models.vectors import Ints
from simlte_st.words.analyzer import is_stop_word, normal, plain_words, word_to_term
from simlte_st.words.languages import UNSPACED, LanguageFinder

WORDS = 4
"""Terms in a name."""

_MAX_CHARACTERS = 5_000  # characters read per document
_VOCABULARY = 50_000
# A block of "Name: value" lines at the start of a text, as in front matter and e-mails.
_HEADER = regex.compile(r"\A\s*(?:---\n)?(?:[\w-]+:.*\n(?:[ \t]+\S.*\n)*+){2,}+(?:---)?\s*\n(?=\s*\S)")
_MARKUP = regex.compile(  # addresses, targets of links, directives and roles of reStructuredText
    r"(?:https?://|www\.)\S+|\S+@\S+\.\S+|(?<=\])\([^()\s]*\)|(?m:^\s*\.\. [\w-]+::)|:[\w:-]+:(?=`)"
)
_BREAK = regex.compile(r"(?V1)\n\s*\n|[[\p{P}\p{S}]--[-'\u2019_@/&+#.]]+|\.(?=\s)|(?<!\S)[-+#/.]+(?=\s)|[-.]{2,}")
_UNIT = rf"(?!\p{{M}})[{UNSPACED}]\p{{M}}*"
_SYLLABLE = regex.compile(rf"(?V1)[[{UNSPACED}]--\p{{Han}}]\p{{M}}*")  # means nothing by itself
_PAIR = regex.compile(rf"({_UNIT}) (?={_UNIT})")


def topic_terms(texts: Sequence[str], topics: Ints, count: int, language: str | None = None) -> list[list[str]]:
    """Return up to :data:`WORDS` words or word pairs for each of ``count`` topics, by class-based TF-IDF.

    A term's weight is the share of the topic's documents that contain it, times the logarithm of the ratio of this
    share to the share in all other documents. BERTopic's sums of counts ranked general words such as "said" first on
    BBC News. Stop words of each document's language, header lines, URLs, e-mail addresses and markup are ignored. The
    words of a pair are adjacent, without punctuation or a stop word between them. In scripts without spaces, the terms
    are pairs of characters, and single Chinese characters.

    References:
        Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", 2022.
    """
    if not count:
        return []
    beginnings = [_MARKUP.sub(" ", _HEADER.sub("", text[:_MAX_CHARACTERS])) for text in texts]
    find_language = LanguageFinder(beginnings, language)
    vectorizer = CountVectorizer(
        analyzer=lambda text: _phrases(text, find_language(text)),
        binary=True,
        min_df=1 if len(texts) < 200 else 3,
        max_features=_VOCABULARY,
        dtype=np.float32,
    )
    try:
        occurrences = vectorizer.fit_transform(beginnings)
    except ValueError:  # no text has a word
        return [[] for _ in range(count)]
    terms = vectorizer.get_feature_names_out()
    inside_counts = np.stack([np.asarray(occurrences[topics == topic].sum(axis=0))[0] for topic in range(count)])
    sizes = np.array([np.count_nonzero(topics == topic) for topic in range(count)])[:, None]
    outside_counts = np.asarray(occurrences.sum(axis=0)) - inside_counts
    share, share_outside = inside_counts / np.maximum(sizes, 1), (outside_counts + 1) / (len(texts) - sizes + 1)
    weights = share * np.log(np.maximum(share / share_outside, 1))
    main_language = find_language.languages[0]
    return [[_PAIR.sub(r"\1", term) for term in _heaviest(terms, row, main_language)] for row in weights]


def _phrases(text: str, language: str) -> Iterator[str]:
    """Return the words and pairs of words that can name a text."""
    for phrase in _BREAK.split(text):
        previous = ""
        for word in map(normal, plain_words(phrase)):
            if is_stop_word(word, language):
                previous = ""
                continue
            if not _SYLLABLE.fullmatch(word):
                yield word
            if previous and not is_stop_word(previous + word, language):
                yield f"{previous} {word}"
            previous = word


def _heaviest(terms: NDArray[np.str_], weights: NDArray[np.float64], language: str) -> list[str]:
    """Return the terms with the largest weights, without repeating a stem."""
    names: list[str] = []
    for index in np.argsort(-weights, kind="stable")[: 10 * WORDS]:
        if weights[index] <= 0 or len(names) == WORDS:
            break
        term = str(terms[index])
        stems = _stems(term, language)
        words = [name for name in names if _stems(name, language) < stems]
        if words:  # a pair replaces its single words
            names[names.index(words[0])] = term
            names = [name for name in names if name not in words]
        elif not any(stems & _stems(name, language) for name in names):
            names.append(term)
    return names


def _stems(term: str, language: str) -> set[str]:
    return {word_to_term(word, language) for word in term.split()}
