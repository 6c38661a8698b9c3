"""Find the passage of a document that matches a query."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from math import log1p

import regex

from simlte_st.search.words import terms_by_word
from simlte_st.words.analyzer import PLAIN, word_to_term
from simlte_st.words.languages import UNSPACED

PASSAGE = 400
"""Maximum number of characters in a passage."""

_WORDS = 24  # of a query document, which has up to 100; those with the highest tf-idf
_LEAD = 80  # characters before the first matching word, in a sentence that is too long for a passage
# After a sentence, a blank line or a ruler, and before a list item or a heading; a single line end may be a hard wrap.
_START = re.compile(r"(?:[.!?]\s|[。！？]|\n(?:[ \t]*\n|[=~_*-]{3,}[ \t]*\n|(?=[ \t]*(?:[-*+#>|]|\d+[.)]))))\s*")
_TOKEN = re.compile(r"(?<![^\W_])[\w'\u2019]+")
_UNSPACED = regex.compile(rf"[{UNSPACED}\p{{Hangul}}]")


class PassageFinder:
    """Finds the passage with most words of a query, which takes a few milliseconds a document.

    Words count the more, the fewer parts of the text have them: in Zoom's terms, "recording" says where to look, and
    "Zoom" does not. A repeated word counts almost twice. With 450 headings of RFCs, terms of service and EIPs as
    queries, each removed from its document, 42% of the passages are in the section below the heading, and 30% if the
    document's name precedes the heading. They are 40% and 23% if words count by their rareness in all documents, and
    31% (without the name) if the passage has the highest cosine (``simlte-static``).

    Args:
        words: The words of the query, by term.
        languages: The languages of the index.
    """

    def __init__(self, words: Mapping[str, str], languages: Sequence[str]) -> None:
        first = dict(islice(terms_by_word(words).items(), _WORDS))
        self._languages, self._words = languages, {term: word for word, terms in first.items() for term in terms}
        self._prefixes: dict[str, bool] = {}  # and whether the word that begins with it must have one of the terms
        for term, word in self._words.items():
            is_plain = PLAIN.fullmatch(term) is not None and not _UNSPACED.search(word)
            stem = next(term[:size] for size in range(len(term), -1, -1) if word.startswith(term[:size]))
            self._prefixes[(is_plain and stem) or word] = is_plain

    def __call__(self, text: str, nearest: str | None = None) -> str:
        """Return the passage, an exact part of the text.

        If the text has none of the words, it is the beginning of ``nearest``, the text's nearest passage, or of the
        text.
        """
        if len(text) <= PASSAGE:
            return text
        if not (places := self._find_words(text)):
            return _crop(nearest or text, 0)
        parts = Counter(word for word, _ in {(word, position // PASSAGE) for position, word in places})
        weights = {word: log1p(len(text) / PASSAGE / count) for word, count in parts.items()}
        starts, previous, best, best_score = [0, *(match.end() for match in _START.finditer(text))], -1, 0, 0.0
        for number, (position, _) in enumerate(places):
            start = starts[bisect_right(starts, position) - 1]
            if position - start > PASSAGE - _LEAD:
                start = max(text.rfind(" ", 0, position - _LEAD) + 1, position - 2 * _LEAD)
            if start == previous:
                continue
            previous, stop = start, bisect_left(places, (start + PASSAGE, ""))
            counts = Counter(word for _, word in places[number:stop])
            score = sum(weights[word] * (2 - 1 / count) for word, count in counts.items())
            if score > best_score:
                best, best_score = start, score
        return _crop(text, best)

    def _find_words(self, text: str) -> list[tuple[int, str]]:
        """Return the positions of the query's words in a text, in order."""
        lower = text.replace("\u0130", "I").lower()  # the only letter whose lower case is longer
        places = []
        for prefix, is_plain in self._prefixes.items():
            position = lower.find(prefix)
            while position >= 0:
                if word := self._word_at(lower, position) if is_plain else prefix:
                    places.append((position, word))
                position = lower.find(prefix, position + len(prefix))
        return sorted({*places})

    def _word_at(self, text: str, position: int) -> str | None:
        """Return the word of the query that begins at a position of the text, in any form."""
        token = _TOKEN.match(text, position)
        terms = (word_to_term(token[0], language) for language in self._languages if token)
        return next((self._words[term] for term in terms if term in self._words), None)


def _crop(text: str, start: int) -> str:
    """Return up to :data:`PASSAGE` characters from ``start``: whole sentences, or whole words if one is too long."""
    part = text[start : start + PASSAGE + 1]
    if len(part) <= PASSAGE:
        return part.strip()
    end = max((match.start() for match in _START.finditer(part) if match.start() >= PASSAGE // 2), default=-1) + 1
    return part[: end or max(part.rfind(" "), part.rfind("\n"), PASSAGE // 2)].strip()
