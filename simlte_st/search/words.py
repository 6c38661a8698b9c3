"""The words of documents and queries as terms; long queries keep the words with the highest tf-idf."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from simlte_st.files import SETTINGS_FILE, write_json
from simlte_st.search.store import Store, read_part
from simlte_st.words.analyzer import PLAIN, content_terms, extract_terms
from simlte_st.words.languages import LanguageFinder

WORDS_FILE = "words.json"

MOST_WORDS = 100
"""Maximum number of different words of a query for BM25. With whole papers as queries (AAN, plain BM25), the 100 words
with the highest tf-idf find 48.6% of the cited papers among the first ten hits, the 500 highest 43.7%, and the 500 most
frequent 35.7%."""

_SAMPLE = 2000  # documents to count words in
_RARE = 2  # least number of documents of a counted word


class DocumentTerms:
    """Turns new documents into index terms, and keeps their languages in the settings of the index."""

    def __init__(self, folder: Path, settings: dict[str, Any], first: Sequence[str]) -> None:
        self._folder, self._settings = folder, settings
        self._find = LanguageFinder(first, settings["language"], settings["languages"])

    def of(self, texts: Sequence[str]) -> list[str]:
        """Return the terms of each text, separated by spaces, after saving new languages in the settings."""
        languages = list(map(self._find, texts))
        known = list(dict.fromkeys([*self._settings["languages"], *languages]))
        if known != self._settings["languages"]:
            self._settings["languages"] = known
            write_json(self._folder / SETTINGS_FILE, self._settings)
        return [
            " ".join(each.term for each in extract_terms(text, language))
            for text, language in zip(texts, languages, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class WordCounts:
    """The number of documents in a sample that contain a word.

    Attributes:
        documents: Size of the sample.
        indexed: Number of documents in the index at that time.
        counts: Number of documents by term (:mod:`simlte_st.words.analyzer`), if more than one.
    """

    documents: int = 0
    indexed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, store: Store) -> WordCounts:
        """Read the counts of an index; count now if its writer was killed before counting."""
        if not (store.folder / WORDS_FILE).exists():
            return cls.of(store)
        return read_part(store.folder, WORDS_FILE, lambda values: cls(**values))

    @classmethod
    def of(cls, store: Store) -> WordCounts:
        """Count the words of an index."""
        names = sorted(store.rows("part = 0", ["id"])["id"].to_pylist())
        drawn = np.random.default_rng(0).permutation(len(names))[:_SAMPLE]
        counts: Counter[str] = Counter()
        for terms in store.rows_of("id", [names[row] for row in drawn], ["terms"], "part = 0")["terms"].to_pylist():
            counts.update(set(terms.split(" ")))
        return cls(len(drawn), len(names), {term: count for term, count in sorted(counts.items()) if count >= _RARE})

    def of_query(self, text: str, languages: Sequence[str]) -> dict[str, str]:
        """Return up to :data:`MOST_WORDS` words of a query by term, highest tf-idf (of BM25) first.

        ``languages`` are those of the index.

        Stop words count only if there are no others. In a query with more words, numbers and joined words ("3.5",
        "node.js") come last: they are rare in a long text and say little. This finds 50.5% of the citations of every
        second paper of AAN among the first ten hits, and 48.3% otherwise (plain BM25).

        A word with several terms is as rare as its most frequent term.
        """
        terms = content_terms(text, languages)
        counts = Counter(each.term for each in terms)
        first = {term: word.lower() for term, word in {each.term: each.word for each in reversed(terms)}.items()}
        least = {word: min(map(self.rareness, own)) for word, own in terms_by_word(first).items()}
        weights = {term: (1 + math.log(count)) * least[first[term]] for term, count in counts.items()}
        long = len(least) > MOST_WORDS
        order = sorted(weights, key=lambda term: (long and PLAIN.fullmatch(term) is None, -weights[term], term))
        kept = {*list(dict.fromkeys(first[term] for term in order))[:MOST_WORDS]}
        return {term: first[term] for term in order if first[term] in kept}

    def rareness(self, term: str) -> float:
        """Return the weight of a term in BM25."""
        known = self.counts.get(term, 1)
        return math.log1p((self.documents - known + 0.5) / (known + 0.5)) if self.documents else 1.0

    def weights(self, words: Mapping[str, str]) -> dict[str, float]:
        """Return weights of terms that make BM25 treat a word as rare as its most frequent term.

        Otherwise, among e-mails in English and a few in German, a query with "make" would find "config.mak" first:
        "mak" is the German stem of "make", and hardly another document has it.
        """
        found: dict[str, float] = {}
        for terms in terms_by_word(words).values():
            rareness = [self.rareness(term) for term in terms]
            # Powers of two, since the terms of each weight are a separate query.
            weights = (2.0 ** round(math.log2(min(rareness) / own)) for own in rareness)
            found.update(zip(terms, weights, strict=True))
        return found


def terms_by_word(words: Mapping[str, str]) -> dict[str, list[str]]:
    """Group the terms of a query by word."""
    found: dict[str, list[str]] = {}
    for term, word in words.items():
        found.setdefault(word, []).append(term)
    return found


def count_index_words(store: Store) -> None:
    """Count the words of an index again after it has doubled; the counts need not be exact."""
    path, indexed = store.folder / WORDS_FILE, store.count()
    if indexed and not (path.exists() and indexed < 2 * WordCounts.read(store).indexed):
        write_json(path, asdict(WordCounts.of(store)))
