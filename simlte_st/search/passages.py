"""Find the passage of a document that matches a query."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import regex

from simlte_st.search.words import terms_by_word
from simlte_st.words.analyzer import PLAIN, word_to_term
from simlte_st.words.languages import UNSPACED

PASSAGE = 400
"""Maximum number of characters in a passage."""

REPEATED = 0.3
"""How much a repeated word adds to its weight at most. With 450 headings of RFCs, terms of service and EIPs as queries,
each removed from its document, 42% of the passages are in the section below the heading; 31% if repetitions do not
count, 31% if the passage has the highest cosine (``simlte-static``), and 43% with both scores, at four times the
cost."""

_WORDS = 24  # of a query document, which has up to 100; those with the highest tf-idf
_LEAD = 80  # characters before the first matching word, in a sentence that is too long for a passage
# After a sentence, a blank line or a ruler, and before a list item or a heading; a single line end may be a hard wrap.
_START = re.compile(r"(?:[.!?]\s|[。！？]|\n(?:[ \t]*\n|[=~_*-]{3,}[ \t]*\n|(?=[ \t]*(?:[-*+#>|]|\d+[.)]))))\s*")
_TOKEN = re.compile(r"(?<![^\W_])[\w'\u2019]+")
_UNSPACED = regex.compile(rf"[{UNSPACED}\p{{Hangul}}]")


class PassageFinder:
    """Finds the passage with the rarest words of a query, which takes a few milliseconds a document.

    Args:
        words: The words of the query, by term.
        rareness: Function that returns the inverse document frequency of a term.
        languages: The languages of the index.
    """

    def __init__(self, words: Mapping[str, str], rareness: Callable[[str], float], languages: Sequence[str]) -> None:
        first = dict(islice(terms_by_word(words).items(), _WORDS))
        self._languages, self._words = languages, {term: word for word, terms in first.items() for term in terms}
        self._weights = {word: min(map(rareness, terms)) for word, terms in first.items()}
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
        starts, previous, best, best_score = [0, *(match.end() for match in _START.finditer(text))], -1, 0, 0.0
        for number, (position, _) in enumerate(places):
            start = starts[bisect_right(starts, position) - 1]
            if position - start > PASSAGE - _LEAD:
                start = max(text.rfind(" ", 0, position - _LEAD) + 1, position - 2 * _LEAD)
            if start == previous:
                continue
            previous, stop = start, bisect_left(places, (start + PASSAGE, ""))
            counts = Counter(word for _, word in places[number:stop])
            score = sum(self._weights[word] * (1 + REPEATED * (1 - 1 / count)) for word, count in counts.items())
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
