"""Select and weight the words of a query; a long query keeps the words with the highest tf-idf."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from simlte_st.files import write_json
from simlte_st.search.store import Store, read_index_file
from simlte_st.words.analyzer import PLAIN, content_terms

WORDS_FILE = "words.json"

MAX_QUERY_WORDS = 100
"""Maximum number of distinct words in a BM25 query. With whole papers as queries (AAN, plain BM25), recall@10 of the
cited papers is 48.6% with the 100 words of highest tf-idf, 43.7% with the top 500, and 35.7% with the 500 most frequent
words."""

_SAMPLE = 2000  # documents
_MIN_DOCUMENTS = 2  # with the same word, or it is not counted


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Document frequencies of words, in a sample of an index.

    Attributes:
        documents: Number of documents in the sample.
        indexed: Number of documents in the index at the time of counting.
        counts: Number of documents by term (see :mod:`simlte_st.words.analyzer`), if more than one.
    """

    documents: int = 0
    indexed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, store: Store) -> WordCounts:
        """Read the counts of an index, or count its words now if a writer was killed before doing so."""
        exists = (store.folder / WORDS_FILE).exists()
        return read_index_file(store.folder, WORDS_FILE, lambda values: cls(**values)) if exists else cls.of(store)

    @classmethod
    def of(cls, store: Store) -> WordCounts:
        """Count the words of an index."""
        ids = store.ids()
        sample = [ids[row] for row in np.random.default_rng(0).permutation(len(ids))[:_SAMPLE]]
        counts: Counter[str] = Counter()
        for terms in store.find_rows("id", sample, ["terms"], "part = 0")["terms"].to_pylist():
            counts.update(set(terms.split(" ")))
        frequent = {term: count for term, count in sorted(counts.items()) if count >= _MIN_DOCUMENTS}
        return cls(len(sample), len(ids), frequent)

    def top_words(self, text: str, languages: Sequence[str]) -> dict[str, str]:
        """Return up to :data:`MAX_QUERY_WORDS` words of a query, keyed by term and sorted by tf-idf (as in BM25).

        Stop words are used only if there are no other words. In a longer query, numbers and joined words ("3.5",
        "node.js") come last, because they are rare in long texts but say little. On every second paper of AAN, this
        raises recall@10 of the cited papers from 48.3% to 50.5% (plain BM25).

        A word with several terms counts as being as rare as its most frequent term.

        Args:
            text: The query.
            languages: The languages of the index.
        """
        terms = content_terms(text, languages)
        words = {term.term: term.word.lower() for term in reversed(terms)}  # the first word of each term
        counts = Counter(term.term for term in terms)
        rareness = {word: min(map(self.rareness, variants)) for word, variants in terms_by_word(words).items()}
        weights = {term: (1 + math.log(count)) * rareness[words[term]] for term, count in counts.items()}
        is_long = len(rareness) > MAX_QUERY_WORDS
        order = sorted(weights, key=lambda term: (is_long and PLAIN.fullmatch(term) is None, -weights[term], term))
        selected = {*list(dict.fromkeys(words[term] for term in order))[:MAX_QUERY_WORDS]}
        return {term: words[term] for term in order if words[term] in selected}

    def rareness(self, term: str) -> float:
        """Return the inverse document frequency of a term, as in BM25."""
        count = self.counts.get(term, 1)
        return math.log1p((self.documents - count + 0.5) / (count + 0.5)) if self.documents else 1.0

    def weights(self, words: Mapping[str, str]) -> dict[str, float]:
        """Return term weights that make BM25 treat each word as no rarer than its most frequent term.

        Otherwise, in a corpus of English e-mails with a few German ones, the query "make" would rank "config.mak"
        first, because "mak", the German stem of "make", occurs in hardly any other document.
        """
        weights: dict[str, float] = {}
        for terms in terms_by_word(words).values():
            rareness = {term: self.rareness(term) for term in terms}
            # Rounded to powers of two, because each distinct weight needs a query clause of its own.
            weights |= {term: 2.0 ** round(math.log2(min(rareness.values()) / rareness[term])) for term in terms}
        return weights


def terms_by_word(words: Mapping[str, str]) -> dict[str, list[str]]:
    """Group the terms of a query by word."""
    terms: dict[str, list[str]] = {}
    for term, word in words.items():
        terms.setdefault(word, []).append(term)
    return terms


def count_index_words(store: Store) -> None:
    """Recount the words of an index once it has doubled in size; the counts need not be exact."""
    path, indexed = store.folder / WORDS_FILE, store.count()
    if indexed and not (path.exists() and indexed < 2 * WordCounts.read(store).indexed):
        write_json(path, asdict(WordCounts.of(store)))
