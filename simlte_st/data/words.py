"""What counts as a word: the unit in which a view may cut a sentence, and a bound on how long a sentence gets."""

from __future__ import annotations

import re

LONGEST_WORD = 24
"""A run of more characters without white space counts as several words: it becomes several tokens anyway."""

# Scripts written without spaces: each character is a word, as BERT's own pre-tokenizer has it.
CJK = "\u2e80-\u2fff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_WORD = re.compile(rf"[{CJK}]|[^\s{CJK}]{{1,{LONGEST_WORD}}}")


def word_spans(text: str) -> list[tuple[int, int]]:
    """Find the words of ``text``: ``(start, stop)`` character offsets.

    A word is a run of characters without white space, at most :data:`LONGEST_WORD` long; in scripts written without
    spaces each character is one.
    """
    return [match.span() for match in _WORD.finditer(text)]


def count_words(text: str) -> int:
    """Count the words of ``text`` as :func:`word_spans` finds them."""
    return sum(1 for _ in _WORD.finditer(text))
